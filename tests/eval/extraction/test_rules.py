from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import choose, stacked_maps
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import RULE_NAMES, RULES, SUPPORTED, apply_rule, grown, rule_of
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import SETTINGS, UnitMap, balanced_shares, two_way_shares, word_map
from tests.facts import facts

Factory = Callable[..., SentenceMaps]
Pairs = set[tuple[int, int]]

SHAPES = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))


def slow_links(scores: np.ndarray, name: str, value: float, null: str, final: bool) -> Pairs:
    """``threshold`` and ``top-k`` of one word map [Wt, Ws + 1], written out cell by cell."""
    target_words, source_words = scores.shape[0], scores.shape[1] - 1
    links: Pairs = set()
    for t in range(target_words):
        if final and t == target_words - 1:
            links.add((source_words - 1, t))
            continue
        columns = [s for s in range(source_words) if not (final and s == source_words - 1)]
        columns += [source_words] if null == "allow" else []
        total = sum(float(scores[t, s]) for s in columns)
        if name == "threshold":
            shares = {s: float(scores[t, s]) / total if total else 0.0 for s in columns}
            taken = [s for s in columns if shares[s] >= value]
        else:
            taken = sorted(columns, key=lambda s: (-scores[t, s], s))[: int(value)]
        links |= {(s, t) for s in taken if s < source_words}
    return links


def random_units(target: int, source: int, levels: int, seed: int, leading: tuple[int, ...] = (2, 3)) -> UnitMap:
    """Word maps of small integers: many ties, rows of zeros, and sums that are exact in any order."""
    scores = np.random.default_rng(seed).integers(0, levels + 1, (*leading, target, source + 1)).astype(np.float64)
    return UnitMap(scores, np.arange(target), np.append(np.arange(source), -1))


def links(units: UnitMap, rule: str, null: str = "allow", final: bool = False) -> np.ndarray:
    shape = len(units.column_words) - 1, len(units.row_words)
    return apply_rule(rule_of(rule), units, null, final).linked(*shape)


@given(
    shape=SHAPES,
    rule=st.sampled_from([*(("threshold", v) for v in (0, 0.2, 0.5, 1)), *(("top-k", k) for k in range(1, 7))]),
    null=st.sampled_from(["allow", "mask"]),
    final=st.booleans(),
)
def test_rules_are_those_of_the_slow_loop(
    shape: tuple[int, int, int, int], rule: tuple[str, float], null: str, final: bool
) -> None:
    units = random_units(*shape)
    final = final and shape[0] > 0 and shape[1] > 0
    found = links(units, f"{rule[0]}={rule[1]}", null, final)
    assert found.shape == (2, 3, shape[1], shape[0])
    for index in np.ndindex(2, 3):
        expected = slow_links(units.scores[index], *rule, null, final)
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


@given(shape=SHAPES, final=st.booleans(), null=st.sampled_from(["allow", "mask"]))
def test_top_1_is_kobayashi2020(shape: tuple[int, int, int, int], null: str, final: bool) -> None:
    units = random_units(*shape)
    final = final and shape[0] > 0 and shape[1] > 0
    np.testing.assert_array_equal(links(units, "top-k=1", null, final), links(units, "kobayashi2020", null, final))


@given(shape=SHAPES, values=st.tuples(st.floats(0, 1), st.floats(0, 1)), null=st.sampled_from(["allow", "mask"]))
def test_raising_the_threshold_never_adds_links(
    shape: tuple[int, int, int, int], values: tuple[float, float], null: str
) -> None:
    units = random_units(*shape)
    low, high = (links(units, f"threshold={value!r}", null) for value in sorted(values))
    assert not (high & ~low).any()


@given(shape=SHAPES, null=st.sampled_from(["allow", "mask"]))
def test_threshold_0_and_a_large_k_link_everything(shape: tuple[int, int, int, int], null: str) -> None:
    units = random_units(*shape)
    assert links(units, "threshold=0", null).all()
    assert links(units, "top-k=99", null).all()


@given(shape=SHAPES, k=st.integers(1, 5), null=st.sampled_from(["allow", "mask"]))
def test_a_larger_k_only_adds_links(shape: tuple[int, int, int, int], k: int, null: str) -> None:
    units = random_units(*shape)
    assert not (links(units, f"top-k={k}", null) & ~links(units, f"top-k={k + 1}", null)).any()


def test_threshold_by_hand() -> None:
    units = UnitMap(np.array([[4.0, 1, 5], [3, 3, 0], [0, 0, 0]]), np.arange(3), np.array([0, 1, -1]))
    assert np.argwhere(links(units, "threshold=0.4")).tolist() == [[0, 0], [0, 1], [1, 1]]
    # null masked: 4 of 5, not 4 of 10
    assert np.argwhere(links(units, "threshold=0.8", "mask")).tolist() == [[0, 0]]
    assert np.argwhere(links(units, "top-k=2")).tolist() == [[0, 0], [0, 1], [0, 2], [1, 1], [1, 2]]


def test_two_way_by_hand() -> None:
    """Both target words take the first source word most; the second one takes it less than the first does."""
    units = UnitMap(np.array([[9.0, 1, 5], [6, 4, 7]]), np.arange(2), np.array([0, 1, -1]))
    # shares of rows 0.9 0.1 / 0.6 0.4, of columns 0.6 0.2 / 0.4 0.8; null is masked and has no part
    shares = np.sqrt([[0.9 * 0.6, 0.1 * 0.2], [0.6 * 0.4, 0.4 * 0.8]])
    for least in (0.1, 0.4, 0.5, 0.57, 0.7, 0.8):
        np.testing.assert_array_equal(links(units, f"two-way={least}", "mask"), (shares >= least).T)
    assert np.argwhere(links(units, "two-way=0.5", "mask")).tolist() == [[0, 0], [1, 1]]
    # the last marks tied: the first word has its row for itself, and 1 / 1.6 of its column
    assert np.argwhere(links(units, "two-way=0.79", "mask", final=True)).tolist() == [[0, 0], [1, 1]]
    assert np.argwhere(links(units, "two-way=0.8", "mask", final=True)).tolist() == [[1, 1]]


def slow_grow(shares: np.ndarray, least: float) -> Pairs:
    """Rule ``grow`` of two-way shares [Wt, Ws], written out cell by cell."""
    cells = [(t, s) for t in range(shares.shape[0]) for s in range(shares.shape[1])]
    large = {(t, s) for t, s in cells if shares[t, s] >= least / 0.7}
    taken = set(large)
    for t, s in cells:
        free = [not any(row == t for row, _ in large), not any(column == s for _, column in large)]
        beside = bool(large & {(t - 1, s), (t + 1, s), (t, s - 1), (t, s + 1)})
        if shares[t, s] >= least and (all(free) or (any(free) and beside)):
            taken.add((t, s))
    return {(s, t) for t, s in taken}


@given(shape=SHAPES, least=st.sampled_from([0.0, 0.2, 0.35, 0.5, 0.7, 1.0]))
def test_grow_is_that_of_the_slow_loop(shape: tuple[int, int, int, int], least: float) -> None:
    units = random_units(*shape)
    found = links(units, f"grow={least}", "mask")
    for index in np.ndindex(2, 3):
        expected = slow_grow(two_way_shares(units.scores[index][:, :-1]), least)
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


@given(shape=SHAPES, least=st.sampled_from([0.0, 0.2, 0.35, 0.5, 0.7, 1.0]))
def test_balanced_is_grow_by_balanced_shares(shape: tuple[int, int, int, int], least: float) -> None:
    units = random_units(*shape)
    found = links(units, f"balanced={least}", "mask")
    for index in np.ndindex(2, 3):
        expected = slow_grow(balanced_shares(units.scores[index][:, :-1]), least)
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


def test_balanced_by_hand() -> None:
    """The second source word gets little from all target words, but most of it from the second."""
    units = UnitMap(np.array([[6.0, 2, 5], [4, 4, 5]]), np.arange(2), np.array([0, 1, -1]))
    # shares of the rows 3/4 1/4 / 1/2 1/2, of their columns 3/5 1/3 / 2/5 2/3, of its rows 9/14 5/14 / 3/8 5/8
    first, second = 9 / 14 + 3 / 8, 5 / 14 + 5 / 8
    columns = [[9 / 14 / first, 5 / 14 / second], [3 / 8 / first, 5 / 8 / second]]
    shares = np.sqrt(np.array([[9 / 14, 5 / 14], [3 / 8, 5 / 8]]) * columns)
    np.testing.assert_allclose(balanced_shares(units.scores[:, :-1]), shares, rtol=1e-12)
    np.testing.assert_allclose(balanced_shares(units.scores[:, :-1] * [[2], [3]]), shares, rtol=1e-12)
    assert np.argwhere(links(units, "grow=0.44", "mask")).tolist() == [[0, 0], [0, 1], [1, 1]]
    assert np.argwhere(links(units, "balanced=0.44", "mask")).tolist() == [[0, 0], [1, 1]]


def test_a_share_is_large_from_0_7_of_it_on() -> None:
    """0.2857 is 0.2 / 0.7: a cell of a row and a column with large shares is linked from there on."""
    for share, linked in ((0.284, False), (0.288, True)):
        assert grown(np.array([[share, 0.9], [0.9, 0.0]]), 0.2)[0, 0] == linked


def test_grow_by_hand() -> None:
    """From 0.3 on with support, from 0.43 on without."""
    shares = np.array([[0.5, 0.4, 0.0, 0.35], [0.0, 0.0, 0.6, 0.4], [0.35, 0.3, 0.29, 0.0], [0.0, 0.0, 0.0, 0.3]])
    # (0, 1) is beside (0, 0), and (1, 3) beside (1, 2): words without a link; (0, 3) and (2, 0) are beside none;
    # (2, 1) and (3, 3) link words without a link; (2, 2) is too small
    expected = [[1, 1, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0], [0, 0, 0, 1]]
    np.testing.assert_array_equal(grown(shares, 0.3), np.array(expected, dtype=np.bool_))


@given(shape=SHAPES, least=st.floats(0, 1), final=st.booleans())
def test_grow_links_lie_between_those_of_two_way(shape: tuple[int, int, int, int], least: float, final: bool) -> None:
    units = random_units(*shape)
    final = final and shape[0] > 0 and shape[1] > 0
    fewest = links(units, f"two-way={min(1, least / SUPPORTED)!r}", "mask", final) & (least <= SUPPORTED)
    found = links(units, f"grow={least!r}", "mask", final)
    assert not (fewest & ~found).any()
    assert not (found & ~links(units, f"two-way={least!r}", "mask", final)).any()


def test_rules_read_the_word_map(make_sentence: Factory) -> None:
    s = make_sentence(3, source="<de> a@@ b c . </s>", target="x y@@ z . </s>")
    maps = stacked_maps(s, "attn_n")
    for setting in SETTINGS:
        words = word_map(maps, s.source, s.target, setting)
        for rule, value in (("threshold", 0.25), ("top-k", 2)):
            linked = choose(maps, s, ExtractionOptions("attn_n", 0, setting=setting, rule=f"{rule}={value}")).linked(
                3, 3
            )
            for index in np.ndindex(maps.shape[:2]):
                expected = slow_links(words[index], rule, value, "allow", False)
                assert {(int(i), int(j)) for i, j in np.argwhere(linked[index])} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "argmax",
            "unknown rule 'argmax' … one of kobayashi2020, shift-att, threshold=SHARE, two-way=SHARE, grow=SHARE",
        ),
        ("argmax=2", "unknown rule 'argmax=2'"),
        ("threshold", "rule 'threshold' … threshold=SHARE"),
        ("top-k", "rule 'top-k' … top-k=COUNT"),
        ("kobayashi2020=1", "rule 'kobayashi2020=1' … 'kobayashi2020'"),
        ("threshold=", "rule 'threshold=' … from 0 to 1, such as threshold=0.2"),
        ("threshold=1.5", "rule 'threshold=1.5'"),
        ("threshold=nan", "rule 'threshold=nan'"),
        ("threshold=-0.1", "rule 'threshold=-0.1'"),
        ("two-way", "rule 'two-way' … two-way=SHARE"),
        ("two-way=2", "rule 'two-way=2' … from 0 to 1, such as two-way=0.2"),
        ("top-k=0", "rule 'top-k=0' … a number of … words, 1 or more, such as top-k=2"),
        ("top-k=2.5", "rule 'top-k=2.5' … a number of"),
        ("top-k=²", "rule 'top-k=²' … a number of"),
    ],
)
def test_bad_rules(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=facts(message)):
        rule_of(text)


def test_names_are_the_same_however_written() -> None:
    assert rule_of("threshold=.20").name == "threshold=0.2"
    assert rule_of("top-k=02").name == "top-k=2"
    assert ExtractionOptions("attn_w", 0, rule="threshold=1e-1").rule == "threshold=0.1"
    assert all(rule_of(rule).name == rule for rule in RULES)
    assert set(RULES) < set(RULE_NAMES)


def test_empty_sides(make_side: Callable[..., SentenceSide]) -> None:
    for source, target in (("</s>", "x </s>"), ("a </s>", "</s>")):
        s = SentenceMaps(0, make_side(source), make_side(target), (0,))
        maps = np.ones((len(s.target.tokens), len(s.source.tokens)))
        for rule in (*RULES, "threshold=0", "two-way=0", "grow=0", "top-k=3"):
            linked = choose(maps, s, ExtractionOptions("attn_w", 0, setting="awo", rule=rule, final_punctuation=True))
            assert not linked.linked(s.source.word_count, s.target.word_count).any()
