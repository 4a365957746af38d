"""A model of OPUS-MT's form translates raw text as fairseq-generate does, and moves markup onto its translations."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

import fairseq_norm_plugin
from alignment_eval.transfer.markup import parse_markup
from tests.integration.models import test_opus

pytest.importorskip("sentencepiece")
pytest.importorskip("safetensors")


@pytest.fixture(scope="module")
def opus(made_once):
    return made_once("opus", test_opus.make)


@pytest.fixture(scope="module")
def model(opus):
    return fairseq_norm_plugin.load(opus / "out")


@pytest.mark.parametrize("beam", [3, 1])
def test_raw_text_gets_the_translations_of_fairseq_generate(opus, model, run_generate, beam):
    pieces = ("--bpe", "sentencepiece", "--sentencepiece-model", opus / "out" / "target.spm")
    plugin = ("--user-dir", Path(fairseq_norm_plugin.__file__).parent, "--task", "translation_norm")
    words = (opus / "data", "--path", opus / "out" / "checkpoint.pt", "-s", "de", "-t", "en", "--dataset-impl", "raw")
    generated = run_generate(*words, *plugin, *pieces, "--beam", beam).lines("D")
    expected = [content.split("\t") for _, _, content in generated]
    found = model.translate(test_opus.lines("de"), beam=beam)
    assert [pair.target for pair in found] == [text for _, text in expected]
    scores = [float(score) * math.log(2) for score, _ in expected]
    assert [pair.score for pair in found] == pytest.approx(scores, abs=1e-5)


def test_markup_goes_onto_the_translation_of_the_plain_text(model):
    lines = ["<p>wir sind <b>hier</b>.</p>", "ja<br>nein", "<a href='x'>das haus</a> ist alt"]
    plain = [parse_markup(line, "html").text for line in lines]
    moved = model.transfer_markup(lines, syntax="html", beam=2)
    assert [parse_markup(line, "html").text for line in moved] == [t.target for t in model.translate(plain, beam=2)]
