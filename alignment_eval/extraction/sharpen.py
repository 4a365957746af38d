"""What sharpens a word map: a lexical table, and the order of words.

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
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from alignment_eval.maps.words import Floats, row_shares, two_way_shares


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
    before, jumps = np.zeros((len(sides), 2, size)), np.empty((len(sides), size, size))
    for place, rows in enumerate(sides):
        height, width = rows.shape
        emitted[:height, place, 0, :width] = (1 - NULL) * rows
        emitted[:height, place, 1, :width] = emitted[:height, place, 0, :width][:, ::-1]
        null[:height, place] = NULL / width
        before[place, :, :width] = 1 / width
        jumps[place] = np.pad(_jumps(width), (0, size - width))
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
