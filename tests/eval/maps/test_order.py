"""Two-way shares, the order of words and what a rule compares, each against the slow obvious way."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.maps.words import ordered_shares, sharp_shares, two_way_shares

SEEDS = st.integers(0, 2**32 - 1)


def slow_two_way(scores):
    """Cell by cell, three times; a row or column of zeros has shares of 0."""
    for _ in range(3):
        rows, columns = scores.sum(axis=1), scores.sum(axis=0)
        found = np.zeros(scores.shape)
        for t, s in np.ndindex(*scores.shape):
            if scores[t, s]:
                found[t, s] = math.sqrt(scores[t, s] / rows[t] * scores[t, s] / columns[s])
        scores = found
    return scores


@given(shape=st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4)), seed=SEEDS)
def test_two_way_shares_cell_by_cell(shape, seed):
    target, source, levels = shape
    scores = np.random.default_rng(seed).integers(0, levels + 1, (2, target, source)).astype(np.float64)
    found = two_way_shares(scores)
    for index in range(2):
        np.testing.assert_allclose(found[index], slow_two_way(scores[index]), rtol=1e-12)
        np.testing.assert_array_equal(two_way_shares(scores[index].T), found[index].T)
    assert ((found >= 0) & (found <= 1 + 1e-12)).all()


def slow_order(rows, jump):
    """The posterior of each cell and the likelihood, by every way through the rows.

    A row links a column, or takes null and keeps the column; ``jump`` weighs the way from a column to another.
    """
    height, width = rows.shape
    jumps = np.array([[jump(k - i) for k in range(width)] for i in range(width)])
    jumps /= jumps.sum(axis=1, keepdims=True)
    posterior, total = np.zeros(rows.shape), 0.0
    for columns in itertools.product(range(width), repeat=height):
        for nulls in itertools.product([False, True], repeat=height):
            weight = 1 / width
            for row, (column, is_null) in enumerate(zip(columns, nulls)):
                if is_null:
                    weight *= 0.1 / width * (row == 0 or column == columns[row - 1])
                else:
                    weight *= 0.9 * rows[row, column] * (jumps[columns[row - 1], column] if row else 1)
            total += weight
            for row, (column, is_null) in enumerate(zip(columns, nulls)):
                posterior[row, column] += weight * (not is_null)
    return posterior / total, total


JUMPS = (lambda d: (1 + abs(d - 1)) ** -1.5, lambda d: (1 + abs(d + 1)) ** -1.5, lambda d: 1.0)


def slow_ordered(word_map):
    sides = [side / np.where(side.sum(axis=1, keepdims=True) > 0, side.sum(axis=1, keepdims=True), 1)
             for side in (word_map, word_map.T)]  # fmt: skip
    orders = [[slow_order(rows, jump) for rows in sides] for jump in JUMPS]
    weights = np.array([forward[1] * backward[1] for forward, backward in orders])
    weights /= weights.sum()
    means = [sum(weight * order[which][0] for weight, order in zip(weights, orders)) for which in (0, 1)]
    return np.sqrt(means[0] * means[1].T)


def random_maps(seed, count=3, longest=3):
    """Maps of small numbers, some of them 0."""
    rng = np.random.default_rng(seed)
    shapes = rng.integers(1, longest + 1, (count, 2))
    return [rng.choice([0.0, 0.03, 1, 2, 3], shape) for shape in shapes]


@given(seed=SEEDS)
def test_the_order_is_that_of_all_ways_through_the_rows(seed):
    maps = random_maps(seed)
    for found, word_map in zip(ordered_shares(maps), maps):
        np.testing.assert_allclose(found, slow_ordered(word_map), rtol=1e-9, atol=1e-12)


@given(seed=SEEDS, order=st.sampled_from([0.0, 0.35, 0.5]))
def test_shares_of_one_model_and_of_two(seed, order):
    """A map without words has none."""
    maps = random_maps(seed)
    fertility = np.random.default_rng(seed).random(maps[0].shape) * 3
    given = [(maps[0], fertility), (maps[1], None), (np.empty((1, 0)), None), (maps[2], None)]
    found, unordered = zip(*sharp_shares(given, order))
    assert found[2].shape == (1, 0)
    for shares, word_map in zip((found[0] / np.sqrt(np.sqrt(fertility)), found[1], found[3]), maps):
        expected = (1 - order) * slow_two_way(word_map) + order * slow_ordered(word_map)
        np.testing.assert_allclose(shares, expected, rtol=1e-9, atol=1e-12)
    for shares, (word_map, several) in zip(unordered, given):
        expected = slow_two_way(word_map) * (1 if several is None else several**0.25)
        np.testing.assert_allclose(shares, expected, rtol=1e-12)


@given(seed=SEEDS)
def test_both_directions_have_the_same_shares(seed):
    """To the last digit, whichever other pairs are with them in a batch."""
    maps = random_maps(seed, 5, 9)
    there = sharp_shares([(word_map, word_map) for word_map in maps], 0.5)
    back = sharp_shares([(word_map.T, word_map.T) for word_map in maps], 0.5)
    for (one, unordered), (other, back_unordered) in zip(there, back):
        np.testing.assert_array_equal(one, other.T)
        np.testing.assert_array_equal(unordered, back_unordered.T)
    for (one, _), word_map in zip(there, maps):
        np.testing.assert_allclose(sharp_shares([(word_map, word_map)], 0.5)[0][0], one, rtol=1e-9)


@pytest.mark.parametrize("turned", [False, True], ids=["the same order", "the opposite order"])
def test_neighbours_decide_between_equal_words(turned):
    """The second word could be any of three; it is the one between the counterparts of its neighbours."""
    word_map = np.array([[1, 0.01, 0.01], [1, 1, 1], [0.01, 0.01, 1]])
    word_map = word_map[:, ::-1] if turned else word_map
    (ordered,) = ordered_shares([word_map])
    assert ordered[1].argmax() == 1
    assert ordered[1, 1] > 1.5 * max(ordered[1, 0], ordered[1, 2])


def test_long_sentences_do_not_underflow_and_are_computed_in_smaller_groups():
    """More than 50,000 cells are not computed together."""
    long, short = np.eye(200) + 1e-6, np.array([[2.0, 1.0], [1.0, 3.0]])
    first, second, third = ordered_shares([long, short, long[::-1]])
    assert (first.diagonal() > 0.9).all()
    assert (third[::-1].diagonal() > 0.9).all()
    np.testing.assert_allclose(second, ordered_shares([short])[0], rtol=1e-12)
