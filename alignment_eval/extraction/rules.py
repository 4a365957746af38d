"""The extraction rules: named functions that turn maps between words or subwords into links.

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
from alignment_eval.maps.words import balanced_shares, row_shares, two_way_shares

#: Whether special source tokens (``</s>``, tags) may win; with ``mask`` they cannot.
NULLS = ("allow", "mask")

UNALIGNED = -1

#: Maps scores [..., K, N], -inf where masked, to the columns that each row picks: [..., K, n], -1 for none.
Pick = Callable[[NDArray[np.float64]], NDArray[np.intp]]
#: Maps scores [..., K, N] to shares [..., K, N].
Shares = Callable[[NDArray[np.float64]], NDArray[np.float64]]
#: Maps shares [..., K, N] to the cells that are linked: bool [..., K, N].
Linked = Callable[[NDArray[np.float64]], NDArray[np.bool_]]

#: :func:`grown` links from its share divided by this without support.  Chosen on cmu150, where 0.6 to 0.75 do as well
#: (docs/reproduction.md).
SUPPORTED = 0.7


@dataclass(frozen=True)
class Rule:
    """A rule with its parameter.

    Attributes:
        name: its name in options and signatures, ``threshold=0.2``.
        units: the units of the map that it reads, ``words`` or ``subwords``.
        nulls: the treatments of null that it supports; the first is its default.
        pick: gives the columns that each row picks.
        two_way: whether it links by two-way shares, which the joined maps of two models have, too.
        shares: the shares by which a lexical table and neighbours sharpen its word map.
    """

    name: str
    units: str
    nulls: tuple[str, ...]
    pick: Pick
    two_way: bool = False
    shares: Shares = two_way_shares


def apply_rule(
    rule: Rule,
    scores: NDArray[np.float64],
    null: str | None,
    final: bool,
    words: tuple[NDArray[np.intp], NDArray[np.intp]] | None = None,
) -> NDArray[np.bool_]:
    """The links that the rows of maps choose, [..., source words, target words], true where linked.

    Args:
        rule: the rule.
        scores: [..., K, N].
        null: ``mask``: null columns cannot be chosen.
        final: the last target word takes the last source word only, and no other target word may take that one.
        words: the target word of each row and the source word of each column, -1 for null; None: rows and columns are
            the words, and the last column is null.
    """
    rows, columns = words or (np.arange(scores.shape[-2]), np.append(np.arange(scores.shape[-1] - 1), UNALIGNED))
    scores = scores.copy()
    if null == "mask":
        scores[..., columns == UNALIGNED] = -np.inf
    last_source, last_target = columns.max(initial=UNALIGNED), rows.max(initial=UNALIGNED)
    if final:
        scores[..., (rows != last_target)[:, None] & (columns == last_source)] = -np.inf
    picked = rule.pick(scores)
    leading, maps = scores.shape[:-2], math.prod(scores.shape[:-2])
    target_words = np.repeat(rows, picked.shape[-1])
    # The extra entry, at -1, stands for rows that pick nothing.
    chosen = np.append(columns, UNALIGNED)[picked].reshape(maps, len(target_words))
    if final:
        chosen[:, target_words == last_target] = last_source
    # The extra row takes the choices of unaligned units (-1).
    linked = np.zeros((maps, last_source + 2, last_target + 1), dtype=np.bool_)
    linked[np.arange(maps)[:, None], chosen, target_words] = True
    return linked[:, :-1].reshape(*leading, last_source + 1, last_target + 1)


def largest(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The columns of the ``count`` largest scores of each row, the first of equal ones first; -1 for masked columns."""
    columns: NDArray[np.intp]
    if count == 1 and scores.shape[-1]:
        columns = scores.argmax(axis=-1)[..., None]
    else:
        columns = np.argsort(-scores, axis=-1, kind="stable")[..., :count]
    columns[np.take_along_axis(scores, columns, axis=-1) == -np.inf] = UNALIGNED
    return columns


def at_least(shares: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """The cells whose share is at least ``least``."""
    linked: NDArray[np.bool_] = shares >= least
    return linked


def grown(shares: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """The cells of large shares, and those of smaller ones, from ``least`` on, that have support.

    Shares of ``least`` / :data:`SUPPORTED` are large.  A smaller one has support if neither its row nor its column has
    a large one, or if one of them has none and a neighbour in the row or the column is large.  So links are added as
    grow-diag-final-and adds them (Koehn, Och & Marcu 2003), but without the diagonal neighbours, and all at once.
    """
    large = at_least(shares, least / SUPPORTED)
    free_rows, free_columns = ~large.any(axis=-1, keepdims=True), ~large.any(axis=-2, keepdims=True)
    beside = np.zeros_like(large)
    beside[..., 1:, :] |= large[..., :-1, :]
    beside[..., :-1, :] |= large[..., 1:, :]
    beside[..., 1:] |= large[..., :-1]
    beside[..., :-1] |= large[..., 1:]
    supported = (free_rows & free_columns) | (beside & (free_rows | free_columns))
    return large | (at_least(shares, least) & supported)


def pick_linked(scores: NDArray[np.float64], shares: Shares, linked: Linked) -> NDArray[np.intp]:
    """The columns that are ``linked`` by their ``shares``; masked columns do not count in any sum."""
    barred = scores == -np.inf
    picked = linked(shares(np.where(barred, 0, scores))) & ~barred
    columns: NDArray[np.intp] = np.where(picked, np.arange(scores.shape[-1]), UNALIGNED)
    return columns


def _threshold(value: str) -> Rule:
    """Each target word takes all source words that have at least this share of its row.

    The row includes null, unless null is masked.
    """
    least = _share("threshold", value)
    pick = partial(pick_linked, shares=row_shares, linked=partial(at_least, least=least))
    return Rule(f"threshold={least!r}", "words", ("allow", "mask"), pick)


def _by_two_way_shares(name: str, value: str) -> Rule:
    """Link words by their two-way shares (:func:`alignment_eval.maps.words.two_way_shares`).

    ``two-way`` links from this share on.  With ``grow`` shares that are not much larger need support (:func:`grown`).
    ``balanced`` does the same by shares in which all source words weigh the same, for the maps of one direction.
    Null is always masked, because it has no share of a column.
    """
    least = _share(name, value)
    linked = at_least if name == "two-way" else grown
    shares = balanced_shares if name == "balanced" else two_way_shares
    pick = partial(pick_linked, shares=shares, linked=partial(linked, least=least))
    return Rule(f"{name}={least!r}", "words", ("mask",), pick, two_way=True, shares=shares)


def _share(rule: str, value: str) -> float:
    share = math.nan
    with suppress(ValueError):
        share = float(value)
    if not 0 <= share <= 1:
        raise UsageError(f"rule '{rule}={value}': the value must be a share from 0 to 1, such as {rule}=0.2")
    return share


def _top_k(value: str) -> Rule:
    """Each target word takes the source words of its k largest scores; unless masked, null may be one of the k."""
    if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value)):
        raise UsageError(
            f"rule {shown(f'top-k={value}')}: the value must be a number of words, 1 or more, such as top-k=2"
        )
    count = int(value)
    return Rule(f"top-k={count}", "words", ("allow", "mask"), partial(largest, count=count))


_PLAIN = {
    # Kobayashi et al. 2020, section 5: each target word takes the source word of the largest score, or null.
    "kobayashi2020": Rule("kobayashi2020", "words", ("allow", "mask"), partial(largest, count=1)),
    # Chen et al. 2020: each target subword takes a source subword, never null; published with setting ``awi``.
    # A word pair is linked if any of its subword pairs is.
    "shift-att": Rule("shift-att", "subwords", ("mask",), partial(largest, count=1)),
}
#: Rules with a value -> what the value is, and the rule of a value.
_WITH_VALUE: dict[str, tuple[str, Callable[[str], Rule]]] = {
    "threshold": ("SHARE", _threshold),
    **{name: ("SHARE", partial(_by_two_way_shares, name)) for name in ("two-way", "grow", "balanced")},
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
    if name in _PLAIN and not equals:
        return _PLAIN[name]
    if name in _WITH_VALUE and equals:
        return _WITH_VALUE[name][1](value)
    if name in _PLAIN:
        raise UsageError(f"rule {shown(text)}: this rule takes no value; write {name!r}")
    if name in _WITH_VALUE:
        raise UsageError(f"rule {shown(text)} needs a value; write {name}={_WITH_VALUE[name][0]}")
    raise UsageError(f"unknown rule {shown(text)}; choose one of {', '.join(RULE_NAMES)}")
