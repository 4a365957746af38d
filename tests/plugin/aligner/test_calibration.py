from __future__ import annotations

from types import SimpleNamespace

from fairseq_norm_plugin.aligner import calibration
from fairseq_norm_plugin.aligner.calibration import can_align, usable_pairs


def model(longest):
    """A model that takes ``longest`` source tokens."""
    return SimpleNamespace(encode=lambda pair: pair, fits=lambda pair: len(pair[0]) <= longest)


def pair(source, target):
    return source.split(), target.split()


def test_each_model_reads_the_pair_in_its_direction():
    assert can_align(pair("a b c", "x"), [model(3)])
    assert not can_align(pair("a b c", "x"), [model(2)])
    assert can_align(pair("a b c", "x"), [model(3), model(1)])
    assert not can_align(pair("a b c", "x y"), [model(3), model(1)])


def test_a_side_without_words_cannot_be_aligned():
    assert not can_align(pair("", "x"), [model(3)])
    assert not can_align(pair("a", ""), [model(3)])


def test_the_first_different_pairs_in_their_order(monkeypatch):
    monkeypatch.setattr(calibration, "PAIRS", 3)
    text = iter([pair("a", "x"), pair("a", "x"), pair("", "y"), pair("b", "y"), pair("a", "z"), pair("c", "x")])
    assert usable_pairs(text, [model(3)]) == [pair("a", "x"), pair("b", "y"), pair("a", "z")]
    assert list(text) == [pair("c", "x")]  # read as far as needed
