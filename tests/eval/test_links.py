from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links import MAX_INDEX, GoldSentence, GoldTable, Links, LinkTable, transpose

LINKS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)
CORPORA = st.lists(LINKS, max_size=6)


def test_possible_holds_sure() -> None:
    gold = GoldSentence(sure=frozenset({(0, 0), (1, 2)}), possible=frozenset({(1, 2), (3, 3)}))
    assert gold.possible == {(0, 0), (1, 2), (3, 3)}
    assert gold.sure == {(0, 0), (1, 2)}
    assert GoldSentence(frozenset({(4, 5)})).possible == {(4, 5)}


def test_transpose() -> None:
    assert transpose({(0, 1), (2, 2), (3, 0)}) == {(1, 0), (2, 2), (0, 3)}


@given(CORPORA)
def test_table_holds_the_sets(corpus: list[Links]) -> None:
    table = LinkTable.of(corpus)
    assert table.to_sentences() == corpus
    assert table.sentences == len(corpus)
    assert len(table) == sum(map(len, corpus))
    assert table.per_sentence().tolist() == [len(links) for links in corpus]
    assert table.transposed().to_sentences() == [transpose(links) for links in corpus]
    assert table.shifted(3).to_sentences() == [{(i + 3, j + 3) for i, j in links} for links in corpus]
    assert table.head(2).to_sentences() == corpus[:2]


@given(st.lists(st.tuples(LINKS, LINKS), max_size=6))
def test_set_operations(pairs: list[tuple[Links, Links]]) -> None:
    a, b = LinkTable.of([x for x, _ in pairs]), LinkTable.of([y for _, y in pairs])
    assert (a & b).to_sentences() == [x & y for x, y in pairs]
    assert (a | b).to_sentences() == [x | y for x, y in pairs]


@given(st.lists(st.tuples(LINKS, LINKS), max_size=6))
def test_gold_table_holds_the_sets(pairs: list[tuple[Links, Links]]) -> None:
    gold = [GoldSentence(sure, possible) for sure, possible in pairs]
    table = GoldTable.of(gold)
    assert table.to_sentences() == gold
    assert table.sentences == len(gold)
    turned = [GoldSentence(transpose(g.sure), transpose(g.possible)) for g in gold]
    assert table.transposed().to_sentences() == turned
    longer = table.with_sentences(len(gold) + 2).to_sentences()
    assert longer == [*gold, GoldSentence(frozenset()), GoldSentence(frozenset())]


def test_gold_table_adds_missing_sure_links_to_the_possible() -> None:
    table = GoldTable(LinkTable.of([{(0, 0)}]), LinkTable.of([{(1, 1)}]))
    assert table.possible.to_sentences() == [{(0, 0), (1, 1)}]


def test_unsorted_and_doubled_links_are_in_order_and_once() -> None:
    columns = (np.array(values, dtype=np.int64) for values in ([1, 0, 1, 1], [2, 5, 0, 2], [3, 5, 9, 3]))
    table = LinkTable.build(*columns, sentences=3)
    assert list(zip(table.sentence, table.source, table.target)) == [(0, 5, 5), (1, 0, 9), (1, 2, 3)]


def test_largest_index_survives() -> None:
    link = (MAX_INDEX, MAX_INDEX)
    assert LinkTable.of([frozenset(), frozenset({link})]).to_sentences() == [frozenset(), {link}]


@pytest.mark.parametrize(
    ("link", "message"),
    [
        ((-1, 0), f"source index -1 of a link: expected 0 to {MAX_INDEX}"),
        ((0, MAX_INDEX + 1), f"target index {MAX_INDEX + 1} of a link: expected 0 to {MAX_INDEX}"),
    ],
)
def test_index_out_of_bounds(link: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LinkTable.of([{link}])


def test_shift_below_zero_is_an_error() -> None:
    with pytest.raises(InputError, match="source index -1"):
        LinkTable.of([{(0, 1)}]).shifted(-1)


def test_too_many_sentences_is_an_error() -> None:
    empty = np.empty(0, dtype=np.int64)
    with pytest.raises(InputError, match="100000000 sentences: at most 8388607 fit"):
        LinkTable.build(empty, empty, empty, 10**8)
