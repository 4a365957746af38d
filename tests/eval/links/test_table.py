from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links import table as links
from alignment_eval.links.table import (
    MAX_INDEX,
    GoldSentence,
    GoldTable,
    Link,
    Links,
    LinkTable,
    above,
    each_scored,
    first_with,
    transpose,
)
from tests.facts import facts

pytestmark = pytest.mark.usefixtures("small_blocks")

LINKS = st.frozensets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=12)
CORPORA = st.lists(LINKS, max_size=6)


Scored = dict[Link, float]
SCORED = st.lists(
    st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)), st.sampled_from([0.25, 0.5, 1.0]), max_size=12),
    max_size=6,
)


def scored_table(corpus: list[Scored]) -> LinkTable:
    table = LinkTable.of(corpus)
    confidence = [links[link] for links in corpus for link in sorted(links)]
    return replace(table, confidence=np.array(confidence, dtype=np.float64))


def scored_sentences(table: LinkTable) -> list[Scored]:
    assert table.confidence is not None
    result: list[Scored] = [{} for _ in range(table.sentences)]
    for n, i, j, p in zip(*(c.tolist() for c in (table.sentence, table.source, table.target, table.confidence))):
        result[n][i, j] = p
    return result


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


@given(st.lists(st.tuples(LINKS, LINKS), max_size=6), st.sampled_from([1, 3, links._LOOKED_UP]))
def test_set_operations(pairs: list[tuple[Links, Links]], at_a_time: int) -> None:
    a, b = LinkTable.of([x for x, _ in pairs]), LinkTable.of([y for _, y in pairs])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_LOOKED_UP", at_a_time)
        assert (a & b).to_sentences() == [x & y for x, y in pairs]
    assert (a | b).to_sentences() == [x | y for x, y in pairs]


@given(CORPORA, st.integers(0, 7), st.sampled_from([1, 3, links._LOOKED_UP]))
def test_first_with(corpus: list[Links], index: int, at_a_time: int) -> None:
    flat = [link for sentence in corpus for link in sorted(sentence)]
    expected = next((k for k, link in enumerate(flat) if index in link), None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(links, "_LOOKED_UP", at_a_time)
        assert first_with(LinkTable.of(corpus), index) == expected


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


@given(SCORED)
def test_confidences_stay_with_their_links(corpus: list[Scored]) -> None:
    table = scored_table(corpus)
    assert scored_sentences(table) == corpus
    assert scored_sentences(table.transposed()) == [{(j, i): p for (i, j), p in links.items()} for links in corpus]
    assert scored_sentences(table.shifted(2)) == [
        {(i + 2, j + 2): p for (i, j), p in links.items()} for links in corpus
    ]
    assert scored_sentences(table.head(2)) == corpus[:2]
    assert scored_sentences(above(table, 0.5)) == [{k: p for k, p in links.items() if p >= 0.5} for links in corpus]
    gold = GoldTable(table, table)
    assert scored_sentences(gold.above(0.5).possible) == scored_sentences(gold.above(0.5).sure)


@given(st.lists(st.tuples(*2 * [st.dictionaries(st.tuples(*2 * [st.integers(0, 4)]), st.sampled_from([0.25, 1.0]))])))
def test_confidences_in_set_operations(pairs: list[tuple[Scored, Scored]]) -> None:
    a, b = scored_table([x for x, _ in pairs]), scored_table([y for _, y in pairs])
    assert scored_sentences(a & b) == [{link: p for link, p in x.items() if link in y} for x, y in pairs]
    assert scored_sentences(a | b) == [{link: max(x.get(link, 0), y.get(link, 0)) for link in x | y} for x, y in pairs]
    plain = replace(b, confidence=None)
    assert (a & plain).confidence is not None
    assert (plain & a).confidence is (plain | a).confidence is (a | plain).confidence is None


def test_doubled_link_keeps_its_largest_confidence() -> None:
    columns = (np.array(values, dtype=np.int64) for values in ([0, 0, 0], [1, 1, 0], [1, 1, 0]))
    table = LinkTable.build(*columns, sentences=1, confidence=np.array([0.25, 0.5, 0.125]))
    assert scored_sentences(table) == [{(0, 0): 0.125, (1, 1): 0.5}]


@pytest.mark.parametrize(
    ("confidence", "message"),
    [
        ([0.5], "1 confidences … 2 links"),
        ([0.5, float("nan")], "a confidence is NaN or infinite"),
        ([0.5, float("inf")], "a confidence is NaN or infinite"),
    ],
)
def test_bad_confidences(confidence: list[float], message: str) -> None:
    with pytest.raises(InputError, match=facts(message)):
        replace(LinkTable.of([{(0, 0), (1, 1)}]), confidence=np.array(confidence))


def test_bad_thresholds() -> None:
    with pytest.raises(InputError, match=facts("threshold 0.5 … links with scores, i-j:p")):
        above(LinkTable.of([{(0, 0)}]), 0.5)
    with pytest.raises(InputError, match="confidence threshold is NaN"):
        above(scored_table([{(0, 0): 1.0}]), float("nan"))


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
        ((-1, 0), f"source index -1 … 0 to {MAX_INDEX}"),
        ((0, MAX_INDEX + 1), f"target index {MAX_INDEX + 1} … 0 to {MAX_INDEX}"),
    ],
)
def test_index_out_of_bounds(link: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=facts(message)):
        LinkTable.of([{link}])


def test_shift_below_zero_is_an_error() -> None:
    with pytest.raises(InputError, match="source index -1"):
        LinkTable.of([{(0, 1)}]).shifted(-1)


def test_too_many_sentences_is_an_error() -> None:
    empty = np.empty(0, dtype=np.int64)
    with pytest.raises(InputError, match=facts("100000000 sentences … (at most 8388607)")):
        LinkTable.build(empty, empty, empty, 10**8)


@pytest.mark.parametrize("size", [1, 2, 100])
def test_sentences_come_in_blocks(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(links, "BLOCK", size)
    corpus: list[Scored] = [{(2, 1): 2.0, (0, 3): 0.5}, {}, {}, {(0, 0): 1.0}, {}]
    table = scored_table(corpus)
    assert list(table.each_sentence()) == [frozenset(row) for row in corpus]
    assert list(each_scored(table)) == corpus
    assert [list(row) for row in each_scored(table)] == [sorted(row) for row in corpus]
    with pytest.raises(InputError, match=facts("links with scores")):
        next(each_scored(replace(table, confidence=None)))


def test_nested_is_what_construction_makes_of_links_that_are_nested() -> None:
    sure, possible = LinkTable.of([[(0, 0)], [(1, 2)]]), LinkTable.of([[(0, 0), (3, 1)], [(1, 2)]])
    found, expected = GoldTable.nested(sure, possible), GoldTable(sure, possible)
    assert found.sure is sure
    assert found.possible is expected.possible is possible
