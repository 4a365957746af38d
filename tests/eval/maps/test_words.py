"""Combinations of maps; word maps themselves are tested with the rules that read them (test_extract.py)."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import links_of, read_word_map, stacked_maps
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.words import COMBINATIONS, FLOOR, combine, subword_map, word_map, words_of_subwords

MAPS = st.tuples(st.integers(1, 5), st.integers(0, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))


def random_maps(shape):
    """Maps [M, K, N] of positive numbers, small ones and zeros."""
    rng = np.random.default_rng(shape[3])
    return rng.uniform(size=shape[:3]) * rng.choice([0, 1e-9, 1, 30], size=shape[:3])


def slow_combine(maps, how):
    result = np.zeros(maps.shape[1:])
    for t, s in np.ndindex(result.shape):
        shares = []
        for m in maps:
            total = math.fsum(m[t])
            shares.append(m[t, s] / total if total else 0.0)
        if how == "mean":
            result[t, s] = math.fsum(shares) / len(shares)
        else:
            result[t, s] = math.prod(max(share, 1e-6) for share in shares) ** (1 / len(shares))
    return result


@given(shape=MAPS, how=st.sampled_from(COMBINATIONS))
def test_combinations_are_those_of_the_slow_loop(shape, how):
    maps = random_maps(shape)
    if len(maps) > 1:
        np.testing.assert_allclose(combine(maps, how), slow_combine(maps, how), rtol=1e-12)
    else:
        assert combine(maps, how) is maps[0] or np.array_equal(combine(maps, how), maps[0])
    assert FLOOR == 1e-6


def options(names, **fields):
    return ExtractionOptions("attn_n", names, **{"setting": "awi", **fields})


@pytest.mark.parametrize("how", COMBINATIONS)
@pytest.mark.parametrize("rule", ["kobayashi2020", "shift-att"])
@pytest.mark.parametrize("own", ["", ":awo"], ids=["one setting", "a setting of its own"])
def test_several_maps(make_sentence, rule, how, own):
    s = make_sentence(5, source="<de> a@@ b c . </s>", target="x y@@ z . </s>")
    stacked = stacked_maps(s, "attn_n")
    settings = [("awi", stacked[1, 2]), (own[1:] or "awi", stacked[0, 0]), ("awi", stacked[1, 3])]
    rows, columns = np.arange(3), np.array([0, 1, 2, -1])
    merge = word_map
    if rule == "shift-att":
        merge, (rows, columns) = subword_map, words_of_subwords(s.source, s.target)
    combined = slow_combine(np.stack([merge(one, s.source, s.target, setting) for setting, one in settings]), how)
    if rule == "shift-att":
        combined = np.where(columns < 0, -1, combined)
    best = columns[combined.argmax(axis=-1)]
    read = options(f"1.2,0.0{own},1", rule=rule, combine=how)
    found = read_word_map(s, read, keep=True)
    assert links_of(found.linked(read)) == {(int(i), int(j)) for i, j in zip(best, rows) if i >= 0}
    words = np.stack([word_map(one, s.source, s.target, setting) for setting, one in settings])
    shares = slow_combine(words, how)
    shares /= shares.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(found.shares, shares, rtol=1e-12)
    np.testing.assert_allclose(found.maps, words / words.sum(axis=-1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("setting", ["awo", "awi"])
def test_words_that_pieces_span(setting):
    """By hand: the words of a target run have its row, those of a source run equal parts of its column."""
    source = SentenceSide(("a", "bc", "</s>"), np.array([0, 1, -1]), np.array([1, 2]), ("a", "b", "c"))
    target = SentenceSide(("xyz", "u", "v", "</s>"), np.array([0, 1, 1, -1]), np.array([3, 1]), ("x", "y", "z", "uv"))
    maps = np.arange(1.0, 13.0).reshape(4, 3)
    first = {"awo": maps[0], "awi": maps[1]}[setting]
    second = {"awo": maps[1:3], "awi": maps[2:4]}[setting].mean(axis=0)
    expected = [[row[0], row[1] / 2, row[1] / 2, row[2]] for row in (first, first, first, second)]
    assert word_map(maps, source, target, setting).tolist() == expected
    assert (source.word_count, source.word_strings()) == (3, ["a", "b", "c"])
    with pytest.raises(InputError, match="subwords of this text span several of its words"):
        subword_map(maps, source, target, setting)
