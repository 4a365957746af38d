"""The extraction rules: named functions from maps between words or subwords to links.

Everything works for any leading axes (layers, heads) at once, and gives each map what it would get alone.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Callable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import UsageError
from alignment_eval.maps.words import UnitMap, row_shares, two_way_shares

#: May special source tokens (``</s>``, tags) win?  ``mask`` bars them.
NULLS = ("allow", "mask")

UNALIGNED = -1

#: From scores [..., K, N], -inf where barred, to the columns that each row picks: [..., K, n], -1 for none.
Pick = Callable[[NDArray[np.float64]], NDArray[np.intp]]


@dataclass(frozen=True)
class Rule:
    """A rule with its parameter.

    Attributes:
        name: as options and signatures have it, ``threshold=0.2``.
        units: whose map the rule reads (:data:`alignment_eval.maps.words.UNITS`).
        nulls: the treatments of null that it knows; the first is its default.
        pick: the columns that each row picks.
    """

    name: str
    units: str
    nulls: tuple[str, ...]
    pick: Pick


@dataclass(frozen=True)
class Choices:
    """What the units of a target sentence (words or subwords) chose.

    ``target_words`` [K] is the target word of each choice, ``source_words`` [..., K] the source word chosen,
    -1 for none.  A unit may have several choices, and several may name the same pair of words: that is one link.
    """

    target_words: NDArray[np.intp]
    source_words: NDArray[np.intp]

    def linked(self, source_count: int, target_count: int) -> NDArray[np.bool_]:
        """The links as a matrix [..., source words, target words], true where linked."""
        leading = self.source_words.shape[:-1]
        # One row more: unaligned units (-1) write there.
        matrix = np.zeros((math.prod(leading), source_count + 1, target_count), dtype=np.bool_)
        source_words = self.source_words.reshape(len(matrix), len(self.target_words))
        matrix[np.arange(len(matrix))[:, None], source_words, self.target_words] = True
        return matrix[:, :-1].reshape(*leading, source_count, target_count)


def apply_rule(rule: Rule, units: UnitMap, null: str | None, final: bool) -> Choices:
    """What the rows of ``units`` choose.

    Args:
        rule: see :func:`rule_of`.
        units: maps of the rule's units.
        null: with ``mask`` the null columns are barred.
        final: the last target word takes the last source word and no other; that is barred for other target words.
    """
    scores = units.scores.copy()
    if null == "mask":
        scores[..., units.column_words == UNALIGNED] = -np.inf
    last_source, last_target = units.column_words.max(initial=UNALIGNED), units.row_words.max(initial=UNALIGNED)
    if final:
        barred = (units.row_words != last_target)[:, None] & (units.column_words == last_source)
        scores[..., barred] = -np.inf
    picked = rule.pick(scores)
    target_words = np.repeat(units.row_words, picked.shape[-1])
    # The entry more, at -1, is for what picks nothing.
    words = np.append(units.column_words, UNALIGNED)[picked].reshape(*picked.shape[:-2], len(target_words))
    if final:
        words[..., target_words == last_target] = last_source
    return Choices(target_words, words)


def largest(scores: NDArray[np.float64], count: int) -> NDArray[np.intp]:
    """The columns of the ``count`` largest of each row, the first of equals first; -1 for barred ones."""
    columns: NDArray[np.intp]
    if count == 1 and scores.shape[-1]:
        columns = scores.argmax(axis=-1)[..., None]
    else:
        columns = np.argsort(-scores, axis=-1, kind="stable")[..., :count]
    columns[np.take_along_axis(scores, columns, axis=-1) == -np.inf] = UNALIGNED
    return columns


def at_least(
    scores: NDArray[np.float64], threshold: float, shares: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> NDArray[np.intp]:
    """The columns whose ``shares`` of the map are ``threshold`` or more; barred ones have no part in any sum."""
    barred = scores == -np.inf
    picked = (shares(np.where(barred, 0, scores)) >= threshold) & ~barred
    columns: NDArray[np.intp] = np.where(picked, np.arange(scores.shape[-1]), UNALIGNED)
    return columns


def _kobayashi2020() -> Rule:
    """Kobayashi et al. 2020, section 5: each target word takes the source word of the largest score, or null."""
    return Rule("kobayashi2020", "words", ("allow", "mask"), lambda scores: largest(scores, 1))


def _shift_att() -> Rule:
    """Chen et al. 2020: each target subword takes a source subword, never null; published with setting ``awi``.

    A word pair is linked if any of its subword pairs is.
    """
    return Rule("shift-att", "subwords", ("mask",), lambda scores: largest(scores, 1))


def _threshold(value: str) -> Rule:
    """Each target word takes all source words that have so large a share of its row or more.

    The row is that of words and null; with null masked that of words alone.
    """
    least = _share("threshold", value)
    return Rule(f"threshold={least!r}", "words", ("allow", "mask"), lambda scores: at_least(scores, least, row_shares))


def _two_way(value: str) -> Rule:
    """Words take each other whose two-way share (:func:`alignment_eval.maps.words.two_way_shares`) is so large or more.

    Null is masked: it has no column to be shared among.
    """
    least = _share("two-way", value)
    return Rule(f"two-way={least!r}", "words", ("mask",), lambda scores: at_least(scores, least, two_way_shares))


def _share(rule: str, value: str) -> float:
    share = math.nan
    with suppress(ValueError):
        share = float(value)
    if not 0 <= share <= 1:
        raise UsageError(f"rule '{rule}={value}': expected a share of a row, from 0 to 1, such as {rule}=0.2")
    return share


def _top_k(value: str) -> Rule:
    """Each target word takes the source words of its k largest scores; null, unless masked, takes up a place."""
    if not (value.isascii() and value.isdigit() and int(value)):
        raise UsageError(f"rule 'top-k={value}': expected a number of source words, 1 or more, such as top-k=2")
    count = int(value)
    return Rule(f"top-k={count}", "words", ("allow", "mask"), lambda scores: largest(scores, count))


_PLAIN: dict[str, Callable[[], Rule]] = {"kobayashi2020": _kobayashi2020, "shift-att": _shift_att}
_WITH_VALUE: dict[str, Callable[[str], Rule]] = {"threshold": _threshold, "two-way": _two_way, "top-k": _top_k}

#: Every rule, as an option names it.
RULE_NAMES = (*_PLAIN, "threshold=SHARE", "two-way=SHARE", "top-k=COUNT")

#: The rules that need no value -> the treatments of null that they know; the first is the default.
RULES: dict[str, tuple[str, ...]] = {name: make().nulls for name, make in _PLAIN.items()}


def rule_of(text: str) -> Rule:
    """The rule that ``text`` names, with the value of its parameter after ``=``: ``kobayashi2020``, ``threshold=0.2``.

    Raises:
        UsageError: there is no such rule, or its value is missing, wrong or one too many.
    """
    name, equals, value = text.partition("=")
    if name in _PLAIN and not equals:
        return _PLAIN[name]()
    if name in _WITH_VALUE and equals:
        return _WITH_VALUE[name](value)
    if name in _PLAIN:
        raise UsageError(f"rule {text!r}: that rule has no value; expected {name!r}")
    if name in _WITH_VALUE:
        full = next(known for known in RULE_NAMES if known.startswith(name))
        raise UsageError(f"rule {text!r} without its value: expected {full}")
    raise UsageError(f"unknown rule {text!r}: expected one of {', '.join(RULE_NAMES)}")
