"""Checkpoints of the structures that the WMT releases have: generation with maps, forced scoring, calibration."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import fairseq_norm_plugin
from alignment_eval.files import write_lines
from alignment_eval.records.store import Records
from fairseq_norm_plugin.align import cli as align
from tests.released import STRUCTURES, WORDS, save

PLUGIN = Path(fairseq_norm_plugin.__file__).parent
SCORE = ["--score-reference"]
SEARCH = ["--beam", 2, "--min-len", 2, "--max-len-b", 4]
KINDS = {**{name: (name, 1) for name in STRUCTURES}, "ensemble of four": ("wmt big", 4)}
#: The one that every run of the suite tests.
QUICK = "old, joined, fp16"


@pytest.fixture(params=[name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KINDS])
def released(request, tmp_path):
    """A released directory, with a text: its checkpoints, separated by colons."""
    name, count = KINDS[request.param]
    files = ["model.pt"] if count == 1 else [f"model{number}.pt" for number in range(1, count + 1)]
    for seed, file in enumerate(files):
        save(tmp_path, name, seed, file)
    rng = random.Random(3)
    for language in ("de", "en"):
        lines = [" ".join(rng.choices(WORDS, k=rng.randint(1, 3))) for _ in range(32)]
        write_lines(tmp_path / f"test.de-en.{language}", lines)
    return ":".join(str(tmp_path / file) for file in files)


@pytest.fixture
def generate(run_generate, released, tmp_path):
    def run(*extra, ours=True):
        task = ["--user-dir", PLUGIN, "--task", "translation_norm"]
        task = task if ours else ["--task", "translation", "--required-batch-size-multiple", 1]
        return run_generate(tmp_path, "--path", released, "--dataset-impl", "raw", *task, *extra)

    return run


def test_as_stock_with_maps_and_a_profile(generate, released, tmp_path, capsys):
    for mode in (SEARCH, SCORE):
        records = tmp_path / str(mode[0])
        output = generate(*mode, "--norm-records", records)
        expected = generate(*mode, ours=False).lines("H", "D", "P")
        assert output.lines("H", "D", "P") == expected
        assert len(expected) == 3 * 32
        for record in Records(records):
            np.testing.assert_allclose(record.head_maps("attn_w").sum(axis=-1), 1, atol=1e-5)
    text = ["--source-text", tmp_path / "test.de-en.de", "--target-text", tmp_path / "test.de-en.en"]
    words = ["--path", tmp_path, "--bpe", "none", "--cpu", *text]
    assert align.main([str(word) for word in ("calibrate", *words)]) == 0
    first, *others = released.split(":")
    profile = f"{first}+{len(others)}.align.json" if others else f"{first}.align.json"
    assert Path(profile).is_file()
    assert align.main([str(word) for word in (*words, "--word-table", 0, "--force", "-o", tmp_path / "aligned")]) == 0
    capsys.readouterr()
    generate(*SCORE, "--norm-alignments", tmp_path / "generated")
    assert f"from {profile}" in capsys.readouterr().err
    assert (tmp_path / "generated").read_text() == (tmp_path / "aligned").read_text()
