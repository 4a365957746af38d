from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.subwords import subword_links, word_pieces
from tests.eval.links.samples import gold


@pytest.mark.parametrize(
    ("mark", "text", "pieces"),
    [("@@", "a@@ b c", [[0, 1], [2]]), ("▁", "▁a b ▁c", [[0, 1], [2]]), ("##", "a ##b c", [[0, 1], [2]]),
     ("none", "a c", [[0], [1]]), ("@@", "", [])],
)  # fmt: skip
def test_the_subwords_of_each_word(mark, text, pieces):
    assert word_pieces(text.split(), mark) == pieces


def test_each_subword_has_the_links_and_the_confidence_of_its_word():
    links = GoldSentence(frozenset({(0, 1)}), frozenset({(1, 0)}), {(0, 1): 0.25, (1, 0): 0.75})
    made = subword_links(links, [[0, 1], [2]], [[0], [1, 2]])
    assert made == gold("0-1 0-2 1-1 1-2", "2-0")
    assert made.confidence == {(0, 1): 0.25, (0, 2): 0.25, (1, 1): 0.25, (1, 2): 0.25, (2, 0): 0.75}


COUNTS = st.lists(st.integers(1, 3), max_size=4)


@given(COUNTS, COUNTS, st.data())
def test_as_by_obvious_loops(source, target, data):
    cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = data.draw(st.frozensets(st.sampled_from(cells))) if cells else frozenset()
    sides = [
        [list(range(sum(counts[:k]), sum(counts[: k + 1]))) for k in range(len(counts))] for counts in (source, target)
    ]
    made = subword_links(GoldSentence(links), *sides)
    assert made == GoldSentence(frozenset((a, b) for i, j in links for a in sides[0][i] for b in sides[1][j]))
