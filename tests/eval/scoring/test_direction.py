from __future__ import annotations

import pytest

from alignment_eval.links.table import GoldSentence, GoldTable, LinkTable
from alignment_eval.scoring import direction
from alignment_eval.scoring.direction import SUSPICIOUS_GAIN, direction_warning


def test_direction_by_aer() -> None:
    gold = GoldTable.of([GoldSentence(frozenset({(0, 1), (1, 2), (2, 0), (3, 3)}))])
    right = LinkTable.of([{(0, 1), (1, 2), (2, 0), (3, 3)}])
    assert direction_warning("h", right, gold) is None
    warning = direction_warning("h", right.transposed(), gold)
    assert warning == (
        "h: AER of 1 sentences is 75.00 % with the links as they are and 0.00 % with source and target exchanged "
        "(0 and 0 links go beyond the gold's indices); if the direction is swapped, give --hyp-swap"
    )
    assert "omit --hyp-swap" in (direction_warning("h", right.transposed(), gold, swap=True) or "")


def test_direction_by_range_of_a_bad_alignment() -> None:
    gold = GoldTable.of([GoldSentence(frozenset({(2, 9), (0, 0)}))] * 6)
    bad = LinkTable.of([{(1, 8), (2, 7), (1, 3)}] * 6)
    assert direction_warning("h", bad, gold) is None
    warning = direction_warning("h", bad.transposed(), gold)
    assert warning is not None
    assert "100.00 % with the links as they are and 100.00 %" in warning
    assert "(18 and 0 links go beyond the gold's indices)" in warning


def test_few_gains_give_no_warning() -> None:
    """One link of ten the other way round is an error of the aligner, not of the reader."""
    links = {(k, k) for k in range(9)}
    gold = GoldTable.of([GoldSentence(frozenset({*links, (9, 10)}))])
    assert SUSPICIOUS_GAIN > 0.1
    assert direction_warning("h", LinkTable.of([{*links, (10, 9)}]), gold) is None


def test_sentences_without_gold_say_nothing_of_the_direction() -> None:
    gold = GoldTable.of([GoldSentence(frozenset())] * 20)
    assert direction_warning("h", LinkTable.of([{(1, 8)}] * 20), gold) is None
    swapped = LinkTable.of([{(8, 1), (7, 2)}] * 10 + [{(1, 8)}] * 20)
    gold = GoldTable.of([GoldSentence(frozenset({(2, 9)}))] * 10 + [GoldSentence(frozenset())] * 20)
    warning = direction_warning("h", swapped, gold)
    assert warning is not None
    assert "(20 and 0 links go beyond the gold's indices)" in warning


def test_direction_is_told_by_the_first_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    gold = GoldTable.of([GoldSentence(frozenset({(0, 1)}))] * 5)
    hypothesis = LinkTable.of([{(0, 1)}] * 2 + [{(1, 0)}] * 3)
    assert direction_warning("h", hypothesis, gold) is None  # 60 % and 40 %
    monkeypatch.setattr(direction, "LOOKED_AT", 2)
    assert direction_warning("h", hypothesis.transposed(), gold) is not None
    assert direction_warning("h", hypothesis, gold) is None
