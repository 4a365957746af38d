"""Word maps: merges maps from subwords to words, combines several into one, and sharpens it by the order of words.

A word map is [target words, source words + 1]; the last column stands for null.

The map of one sentence pair is uncertain.  A lexical table (:mod:`alignment_eval.extraction.lexical_table`) says which
words go together; the order of words says which of several equal ones: the counterparts of neighbours are neighbours.
P [target words, source words] is the word map of a pair, of one model or of two.  The table makes W of it, and

    S = (1 - λ) share(W) + λ √(q(W) ∘ q(Wᵀ)ᵀ)        for two models S ∘ max(φ, ψ)^¼

is what a rule compares.  ``share`` are two-way shares, q are the posteriors of an order, and φ and ψ say what a source
word and a target word get in all from the words of the other side, by the model that reads them.  Both directions enter
alike, so the links of two models are the same whichever is named first.

The order is a hidden Markov model (Vogel, Ney & Tillmann 1996, https://aclanthology.org/C96-2141) with fixed jumps:
from column i a row goes to column k with a probability proportional to (1 + |k - i - 1|)^-:data:`JUMP`, so most often
to the next one.  A row emits (1 - :data:`NULL`) of its row shares, and keeps the column with :data:`NULL`.  Languages
differ, so there are three orders: that one, the same with the columns reversed, and none, where all jumps are alike.  A
pair has the mean of their posteriors, weighted by the likelihood of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
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


# ---- what sharpens a word map


class Sharpening(NamedTuple):
    """How much each part counts; chosen on cmu150 and half of sv-en-ges864 (docs/reproduction.md)."""

    of_map: float  #: the exponent of the word map
    of_table: float  #: the exponent of the table's weights
    of_order: float  #: λ


class Reweighted(NamedTuple):
    """A word map as a lexical table has reweighted it, [target words, source words]."""

    cells: Floats  #: W = P^a ∘ w^γ
    words: Floats  #: the part of w that is by the words
    beginnings: Floats  #: the part of w that is by their first letters


#: Of models whose alignment has formed, with a lexical table,
FORMED = Sharpening(1.0, 0.5, 0.5)
#: of others, with a lexical table,
FORMING = Sharpening(0.5, 1.0, 0.6)
#: and of all without one.
WITHOUT_TABLE = Sharpening(1.0, 0.6, 0.35)
#: The map of a model gets this much more in each row, the same in each cell, so that none forbids a link.
SMOOTHING = 0.1
#: The exponent of what a word gets in all.
FERTILITY = 0.25
#: The exponent of a jump.
JUMP = 1.5
#: The probability that a word is in no order.
NULL = 0.1
#: Cells of maps, pads included, whose order is computed together; of few, most of the time goes into calls of numpy.
_CELLS = 50_000


def sharp_shares(maps: Sequence[tuple[Floats, Floats | None]], order: float) -> list[tuple[Floats, Floats]]:
    """S of each word map W [target words, source words], and S without the order, whose weight λ is ``order``.

    With each map comes max(φ, ψ) of its cells; None: it is the map of one model.
    """
    found = []
    ordered = iter(ordered_shares([word_map for word_map, _ in maps if word_map.size]))
    for word_map, fertility in maps:
        shares = unordered = two_way_shares(word_map)
        if word_map.size:
            shares = (1 - order) * unordered + order * next(ordered)
        several = 1.0 if fertility is None else fertility**FERTILITY
        found.append((shares * several, unordered * several))
    return found


def ordered_shares(maps: Sequence[Floats]) -> list[Floats]:
    """√(q(W) ∘ q(Wᵀ)ᵀ) of each word map W that has cells."""
    size = max((max(word_map.shape) for word_map in maps), default=1)
    together = max(_CELLS // size**2, 1)
    groups = (maps[start : start + together] for start in range(0, len(maps), together))
    return [shares for group in groups for shares in _ordered_together(group)]


def _ordered_together(maps: Sequence[Floats]) -> list[Floats]:
    """The same of one or more maps, padded to the longest side."""
    size = max(max(word_map.shape) for word_map in maps)
    sides = [row_shares(side) for word_map in maps for side in (word_map, word_map.T)]
    posteriors, logs = _both_orders(sides, size)
    found = []
    for place in range(len(maps)):
        of_pair = slice(2 * place, 2 * place + 2)
        none = [np.log(((1 - NULL) * rows.sum(axis=1) + NULL) / rows.shape[1]).sum() for rows in sides[of_pair]]
        likelihoods = np.array([*logs[of_pair].sum(axis=0), sum(none)])
        weights = np.exp(likelihoods - likelihoods.max())
        weights /= weights.sum()
        both = []
        for rows, (forward, backward) in zip(sides[of_pair], posteriors[of_pair]):
            height, width = rows.shape
            ordered = weights[0] * forward[:height, :width] + weights[1] * backward[:height, :width][:, ::-1]
            both.append(ordered + weights[2] * (1 - NULL) * rows)
        ordered_both: Floats = np.sqrt(both[0] * both[1].T)
        found.append(ordered_both)
    return found


def _both_orders(sides: Sequence[Floats], size: int) -> tuple[Floats, Floats]:
    """The posteriors [sides, 2, size, size] and the log likelihoods of row shares, and of these with columns reversed.

    All are computed together, padded to ``size`` rows and columns: pads emit nothing.
    """
    emitted = np.zeros((size, len(sides), 2, size))
    null = np.ones((size, len(sides), 1, 1))  # pads keep the column
    before, jumps = np.zeros((len(sides), 2, size)), np.zeros((len(sides), size, size))
    for place, rows in enumerate(sides):
        height, width = rows.shape
        emitted[:height, place, 0, :width] = (1 - NULL) * rows
        emitted[:height, place, 1, :width] = emitted[:height, place, 0, :width][:, ::-1]
        null[:height, place] = NULL / width
        before[place, :, :width] = 1 / width
        jumps[place, :width, :width] = _jumps(width)
    posteriors, sums = np.empty_like(emitted), np.ones((size, len(sides), 2, 1))
    for row in range(size):
        linked = emitted[row] * (before @ jumps if row else before)
        after = linked + null[row] * before
        sums[row] = after.sum(axis=-1, keepdims=True)
        posteriors[row], before = linked / sums[row], after / sums[row]
    later, back = np.ones_like(before), np.ascontiguousarray(jumps.transpose(0, 2, 1))
    for row in range(size - 1, -1, -1):
        posteriors[row] *= later
        later = ((emitted[row] * later) @ back + null[row] * later) / sums[row]
    return posteriors.transpose(1, 2, 0, 3), np.log(sums).sum(axis=(0, 3))


@lru_cache(maxsize=32)
def _jumps(width: int) -> Floats:
    """The probabilities of jumps between ``width`` columns."""
    columns = np.arange(width)
    return row_shares((1.0 + np.abs(columns - columns[:, None] - 1)) ** -JUMP)
