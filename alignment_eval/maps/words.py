"""Word maps: the rows and columns of a map merged from subwords to words, and several maps combined into one.

A word map is [target words, source words + 1]; the last column stands for null.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.maps.sentence import Array, SentenceSide

#: Setting -> how many rows after its own index a target token's row lies.  Row r of a map predicts target
#: token r and has decoder input r, the token before it.
SETTINGS: dict[str, int] = {"awo": 0, "awi": 1}

#: What the rows and columns of a :class:`UnitMap` stand for.
UNITS = ("words", "subwords")
#: What is linked or drawn -> the units that stand for it.
LEVELS = {"word": "words", "token": "subwords"}

#: Ways to combine maps (:func:`combine`).
COMBINATIONS = ("mean", "product")

#: The least share that ``product`` takes the logarithm of: no single map can forbid a link.
FLOOR = 1e-6


@dataclass(frozen=True, eq=False)
class UnitMap:
    """Maps between the units, words or subwords, that rules choose among.

    ``scores`` is float64 [..., K, N]; ``row_words`` [K] the target word of each row; ``column_words`` [N] the source
    word of each column, -1 for null.
    """

    scores: NDArray[np.float64]
    row_words: NDArray[np.intp]
    column_words: NDArray[np.intp]


def require_known(what: str, name: str, known: Iterable[str]) -> None:
    """Check an option's value.

    Raises:
        UsageError: ``name`` is not among ``known``.
    """
    if name not in (names := list(known)):
        raise UsageError(f"unknown {what} {name!r}: expected one of {', '.join(names)}")


def word_map(maps: Array, source: SentenceSide, target: SentenceSide, setting: str) -> NDArray[np.float64]:
    """Merge the subwords of maps into words (Kobayashi et al. 2020, section 5).

    Columns: SUM over the subwords of a source word; one more column, the last, is the sum over the special source
    tokens (``</s>``, tags) and stands for null.  Rows: MEAN over the rows of a target word's subwords.

    Args:
        maps: [..., T, S]; row r predicts target token r.
        source: the S source tokens.
        target: the T target tokens.
        setting: ``awo``: token t has row t; ``awi``: row t + 1.

    Returns:
        float64 [..., target words, source words + 1].

    Raises:
        UsageError: the setting is unknown.
        InputError: the maps' shape is not that of the tokens, word indices are no count from 0, or AWI asks for a
            row beyond the map.
    """
    check_pair(maps, source, target)
    rows = token_rows(target, setting)
    # Sums over contiguous pieces, in one fixed order: equal pieces stay exact ties, which BLAS does not promise.
    starts = run_starts(source.words)
    pieces = np.add.reduceat(maps.astype(np.float64), starts, axis=-1)
    special = source.special[starts]
    null = np.add.reduce(pieces[..., special], axis=-1, keepdims=True)
    columns = np.concatenate([pieces[..., ~special], null], axis=-1)[..., rows, :]
    words = target.words[~target.special]
    lengths = np.bincount(words, minlength=target.word_count)
    merged: NDArray[np.float64] = np.add.reduceat(columns, run_starts(words), axis=-2) / lengths[:, None]
    return merged


def unit_map(maps: Array, source: SentenceSide, target: SentenceSide, setting: str, units: str) -> UnitMap:
    """The maps between words (:func:`word_map`) or subwords; those have a null column for each special source token.

    Arguments and errors as for :func:`word_map`; ``units`` is one of :data:`UNITS`.
    """
    require_known("units", units, UNITS)
    if units == "words":
        scores = word_map(maps, source, target, setting)
        return UnitMap(scores, np.arange(target.word_count), np.append(np.arange(source.word_count), -1))
    check_pair(maps, source, target)
    scores = maps[..., token_rows(target, setting), :].astype(np.float64)
    columns = np.where(source.special, -1, source.words).astype(np.intp)
    return UnitMap(scores, target.words[~target.special].astype(np.intp), columns)


def row_shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each row of ``scores`` [..., K, N], none below 0, divided by its sum; a row of zeros stays so."""
    if not scores.shape[-1]:
        return scores
    # One order of summation, whatever stands beside a map: see word_map.
    sums = np.add.reduceat(np.ascontiguousarray(scores), [0], axis=-1)
    return np.divide(scores, sums, out=np.zeros(scores.shape), where=sums > 0)


def two_way_shares(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """How much each cell of ``scores`` [..., K, N] has of its row and of its column, a number from 0 to 1.

    The geometric mean of its share of the row and, with all rows divided by their sums, of its share of the column:
    large where two words take each other, small for a source word that every target word takes a little of.
    """
    rows = row_shares(scores)
    columns = np.swapaxes(row_shares(np.swapaxes(rows, -1, -2)), -1, -2)
    shares: NDArray[np.float64] = np.sqrt(rows * columns)
    return shares


def terms(scores: NDArray[np.float64], how: str) -> NDArray[np.float64]:
    """What :func:`combine` adds up: the row shares of ``scores`` [..., K, N], or the logarithms of them."""
    require_known("combination", how, COMBINATIONS)
    shares = row_shares(scores)
    return shares if how == "mean" else np.log(np.maximum(shares, FLOOR))


def combined(total: NDArray[np.float64], count: int, how: str) -> NDArray[np.float64]:
    """The combination of ``count`` maps whose :func:`terms` add up to ``total``."""
    return total / count if how == "mean" else np.exp(total / count)


def combine(scores: NDArray[np.float64], how: str) -> NDArray[np.float64]:
    """One map from several, ``scores`` [M, K, N] to [K, N].

    Rows are divided by their sums first, null included, so that every map has the same say about every word.
    ``mean`` is then the arithmetic mean, ``product`` the geometric one of shares of :data:`FLOOR` or more.  A single
    map is returned as it is: dividing would only round it.  Terms are added in the order given.
    """
    added = terms(scores, how)
    return scores[0] if len(scores) == 1 else combined(reduce(np.add, added), len(scores), how)


def token_rows(target: SentenceSide, setting: str) -> NDArray[np.intp]:
    """The map rows of the ordinary target tokens under ``setting``.

    Raises:
        UsageError: the setting is unknown.
        InputError: AWI asks for a row beyond the map.
    """
    require_known("setting", setting, SETTINGS)
    rows = np.flatnonzero(~target.special) + SETTINGS[setting]
    if rows.size and rows[-1] >= len(target.tokens):
        raise InputError(
            "target without </s> at its end: AWI of the last token needs the row that predicts </s>; "
            "record with </s> or take setting 'awo'"
        )
    return rows


def check_pair(maps: Array, source: SentenceSide, target: SentenceSide) -> None:
    """Check that maps and tokens fit.

    Raises:
        InputError: the maps [..., T, S] are not of as many tokens, or the word indices of a side are not 0, 1, 2, …
            with each word in one piece.
    """
    if maps.shape[-2:] != (len(target.tokens), len(source.tokens)):
        raise InputError(
            f"a map of shape {'×'.join(map(str, maps.shape[-2:]))}: expected target × source tokens, "
            f"{len(target.tokens)}×{len(source.tokens)}; the records are damaged, record again"
        )
    for side in (source, target):
        runs = side.words[run_starts(side.words)]
        runs = runs[runs >= 0]
        if not np.array_equal(runs, np.arange(len(runs))):
            raise InputError(
                f"word indices of the tokens run {' '.join(map(str, runs))}: expected 0, 1, 2, … with each word in "
                f"one piece; the records are damaged, record again"
            )


def run_starts(words: Array) -> NDArray[np.intp]:
    """Where runs of one word index (or of -1) begin."""
    starts = np.ones(len(words), dtype=np.bool_)
    np.not_equal(words[1:], words[:-1], out=starts[1:])
    return np.flatnonzero(starts)
