"""The profile beside a checkpoint, in fairseq-generate and in what is made of its records."""

import json
import re
import shutil
from pathlib import Path

import pytest
from subword_nmt.apply_bpe import BPE

from alignment_eval import cli
from alignment_eval.errors import InputError
from alignment_eval.records.store import Records
from fairseq_norm_plugin.align import cli as norm_align

DEMO = Path(__file__).resolve().parents[2] / "data" / "demo"
ROOT = DEMO.parents[1]
PAIR = ("-s", "de", "-t", "en")


@pytest.fixture(scope="module")
def demo(program, tmp_path_factory):
    """The demo's text, binarised, and its model with the bundled profile."""
    directory = tmp_path_factory.mktemp("demo")
    for name in ("checkpoint.pt", "checkpoint.pt.align.json"):
        shutil.copy(DEMO / name, directory / name)
    with (DEMO / "codes.bpe").open() as codes:
        bpe = BPE(codes)
    for lang in ("de", "en"):
        lines = (DEMO / f"demo.{lang}").read_text().splitlines(keepends=True)
        (directory / f"test.{lang}").write_text("".join(map(bpe.process_line, lines)))
    preprocess = ["fairseq-preprocess", "--source-lang", "de", "--target-lang", "en", "--testpref", directory / "test"]
    preprocess += ["--srcdict", DEMO / "dict.de.txt", "--tgtdict", DEMO / "dict.en.txt", "--destdir", directory / "bin"]
    program(*preprocess)
    return directory


def scoring(demo, *options):
    words = [demo / "bin", "--path", demo / "checkpoint.pt", "--user-dir", ROOT / "fairseq_norm_plugin"]
    return [*words, "--task", "translation_norm", "--score-reference", *options]


@pytest.fixture(scope="module")
def forced(program, demo):
    """A run with records and alignments; its standard error."""
    options = ["--norm-records", demo / "records", "--norm-alignments", demo / "alignments"]
    return program("fairseq-generate", *scoring(demo, *options), "--cpu").stderr


@pytest.fixture
def generate(demo, run_generate, capsys):
    """A run in this process; its standard error."""

    def run(*options):
        run_generate(*scoring(demo, *options))
        return capsys.readouterr().err

    return run


def aligned(demo, out, *options):
    words = ["--path", demo / "checkpoint.pt", "--data", DEMO, *PAIR, "--bpe-codes", DEMO / "codes.bpe", "--cpu"]
    words += ["--source-text", DEMO / "demo.de", "--target-text", DEMO / "demo.en", "-o", out, *options]
    assert norm_align.main([str(word) for word in words]) == 0
    return out.read_text()


def test_alignments_are_those_of_norm_align_without_a_word_table(demo, forced, tmp_path):
    (line,) = [line for line in forced.splitlines() if line.startswith("--norm-alignments: maps 0.0:awi,2")]
    assert str(demo / "checkpoint.pt.align.json") in line
    assert (demo / "alignments").read_text() == aligned(demo, tmp_path / "out", "--word-table", 0)


def test_extract_gives_what_norm_align_gives(demo, forced, tmp_path, capsys):
    """Records carry the profile, so that they can be read anywhere."""
    info = Records(demo / "records").info
    assert json.loads(info.profile)["model"] == info.signature["model"]
    assert cli.main(["extract", str(demo / "records"), "--output", str(tmp_path / "out")]) == 0
    messages = capsys.readouterr().err
    assert f"profile: the one in {demo / 'records'}" in messages
    assert (tmp_path / "out").read_text() == aligned(demo, tmp_path / "mine")


def test_named_maps_win(demo, forced, generate, tmp_path):
    named = generate("--norm-alignments", tmp_path / "named", "--norm-layer", 1)
    assert "0.0:awi,2" not in named
    words = ["extract", demo / "records", "--kind", "attn_n", "--layer", 1, "--setting", "awo"]
    assert cli.main([str(word) for word in (*words, "--rule", "kobayashi2020", "--output", tmp_path / "same")]) == 0
    assert (tmp_path / "named").read_text() == (tmp_path / "same").read_text()
    none = generate("--norm-alignments", tmp_path / "none", "--norm-profile", "none")
    assert "0.0:awi,2" not in none
    assert (tmp_path / "none").read_text() == (tmp_path / "same").read_text()


@pytest.mark.slow  # a processor takes long for 16 bits
def test_the_profile_serves_16_bits(generate, demo, tmp_path, capsys):
    assert "maps 0.0:awi,2" in generate("--norm-alignments", tmp_path / "half", "--fp16")
    half = aligned(demo, tmp_path / "mine", "--word-table", 0, "--dtype", "float16")
    assert str(demo / "checkpoint.pt.align.json") in capsys.readouterr().err
    assert (tmp_path / "half").read_text() == half


def test_a_profile_of_another_model_stops_the_run(generate, tmp_path):
    other = DEMO / "checkpoint.en-de.pt.align.json"
    with pytest.raises(InputError, match=re.escape(f"{other}: is the profile of model")):
        generate("--norm-alignments", tmp_path / "a", "--norm-profile", other)
    assert not (tmp_path / "a").exists()
