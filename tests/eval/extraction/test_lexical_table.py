import copy
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import EMPTY, LEAST_SUM, check_match, count_lexical_table, supported
from alignment_eval.maps.words import balanced_shares, two_way_shares
from tests.facts import facts


def slow_two_way(scores):
    """Cell by cell; a row or column of zeros has shares of 0."""
    rows = [[cell / sum(row) if sum(row) else 0.0 for cell in row] for row in scores.tolist()]
    found = np.zeros(scores.shape)
    for t, s in np.ndindex(*scores.shape):
        column = sum(row[s] for row in rows)
        found[t, s] = math.sqrt(rows[t][s] * rows[t][s] / column) if column else 0.0
    return found


@given(shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)), seed=st.integers(0, 2**32 - 1))
def test_two_way_shares_cell_by_cell(shape, seed):
    target, source, levels = shape
    scores = np.random.default_rng(seed).integers(0, levels + 1, (2, target, source)).astype(np.float64)
    found = two_way_shares(scores)
    for index in range(2):
        np.testing.assert_allclose(found[index], slow_two_way(scores[index]), rtol=1e-12)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()
    # the scale of a row does not count
    np.testing.assert_allclose(two_way_shares(scores * np.arange(1, target + 1)[:, None]), found, rtol=1e-12)


def slow_balanced(scores):
    """Rows, then columns, are divided by their sums before."""
    rows = scores / np.where(scores.sum(axis=1, keepdims=True) > 0, scores.sum(axis=1, keepdims=True), 1)
    return slow_two_way(rows / np.where(rows.sum(axis=0) > 0, rows.sum(axis=0), 1))


def slow_evidence(word_map, shares):
    return np.rint(shares(word_map) ** 1.5 * 2**20) / 2**20


def slow_doubt(word_map):
    largest = [max(row) / sum(row) if sum(row) else 0.0 for row in word_map.tolist()]
    return 1 - sum(largest) / len(largest)


class SlowTable:
    """What each pair of the text adds, by pairs of words in dictionaries."""

    def __init__(self):
        self.added, self.counts = {}, ({}, {})

    def add(self, number, words, found):
        for side, counts in zip(words, self.counts):
            for word in side:
                counts[word] = counts.get(word, 0) + 1
        for t, s in np.ndindex(*found.shape):
            cell = words[0][s], words[1][t]
            self.added.setdefault(cell, []).append((number, float(found[t, s])))

    def step(self, words, word_map, weighed, shares, counted=None, weight=1.0):
        """One pass by the sums of the other pairs (all but number ``counted``), and a part of the cell's own evidence.

        A pair of words that the others have less than 0.01 of counts as 0.
        """
        own = slow_evidence(weighed, shares)
        found, exponent = np.zeros(word_map.shape), weight * slow_doubt(word_map)
        for t, s in np.ndindex(*word_map.shape):
            u, v = words[0][s], words[1][t]
            others = sum(added for number, added in self.added.get((u, v), []) if number is None or number != counted)
            others = 0.0 if others < LEAST_SUM else others
            scale = math.sqrt((self.counts[0].get(u, 0) + 1) * (self.counts[1].get(v, 0) + 1))
            found[t, s] = word_map[t, s] * ((others + 0.3 * own[t, s] + 0.01) / scale) ** exponent
        return found


def slow_count(pairs, shares, others=None, weight=1.0):
    """The table, with that of ``others`` if there are any, and the map of each pair as counting has left it."""
    weighed = [word_map for _, word_map in pairs]
    for _ in range(2):
        table = copy.deepcopy(others) or SlowTable()
        for number, ((words, _), now) in enumerate(zip(pairs, weighed)):
            table.add(number, words, slow_evidence(now, shares))
        steps = [(*pair, now, shares, number, weight) for number, (pair, now) in enumerate(zip(pairs, weighed))]
        weighed = [table.step(*step) for step in steps]
    return table, weighed


def slow_file(pairs, shares):
    """The table of a text as a file has it: without small sums, and without numbers of pairs."""
    table, _ = slow_count(pairs, shares)
    sums = {cell: sum(added for _, added in of_cell) for cell, of_cell in table.added.items()}
    table.added = {cell: [(None, total)] for cell, total in sums.items() if total >= LEAST_SUM}
    return table


def slow_reweight(table, words, word_map, shares, weight=1.0):
    """The map of a pair that was not counted."""
    weighed = word_map
    for _ in range(2):
        weighed = table.step(words, word_map, weighed, shares, weight=weight)
    return weighed


def random_text(seed, pairs=4, *letters):
    """Short pairs of few words, many of them twice, with rows and columns of zeros, and small shares."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(of), rng.integers(1, 5))) for of in letters or ("abc", "xyz"))
        found.append(((source, target), rng.choice([0.0, 0.03, 1, 2, 3], (len(target), len(source)))))
    return found


SHARES = {two_way_shares: slow_two_way, balanced_shares: slow_balanced}
TEXTS = given(seed=st.integers(0, 2**32 - 1), shares=st.sampled_from(list(SHARES)))
#: A word map whose side has no word.
NOTHING = (([], ["x"]), np.empty((1, 0)))


@TEXTS
def test_counted_pairs_as_by_hand(seed, shares):
    """Also with the table of another text, whose words are others in part."""
    pairs = random_text(seed)
    others, weight = random_text(seed + 1, seed % 3, "bcd", "wxy"), (1.0, 0.8)[seed % 2]
    given, _ = count_lexical_table(others, shares)
    _, expected = slow_count(pairs, SHARES[shares], slow_file(others, SHARES[shares]), weight)
    table, counted = count_lexical_table([*pairs, NOTHING], shares, given, weight)
    assert table.pairs == len(pairs) + len(others)
    *found, nothing = counted
    assert nothing.shape == (1, 0)
    for mine, wanted in zip(found, expected):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4)  # the shares of both may round to other units


@TEXTS
def test_other_pairs_as_by_hand(seed, shares):
    """By the sums of the table, also pairs that were counted, if they come as others; in both directions."""
    pairs = random_text(seed)
    table, _ = count_lexical_table(pairs, shares)
    slow = slow_file(pairs, SHARES[shares])
    assert (np.diff(table.cells) > 0).all()
    others = [*pairs, *random_text(seed + 1), ((["a", "new"], ["x", "newer"]), np.ones((2, 2)))]
    for words, word_map in others:
        expected = slow_reweight(slow, words, word_map, SHARES[shares])
        np.testing.assert_allclose(table.reweight(words, word_map, shares), expected, rtol=1e-3)
        np.testing.assert_array_equal(table.exchanged.sums_of(words[::-1]), table.sums_of(words).T)
        np.testing.assert_allclose(table.exchanged.scale(words[::-1]), table.scale(words).T)


@TEXTS
def test_no_table_is_an_empty_table(seed, shares):
    for words, word_map in random_text(seed):
        expected = slow_reweight(SlowTable(), words, word_map, SHARES[shares])
        np.testing.assert_allclose(EMPTY.reweight(words, word_map, shares), expected, rtol=1e-4)
    assert EMPTY.reweight(*NOTHING, shares).shape == (1, 0)


@given(seed=st.integers(0, 2**32 - 1))
def test_neighbours_cell_by_cell(seed):
    for _, word_map in random_text(seed):
        shares, expected = slow_balanced(word_map), np.zeros(word_map.shape)
        for t, s in np.ndindex(*word_map.shape):
            around = shares[max(t - 1, 0) : t + 2, max(s - 1, 0) : s + 2].sum() - shares[t, s]
            expected[t, s] = word_map[t, s] * (0.4 + around)
        np.testing.assert_allclose(supported(word_map, balanced_shares), expected, rtol=1e-9)


def test_the_order_of_the_pairs_changes_no_digit():
    """Nor how many are summed together."""
    pairs = random_text(3, pairs=1200)
    words = ["a", "b", "c"], ["x", "y", "z"]
    table, found = count_lexical_table(pairs, balanced_shares)
    again, backwards = count_lexical_table(pairs[::-1], balanced_shares)
    np.testing.assert_array_equal(table.sums_of(words), again.sums_of(words))
    for one, other in zip(found, list(backwards)[::-1]):
        np.testing.assert_array_equal(one, other)


def test_small_sums_are_dropped():
    """The share of a row of one target word is the square of its two-way share."""
    for share, kept in ((0.002, 1), (0.2, 2)):
        table, _ = count_lexical_table([((["a", "b"], ["x"]), np.array([[share, 1 - share]]))], two_way_shares)
        assert len(table.cells) == kept


GERMAN = [f"wort{number}" for number in range(50)]
ENGLISH = [f"word{number}" for number in range(50)]
#: 100 running words on each side.
TEXT = [(GERMAN, ENGLISH), (GERMAN, ENGLISH)]


@pytest.fixture(scope="module")
def lexical_table():
    return count_lexical_table([(words, np.ones((50, 50))) for words in TEXT], two_way_shares)[0]


def changed(words, count, to="{}?"):
    return [to.format(word) if k < count else word for k, word in enumerate(words)]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((changed(GERMAN, 26), ENGLISH), "of the text's 100 source words, 52 (52%) are not"),
        ((GERMAN, changed(ENGLISH, 40)), "of the text's 100 target words, 80 (80%) are not"),
        (
            (GERMAN, [word.capitalize() for word in ENGLISH[:3]] + ENGLISH[3:]),
            "the lexical table: of … 100 target words, 6 (6%) are in the lexical table in another case only",
        ),
    ],
    ids=["source", "target", "case"],
)
def test_other_text(lexical_table, pair, message):
    with pytest.raises(InputError, match=facts(message)):
        check_match(lexical_table, [pair, pair])


def test_text_like_its_own(lexical_table):
    check_match(lexical_table, [])
    half = (changed(GERMAN, 25), changed(ENGLISH, 25))
    check_match(lexical_table, [half, half])
    # 5 of 100 words are known in another case only
    check_match(lexical_table, [(GERMAN, [*map(str.upper, ENGLISH[:5]), *ENGLISH[5:]]), (GERMAN, ENGLISH)])
    check_match(lexical_table, [(ENGLISH, GERMAN), (ENGLISH[:49], GERMAN[:49])])  # too few words to judge
