"""Word maps of several pairs at once, against each alone and against a slow loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from alignment_eval.maps.ragged_words import RaggedMaps, RaggedSides
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.words import SETTINGS, word_map

#: Tokens of each run of words, special tokens before and after them.
SIDES = st.tuples(st.lists(st.integers(1, 10), max_size=8), st.integers(0, 2), st.integers(0, 2))
CASES = st.tuples(st.lists(st.tuples(SIDES, SIDES), max_size=4), st.booleans(), st.integers(0, 2**32 - 1))
Side = tuple[list[int], int, int]
Case = tuple[list[tuple[Side, Side]], bool, int]


def side(drawn: Side, rng: np.random.Generator, spans: bool, end: int = 0) -> SentenceSide:
    runs, before, after = drawn
    words = np.array(
        [-1] * before + [k for k, n in enumerate(runs) for _ in range(n)] + [-1] * (after or end), np.int32
    )
    several = rng.integers(1, 4, len(runs)).astype(np.int32) if spans else None
    return SentenceSide(tuple("x" * len(words)), words, several)


def slow_word_map(
    map_: NDArray[np.float32], source: SentenceSide, target: SentenceSide, offset: int
) -> list[list[float]]:
    """Sums over the tokens of a source word and over special ones, means over those of a target word."""
    source_runs, target_runs = (
        [[t for t, word in enumerate(each.words) if word == run] for run in range(int(each.words.max(initial=-1)) + 1)]
        for each in (source, target)
    )
    null = [t for t, word in enumerate(source.words) if word < 0]
    spans = [
        [1] * len(runs) if s.spans is None else s.spans for runs, s in ((source_runs, source), (target_runs, target))
    ]
    result = []
    for rows, height in zip(target_runs, spans[1]):
        cells = []
        for columns, width in [*zip(source_runs, spans[0]), (null, 1)]:
            total = math.fsum(float(map_[row + offset, column]) for row in rows for column in columns)
            cells += [total / len(rows) / width] * width
        result += [cells] * height
    return result


@given(case=CASES)
def test_word_maps_are_those_of_each_pair_alone(case: Case) -> None:
    """Exactly, so that the links of a pair do not depend on the pairs beside it."""
    drawn, spans, seed = case
    rng = np.random.default_rng(seed)
    sources = [side(one, rng, spans) for one, _ in drawn]
    targets = [side(other, rng, spans, end=1) for _, other in drawn]
    rows, columns = (max([len(each.words) for each in sides], default=0) + 1 for sides in (targets, sources))
    maps = rng.random((2, len(drawn), rows, columns)).astype(np.float32)
    pads = [columns - len(source.words) for source in sources]
    origins = np.arange(len(drawn)) * rows * columns + np.array(pads, dtype=np.intp)
    merger = RaggedMaps(RaggedSides(sources), RaggedSides(targets), origins, columns)
    settings = ("awi", "awo")
    merged = merger.merged(merger.cells([(one.ravel(), SETTINGS[name]) for one, name in zip(maps, settings)]))
    for cells, padded, setting in zip(merged, maps, settings):
        for found, one, pad, source, target in zip(merger.shape.views(cells), padded, pads, sources, targets):
            cut = one[: len(target.words), pad:]
            assert found.tobytes() == word_map(cut, source, target, setting).tobytes()
            if found.size:
                np.testing.assert_allclose(found, slow_word_map(cut, source, target, SETTINGS[setting]), rtol=1e-12)


@pytest.mark.parametrize("words", [[0, 0, 2], [1, 2], [0, 1, 0], [0, -1, 0]], ids=str)
def test_words_out_of_order_are_not_sound(words: list[int]) -> None:
    sides = [SentenceSide(tuple("x" * len(w)), np.array(w, np.int32)) for w in ([0, 1, -1], words, [], [-1, 0])]
    assert RaggedSides(sides).sound.tolist() == [True, False, True, True]
    assert RaggedSides(sides).last.tolist()[0] == 1
