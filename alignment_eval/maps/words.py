"""Word maps: merges the rows and columns of maps from subwords to words, and combines several maps into one.

A word map is [target words, source words + 1]; the last column stands for null.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError, shown
from alignment_eval.maps.sentence import Array, SentenceSide

Floats = NDArray[np.float64]

#: Setting -> offset of a target token's row from the token's index.  Row r of a map predicts target token r and has
#: decoder input r, which is the token before it.
SETTINGS: dict[str, int] = {"awo": 0, "awi": 1}

#: What is linked or drawn -> the units of its map: its rows and columns.
LEVELS = {"word": "words", "token": "subwords"}

#: Ways to combine maps (:func:`combine`).
COMBINATIONS = ("mean", "product")

#: How often :func:`two_way_shares` divides by the sums of rows and columns.
ROUNDS = 3

#: ``product`` raises smaller shares to this one before it takes logarithms, so that no single map can forbid a link.
FLOOR = 1e-6


def require_known(what: str, name: str, known: Iterable[str]) -> None:
    """Check an option's value; raises UsageError if ``name`` is not among ``known``."""
    if name not in (names := list(known)):
        raise UsageError(f"unknown {what} {shown(name)}; choose one of {', '.join(names)}")


def word_map(maps: Array, source: SentenceSide, target: SentenceSide, setting: str) -> Floats:
    """Merge the subwords of maps into words (Kobayashi et al. 2020, section 5).

    Columns: SUM over the subwords of a source word.  The extra last column stands for null; it is the sum over the
    special source tokens (``</s>``, tags).  Rows: MEAN over the rows of a target word's subwords.  Where subwords span
    several words (:class:`~alignment_eval.maps.sentence.SentenceSide`), each target word has the row of its run, and
    each source word an equal part of the column, so that a row keeps its sum.

    ``maps`` [..., T, S]: row r predicts target token r; token t has row t in ``awo``, row t + 1 in ``awi``.  Returns
    float64 [..., target words, source words + 1].
    """
    rows = token_rows(maps, source, target, setting)
    # Sums over contiguous subwords in a fixed order: equal ones stay exact ties, which BLAS does not guarantee.
    starts = source.runs
    sums = np.add.reduceat(maps.astype(np.float64), starts, axis=-1)
    special = source.special[starts]
    null = np.add.reduce(sums[..., special], axis=-1, keepdims=True)
    columns = np.concatenate([sums[..., ~special], null], axis=-1)[..., rows, :]
    words = target.words[~target.special]
    starts = np.flatnonzero(np.diff(words, prepend=-1))
    word_scores: Floats = np.add.reduceat(columns, starts, axis=-2) / np.bincount(words)[:, None]
    if target.words_per_run is not None:
        word_scores = np.repeat(word_scores, target.words_per_run, axis=-2)
    if source.words_per_run is not None:
        counts = np.append(source.words_per_run, 1)
        word_scores = np.repeat(word_scores / counts, counts, axis=-1)
    return word_scores


def subword_map(maps: Array, source: SentenceSide, target: SentenceSide, setting: str) -> Floats:
    """The rows of the target's subwords: float64 [..., target subwords, source tokens]; arguments as for word_map."""
    token_maps = maps[..., token_rows(maps, source, target, setting), :]
    if source.words_per_run is not None or target.words_per_run is not None:
        raise InputError(
            "subwords of this text span several of its words, so subwords cannot stand for words; choose a rule that "
            "reads words, such as kobayashi2020 or two-way"
        )
    return token_maps.astype(np.float64)


def words_of_subwords(source: SentenceSide, target: SentenceSide) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The target word of each row of a :func:`subword_map`, and the source word of each column, -1 for null."""
    columns = np.where(source.special, -1, source.words).astype(np.intp)
    return target.words[~target.special].astype(np.intp), columns


def row_shares(scores: Floats) -> Floats:
    """Each row of ``scores`` [..., K, N], none below 0, divided by its sum; rows of zeros stay zero."""
    if not scores.shape[-1]:
        return scores
    sums = _row_sums(scores)
    return np.divide(scores, sums, out=np.zeros(scores.shape), where=sums > 0)


def _row_sums(scores: Floats) -> Floats:
    """The sums of rows [..., K, 1].  The order of summation is fixed, whatever the leading axes: see word_map."""
    sums: Floats = np.add.reduceat(np.ascontiguousarray(scores), [0], axis=-1)
    return sums


def two_way_shares(scores: Floats) -> Floats:
    """The share that each cell of ``scores`` [..., K, N] has of its row and of its column, from 0 to 1.

    Three times each cell becomes the geometric mean of its share of the row and its share of the column, so that all
    words of both sides come to weigh the same.  Rows and columns exchanged, the shares are the same.
    """
    for _ in range(ROUNDS if scores.size else 0):
        roots = np.sqrt(_row_sums(scores)) * np.sqrt(np.swapaxes(_row_sums(np.swapaxes(scores, -1, -2)), -1, -2))
        scores = np.divide(scores, roots, out=np.zeros(scores.shape), where=roots > 0)
    return scores


def combine(scores: Floats, how: str) -> Floats:
    """Combine several maps into one: ``scores`` [M, K, N] to [K, N].

    Rows, null included, are first divided by their sums, so that maps are weighted equally.  ``mean`` is the arithmetic
    mean of these shares, ``product`` the geometric mean of shares of at least :data:`FLOOR`.  A single map is returned
    unchanged, because a division would only round it.  Terms are added in the given order.
    """
    combined: Floats = scores[0]
    if len(scores) > 1:
        shares = row_shares(scores)
        terms = shares if how == "mean" else np.log(np.maximum(shares, FLOOR))
        mean = reduce(np.add, terms) / len(scores)
        combined = mean if how == "mean" else np.exp(mean)
    return combined


def token_rows(maps: Array, source: SentenceSide, target: SentenceSide, setting: str) -> NDArray[np.intp]:
    """The rows of ``maps`` [..., T, S] of the ordinary target tokens; checks that maps and tokens match."""
    require_known("setting", setting, SETTINGS)
    if maps.shape[-2:] != (len(target.tokens), len(source.tokens)):
        raise InputError(
            f"a map has the shape {'×'.join(map(str, maps.shape[-2:]))}, but there are "
            f"{len(target.tokens)}×{len(source.tokens)} target × source tokens; the records are damaged, record again"
        )
    for side in (source, target):
        words = side.words[side.runs]
        runs = words[words >= 0]
        if not np.array_equal(runs, np.arange(len(runs))):
            raise InputError(
                f"the word indices of the tokens are {' '.join(map(str, runs))}, not 0, 1, 2, …; the records are "
                f"damaged, record again"
            )
    rows = np.flatnonzero(~target.special) + SETTINGS[setting]
    if rows.size and rows[-1] >= len(target.tokens):
        raise InputError(
            "the target does not end in </s>, but AWI of its last token needs the row that predicts </s>; "
            "record with </s> or choose setting 'awo'"
        )
    return rows
