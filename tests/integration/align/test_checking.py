"""Texts that are no translations of each other are warned of before the work starts."""

import numpy as np
import pytest
import torch

import fairseq_norm_plugin as fnp
from alignment_eval.errors import InputError
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.text_check import find_mismatch, sample_lines
from fairseq_norm_plugin.text.lines import PairReader, of_lists
from fairseq_norm_plugin.text.pair import TextPipeline
from fairseq_norm_plugin.text.subwords import BpeSegmenter, MarkedSubwords
from tests.demo import DEMO, in_pieces, lines, written
from tests.facts import says
from tests.integration.conftest import ROOT, demo_binarised

GERMAN, ENGLISH = lines("de"), lines("en")


def direction_of(folder, checkpoint, source, target):
    model = fnp.load(folder / checkpoint, folder, source, target)
    return with_pieces(model, BpeSegmenter(folder / "codes.bpe"), checkpoint)


def with_pieces(model, splitter, name):
    pipeline = TextPipeline(splitter)
    return Model(model.models, model.vocabularies, (pipeline,) * 2, name, model.forward.special_tokens)


@pytest.fixture(scope="module")
def direction():
    return direction_of(DEMO, "checkpoint.pt", "de", "en")


@pytest.fixture
def warned(direction, tmp_path):
    """The warning about two lists of lines."""

    def warned(source, target, direction=direction):
        text = of_lists(list(source), list(target), (None, None))
        reader = PairReader(text, (TextPipeline(MarkedSubwords("none")),) * 2)
        sample = [(number, reader.read(number, raw)) for number, raw in text.some(sample_lines(text.size))]
        found = find_mismatch(sample, direction)
        return found and found[1]

    return warned


#: Pairs drawn with repetition: the pair that lends another source must not be a copy.
DRAWN = np.random.default_rng(0).integers(0, 60, 300).tolist()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (GERMAN, ENGLISH),
        (GERMAN[:9], ENGLISH[3:12]),  # too few to tell that they are unrelated, or exchanged
        (ENGLISH[:9], GERMAN[:9]),
        ([""], [""]),
        ([GERMAN[k] for k in DRAWN], [ENGLISH[k] for k in DRAWN]),
    ],
)
def test_parallel_texts(warned, source, target):
    assert warned(source, target) is None
    assert torch.is_grad_enabled()


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        (ENGLISH, GERMAN, "source and target look exchanged"),
        (ENGLISH[:10], GERMAN[:10], "source and target look exchanged"),
        (GERMAN, GERMAN, "look like the same text"),
        (GERMAN[1:] * 2, ENGLISH[:-1] * 2, "do not look like translations"),
        (GERMAN, [*ENGLISH[:30], *ENGLISH[31:], "and so on ."], "lines 3 … missing or extra line"),
    ],
)
def test_texts_that_are_not(warned, source, target, named):
    assert says(warned(source, target), named)


@pytest.fixture(scope="module")
def dev(shared):
    """Source and target of real sentence pairs, tokenised and in lower case."""
    return [(shared / f"data/gold/cmu150/dev.{lang}").read_text().lower().splitlines()[:40] for lang in ("de", "en")]


@pytest.mark.shared
@pytest.mark.parametrize("kept", [1000, 8000])
def test_text_cut_by_other_codes(warned, dev, tmp_path, kept):
    """All pieces are known to the model, so that nothing else shows it."""
    codes = written(tmp_path / "codes", (DEMO / "codes.bpe").read_text().splitlines()[: kept + 1])
    model = fnp.load(DEMO / "checkpoint.pt", DEMO, "de", "en")
    direction = with_pieces(model, MarkedSubwords("@@"), "checkpoint.pt")
    found = warned(*(in_pieces(side, codes) for side in dev), direction)
    assert found is None if kept == 8000 else "cut by other BPE codes" in found


@pytest.mark.parametrize("pairs", [9, 10])
def test_python_makes_the_same_check(pairs, recwarn):
    """Exchanged and shifted lists are refused unless forced; below ten pairs nothing is scored."""
    model = fnp.load("demo", reverse_path="none", tokenizer="none")
    german, english = GERMAN[:pairs], ENGLISH[:pairs]
    shifted = german, english[3:] + english[:3], "do not look like translations of each other"
    exchanged = english, german, "source and target look exchanged"
    for source, target, said in (shifted, exchanged):
        if pairs < 10:
            model.align(source, target, profile="none")
        else:
            with pytest.raises(InputError, match=said):
                model.align(source, target, profile="none")
            model.align(source, target, profile="none", force=True)
    found = [str(warning.message) for warning in recwarn]
    for *_, said in (shifted, exchanged):
        assert sum(said in message for message in found) == (pairs >= 10)


@pytest.mark.parametrize("shift", [0, 7])
def test_fairseq_generate_makes_the_same_check(run_generate, tmp_path, capsys, shift):
    data = demo_binarised(tmp_path, in_pieces(GERMAN[shift : shift + 20]), in_pieces(ENGLISH[:20]))
    words = ["--path", DEMO / "checkpoint.pt", "--user-dir", ROOT / "fairseq_norm_plugin", "--score-reference"]
    run_generate(data, *words, "--task", "translation_norm", "--norm-alignments", tmp_path / "links")
    assert ("do not look like translations of each other" in capsys.readouterr().err) == (shift > 0)
