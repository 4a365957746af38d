from __future__ import annotations

from alignment_eval.links.sets import GoldSentence
from tests.eval.links.samples import gold


def test_possible_links_include_the_sure_ones() -> None:
    assert gold("0-0 1-2", "3-3").possible == {(0, 0), (1, 2), (3, 3)}
    assert gold("0-0", "0-0 1-1") == gold("0-0", "1-1")
    assert GoldSentence({(0, 0)}).sure == frozenset({(0, 0)})
