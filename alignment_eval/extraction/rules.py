"""The extraction rules: they turn maps between words or subwords into links.

Every rule works for any leading axes (layers, heads) at once; each map gets the links that it would get alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import UsageError, shown
from alignment_eval.maps.words import Floats, row_shares, two_way_shares

#: Whether special source tokens (``</s>``, tags) may win; with ``mask`` they cannot.
NULLS = ("allow", "mask")
#: A row or column of no word.
NO_WORD = -1

Cells = NDArray[np.bool_]


@dataclass(frozen=True)
class Rule:
    """A rule with its parameter."""

    name: str  #: its name in options and signatures, ``threshold=0.2``
    units: str = "words"  #: the units of the map that it reads, ``words`` or ``subwords``
    nulls: tuple[str, ...] = NULLS  #: the treatments of null that it supports; the first is its default
    count: int = 0  #: each row takes so many columns, those of the largest scores above 0; 0: the rule compares shares
    least: float = 0.0  #: cells are linked whose share is at least this
    #: ``least`` is compared with two-way shares, which the combined maps of two models have, too; else with those of
    #: the row
    two_way: bool = False

    def compared(self, scores: Floats, sharp: bool = False) -> Floats:
        """The shares that are compared with ``least``; a ``sharp`` map already has the two-way ones."""
        if self.two_way:
            return scores if sharp else two_way_shares(scores)
        return row_shares(scores)

    def choose(self, scores: Floats, barred: Cells, sharp: bool = False) -> Cells:
        """The cells of maps [..., K, N] that are linked; ``barred`` ones [K, N] are not, and count in no sum."""
        scores = np.where(barred, 0, scores)
        if self.count:
            chosen = largest(scores, self.count) & (scores > 0)
        else:
            chosen = self.compared(scores, sharp) >= self.least
        return chosen & ~barred


def barred_cells(rows: NDArray[np.intp], columns: NDArray[np.intp], rule: Rule, null: str | None, final: bool) -> Cells:
    """The cells [K, N] that cannot be linked and count in no sum; arguments as for :func:`apply_rule`.

    Two-way shares count the cells of the final marks: without them AER is higher (docs/reproduction.md).
    """
    barred = np.zeros((len(rows), len(columns)), dtype=np.bool_)
    barred[:, columns == NO_WORD] = null == "mask"
    if final and not rule.two_way:
        barred |= (rows != rows.max())[:, None] & (columns == columns.max())
    return barred


def apply_rule(
    rule: Rule,
    scores: Floats,
    null: str | None,
    final: bool,
    words: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None,
    sharp: bool = False,
) -> Cells:
    """The links that the rows of maps choose, [..., source words, target words].

    Args:
        rule: the rule.
        scores: [..., K, N].
        null: ``mask``: null columns cannot be chosen.
        final: the last words of both sides are linked to each other, and to no other word.
        words: the target word of each row and the source word of each column, :data:`NO_WORD` for null; None: rows and
            columns are the words, and the last column is null.
        sharp: whether the scores are the shares of :func:`alignment_eval.extraction.sharpen.sharp_shares`.
    """
    rows, columns = words or word_numbers(scores)
    linked = rule.choose(scores, barred_cells(rows, columns, rule, null, final), sharp)
    if final:
        lasts = (rows == rows.max())[:, None], columns == columns.max()
        linked = np.where(lasts[0] | lasts[1], lasts[0] & lasts[1], linked)
    linked = linked[..., columns != NO_WORD]
    if words is not None:  # two words are linked if any of their subwords are
        for axis, numbers in ((-2, rows), (-1, columns[columns != NO_WORD])):
            linked = np.logical_or.reduceat(linked, np.flatnonzero(np.diff(numbers, prepend=NO_WORD)), axis=axis)
    return np.swapaxes(linked, -1, -2)


def word_numbers(scores: Floats) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The target word of each row of a word map, and the source word of each column."""
    return np.arange(scores.shape[-2]), np.append(np.arange(scores.shape[-1] - 1), NO_WORD)


def largest(scores: Floats, count: int) -> Cells:
    """The cells of the ``count`` largest scores of each row, the first of equal ones first."""
    if count == 1 and scores.shape[-1]:
        columns = scores.argmax(axis=-1)[..., None]
    else:
        columns = np.argsort(-scores, axis=-1, kind="stable")[..., :count]
    chosen = np.zeros(scores.shape, dtype=np.bool_)
    np.put_along_axis(chosen, columns, True, axis=-1)
    return chosen


def _by_share(name: str, value: str) -> Rule:
    """A rule that links from a share on.

    ``threshold``: of the target word's row, null included unless it is masked.  ``two-way``: of both
    (:func:`alignment_eval.maps.words.two_way_shares`); null has no share of a column, so it is always masked.
    """
    least = math.nan
    with suppress(ValueError):
        least = float(value)
    if not 0 <= least <= 1:
        raise UsageError(f"rule '{name}={value}': the value must be a share from 0 to 1, such as {name}=0.2")
    rule = partial(Rule, f"{name}={least!r}", least=least)
    return rule() if name == "threshold" else rule(nulls=("mask",), two_way=True)


def _top_k(value: str) -> Rule:
    """Each target word takes the source words of its k largest scores; unless masked, null may be one of the k."""
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value)):
        raise UsageError(
            f"rule {shown(f'top-k={value}')}: the value must be a number of words, 1 or more, such as top-k=2"
        )
    return Rule(f"top-k={int(value)}", count=int(value))


_PLAIN = {
    # Kobayashi et al. 2020, section 5: each target word takes the source word of the largest score, or null.
    "kobayashi2020": Rule("kobayashi2020", count=1),
    # Chen et al. 2020: each target subword takes a source subword, never null; published with setting ``awi``.
    "shift-att": Rule("shift-att", units="subwords", nulls=("mask",), count=1),
}
#: Rules with a value -> what the value is, and the rule of a value.
_WITH_VALUE: dict[str, tuple[str, Callable[[str], Rule]]] = {
    **{name: ("SHARE", partial(_by_share, name)) for name in ("threshold", "two-way")},
    "top-k": ("COUNT", _top_k),
}

#: The names of all rules in options.
RULE_NAMES = (*_PLAIN, *(f"{name}={value}" for name, (value, _) in _WITH_VALUE.items()))

#: The rules without a value -> the treatments of null that they support; the first is the default.
RULES: dict[str, tuple[str, ...]] = {name: rule.nulls for name, rule in _PLAIN.items()}


@cache
def rule_of(text: str) -> Rule:
    """The rule that ``text`` names, with the value of its parameter after ``=``, such as ``threshold=0.2``."""
    name, equals, value = text.partition("=")
    if name in _WITH_VALUE and equals:
        return _WITH_VALUE[name][1](value)
    if text in _PLAIN:
        return _PLAIN[text]
    raise UsageError(f"unknown rule {shown(text)}; choose one of {', '.join(RULE_NAMES)}")
