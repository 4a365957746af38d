import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.lexical_table import LEAST_SUM, PRIOR, check_match, count_lexical_table
from alignment_eval.maps.words import two_way_shares
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


def slow_association(pairs, shares, left_out, u, v):
    """That of two words by a sum over all cells of the text but one."""
    total, source_count, target_count = 0.0, 1, 1
    for k, (source, target) in enumerate(pairs):
        if source and target:
            source_count += source.count(u)
            target_count += target.count(v)
        for t, s in np.ndindex(*shares[k].shape):
            if target[t] == v and source[s] == u and (k, t, s) != left_out:
                total += float(shares[k][t, s]) ** 1.5
    return (total + 0.03) / math.sqrt(source_count * target_count)


def slow_lexical_table(pairs, passes, exponent):
    """The shares that are counted last, and the reweighted maps."""
    words = [of_pair for of_pair, _ in pairs]
    weighed = [scores for _, scores in pairs]
    shares = []
    for _ in range(passes):
        shares = [slow_two_way(scores) for scores in weighed]
        weighed = [np.zeros(scores.shape) for _, scores in pairs]
        for k, ((source, target), scores) in enumerate(pairs):
            for t, s in np.ndindex(*scores.shape):
                weight = slow_association(words, shares, (k, t, s), source[s], target[t])
                weighed[k][t, s] = scores[t, s] * weight**exponent
    return shares, weighed


def random_text(seed, pairs=4):
    """Short pairs of few words, with rows and columns of zeros, and sides without a word."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(pairs):
        source, target = (list(rng.choice(list(letters), rng.integers(0, 5))) for letters in ("abc", "xyz"))
        found.append(((source, target), rng.integers(0, 4, (len(target), len(source))).astype(np.float64)))
    return found


TEXTS = given(seed=st.integers(0, 2**32 - 1), passes=st.integers(1, 3), exponent=st.sampled_from([1.0, 0.5, 1 / 3]))


@TEXTS
def test_counted_pairs_as_by_hand(seed, passes, exponent):
    pairs = random_text(seed)
    _, expected = slow_lexical_table(pairs, passes, exponent)
    lexical_table, found = count_lexical_table(pairs, passes, exponent)
    assert lexical_table.pairs == sum(scores.size > 0 for _, scores in pairs)
    for mine, wanted in zip(found, expected):
        np.testing.assert_allclose(mine, wanted, rtol=1e-9)


@TEXTS
def test_other_pairs_as_by_hand(seed, passes, exponent):
    """By the totals: also pairs that were counted, if they come as others."""
    pairs = random_text(seed)
    lexical_table, _ = count_lexical_table(pairs, passes, exponent)
    shares, _ = slow_lexical_table(pairs, passes, exponent)
    words = [of_pair for of_pair, _ in pairs]
    assert (np.diff(lexical_table.cells) > 0).all()
    for (source, target), scores in [*pairs, *random_text(seed + 1), ((["a", "new"], ["x", "newer"]), np.ones((2, 2)))]:
        found = lexical_table.reweight((source, target), scores, exponent)
        for t, s in np.ndindex(*scores.shape):
            weight = slow_association(words, shares, (-1, -1, -1), source[s], target[t])
            # float32, and sums below the least one are 0
            assert found[t, s] <= scores[t, s] * weight**exponent * (1 + 1e-6)
            assert found[t, s] >= scores[t, s] * (weight * PRIOR / (PRIOR + LEAST_SUM)) ** exponent * (1 - 1e-6)


@pytest.mark.parametrize("pairs", [[], [(([], ["x"]), np.empty((1, 0)))]], ids=["no pairs", "no words"])
def test_a_text_of_nothing_has_a_lexical_table(pairs):
    lexical_table, found = count_lexical_table(pairs, 2, 1)
    assert (lexical_table.pairs, len(lexical_table.cells)) == (0, 0)
    assert [scores.shape for scores in found] == [scores.shape for _, scores in pairs]
    np.testing.assert_allclose(lexical_table.reweight((["a"], ["x"]), np.ones((1, 1)), 1), PRIOR)
    assert lexical_table.reweight((["a"], []), np.empty((0, 1)), 1).shape == (0, 1)


def test_sums_below_a_thousandth_are_dropped():
    """The share of a row of one target word is the square of its two-way share."""
    for share, kept in ((0.98e-4, 1), (1.02e-4, 2)):
        lexical_table, _ = count_lexical_table([((["a", "b"], ["x"]), np.array([[share, 1 - share]]))], 1, 1)
        assert len(lexical_table.cells) == kept


GERMAN = [f"wort{number}" for number in range(50)]
ENGLISH = [f"word{number}" for number in range(50)]
#: 100 running words on each side.
TEXT = [(GERMAN, ENGLISH), (GERMAN, ENGLISH)]


@pytest.fixture(scope="module")
def lexical_table():
    return count_lexical_table([(words, np.ones((50, 50))) for words in TEXT], 1, 1)[0]


def changed(words, count, to="{}?"):
    return [to.format(word) if k < count else word for k, word in enumerate(words)]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((changed(GERMAN, 26), ENGLISH), "of the text's 100 source words, 52 (52%) are not"),
        ((GERMAN, changed(ENGLISH, 40)), "of the text's 100 target words, 80 (80%) are not"),
        ((ENGLISH, GERMAN), "source words, 100 (100%) are not in the lexical table … of the same languages"),
        (
            (GERMAN, [word.capitalize() for word in ENGLISH[:3]] + ENGLISH[3:]),
            "the lexical table: of … 100 target words, 6 (6%) are in the lexical table in another case only",
        ),
    ],
    ids=["source", "target", "languages exchanged", "case"],
)
def test_other_text(lexical_table, pair, message):
    with pytest.raises(InputError, match=facts(message)):
        check_match(lexical_table, [pair, pair])


def test_text_like_its_own(lexical_table):
    check_match(lexical_table, TEXT)
    check_match(lexical_table, iter([]))
    half = (changed(GERMAN, 25), changed(ENGLISH, 25))
    check_match(lexical_table, [half, half])
    # known in upper case only: up to 5 %
    check_match(lexical_table, [(GERMAN, changed(ENGLISH, 5, "W{}").copy()), (GERMAN, ENGLISH)])
    few = ([word.upper() for word in GERMAN[:2]], [word.upper() for word in ENGLISH[:5]])
    check_match(lexical_table, [few, (GERMAN, ENGLISH), (GERMAN, ENGLISH)])
