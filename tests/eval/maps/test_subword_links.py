from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links.table import GoldSentence, GoldTable, LinkTable
from alignment_eval.maps.subword_links import WordPieces, subword_links
from tests.facts import facts

pytestmark = pytest.mark.usefixtures("small_blocks")


def pieces(*sentences: str, mark: str = "@@") -> WordPieces:
    return WordPieces.of([sentence.split() for sentence in sentences], mark)


def table(*sentences: set[tuple[int, int]]) -> GoldTable:
    links = LinkTable.of(sentences)
    return GoldTable(links, links)


def test_each_subword_has_the_links_of_its_word():
    found = subword_links(table({(0, 1), (1, 0)}), pieces("a@@ b c"), pieces("x y@@ z"))
    assert found.sure.to_sentences() == [{(0, 1), (0, 2), (1, 1), (1, 2), (2, 0)}]
    assert found.possible is found.sure


@pytest.mark.parametrize(("mark", "text"), [("▁", "▁a b ▁c"), ("##", "a ##b c"), ("none", "a c")])
def test_other_marks(mark, text):
    found = subword_links(table({(1, 0)}), pieces(text, mark=mark), pieces("x"))
    assert found.sure.to_sentences() == [{(len(text.split()) - 1, 0)}]


# [sentence][word] -> number of subwords
SIDES = st.lists(st.tuples(*[st.lists(st.integers(1, 3), max_size=4)] * 2), max_size=6)


def spelled(counts: list[int]) -> list[str]:
    return [piece for count in counts for piece in ["a@@"] * (count - 1) + ["b"]]


def positions(counts: list[int], word: int) -> range:
    return range(sum(counts[:word]), sum(counts[: word + 1]))


@given(SIDES, st.data())
def test_as_by_obvious_loops(sides, data):
    cells = [[(i, j) for i in range(len(s)) for j in range(len(t))] for s, t in sides]
    possible = [{link: data.draw(st.sampled_from([0.25, 0.5])) for link in every[::2]} for every in cells]
    sure = [frozenset(list(links)[::2]) for links in possible]
    links = GoldTable.of([GoldSentence(s, frozenset(p)) for s, p in zip(sure, possible)])
    source, target = (WordPieces.of([spelled(pair[side]) for pair in sides], "@@") for side in (0, 1))
    found = subword_links(links, source, target)
    for table_, words in [(found.sure, sure), (found.possible, possible)]:
        assert table_.sentences == len(sides)
        assert table_.to_sentences() == [
            {(a, b) for i, j in some for a in positions(s, i) for b in positions(t, j)}
            for some, (s, t) in zip(words, sides)
        ]


def test_confidences_stay():
    links = LinkTable.of_keys(table({(0, 0), (1, 0)}).sure.keys, 1, np.array([0.25, 0.75]))
    found = subword_links(GoldTable(links, links), pieces("a b@@ c"), pieces("x@@ y")).sure
    assert found.to_sentences() == [{(i, j) for i in range(3) for j in range(2)}]
    assert found.confidence.tolist() == [0.25, 0.25, 0.75, 0.75, 0.75, 0.75]


@pytest.mark.parametrize(
    ("links", "found"), [({(2, 0)}, "sentence 3 has 2 words … word 2"), ({(0, 1)}, "sentence 3 has 1 words … word 1")]
)
def test_link_outside(links, found):
    with pytest.raises(InputError, match=facts(found)):
        subword_links(table(set(), set(), links), pieces("a", "", "a@@ b c"), pieces("x", "", "x@@ y"))


def test_unknown_mark():
    with pytest.raises(InputError, match="@@"):
        pieces("a", mark="@")
