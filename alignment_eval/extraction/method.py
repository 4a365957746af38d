"""How links are made of maps: which maps are read, by which rule, both directions, a lexical table.

The rules turn maps between words or subwords into links.  Every rule works for any leading axes (layers, heads) at
once; each map gets the links that it would get alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import UsageError, require_known, shown
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS
from alignment_eval.maps.sentence import KINDS
from alignment_eval.maps.words import (
    COMBINATIONS,
    FLOOR,
    SETTINGS,
    Floats,
    Sharpening,
    row_shares,
    two_way_shares,
)

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

    Two-way shares count the cells of the final marks: without them AER is higher.
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
        sharp: whether the scores are the shares of :func:`alignment_eval.maps.words.sharp_shares`.
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


#: The rules without a value.
_PLAIN = {
    # Kobayashi et al. 2020, section 5: each target word takes the source word of the largest score, or null.
    "kobayashi2020": Rule("kobayashi2020", count=1),
    # Chen et al. 2020: each target subword takes a source subword, never null; published with setting ``awi``.
    "shift-att": Rule("shift-att", units="subwords", nulls=("mask",), count=1),
}
#: The same -> the treatments of null that they support; the first is the default.
RULES: dict[str, tuple[str, ...]] = {name: rule.nulls for name, rule in _PLAIN.items()}
#: The names of all rules in options.
RULE_NAMES = (*RULES, "threshold=SHARE", "two-way=SHARE", "top-k=COUNT")


@cache
def rule_of(text: str) -> Rule:
    """The rule that ``text`` names, with the value of its parameter after ``=``.

    ``threshold=0.2`` links from a share of the target word's row on, null included unless it is masked;
    ``two-way=0.4`` from a share of both (:func:`alignment_eval.maps.words.two_way_shares`): null has no share of a
    column, so it is always masked.  ``top-k=2``: each target word takes the source words of its 2 largest scores;
    unless masked, null may be one of them.
    """
    name, _, value = text.partition("=")
    if text in _PLAIN:
        return _PLAIN[text]
    if name == "top-k":
        if not (value.isascii() and value.isdigit() and len(value) < 10 and int(value)):
            raise UsageError(f"rule {shown(text)}: expected a number of words, 1 or more, such as top-k=2")
        return Rule(f"top-k={int(value)}", count=int(value))
    if name in ("threshold", "two-way"):
        least = math.nan
        with suppress(ValueError):
            least = float(value)
        if not 0 <= least <= 1:
            raise UsageError(f"rule {shown(text)}: expected a share from 0 to 1, such as {name}=0.2")
        both = name == "two-way"
        return Rule(f"{name}={least!r}", nulls=("mask",) if both else NULLS, least=least, two_way=both)
    raise UsageError(f"unknown rule {shown(text)}; choose one of {', '.join(RULE_NAMES)}")


#: Ways to make one word map of those of two directions (:func:`alignment_eval.extraction.extract.combined_map`).
MAP_JOINS = ("average", "product")
#: Ways to combine two directions that keep confidences.
JOINS = ("mutual", *MAP_JOINS)


@dataclass(frozen=True)
class Defaults:
    """What is read of a model, and how links are made of it, where no option says otherwise (docs/reproduction.md).

    If the alignment of a model has formed, two of its maps are multiplied; if it is still forming, the mean of the
    logit attributions of its last two layers in AWO is read.  A lexical table and the order of words sharpen the map.
    Constants of a rule, a search, a check or a lexical table stand in its own module.
    """

    kind: str = "attn_n"  #: the kind of the maps: norms; in the products of a profile weights do as well
    setting: str = "awo"  #: the setting of maps that a command line names
    combine: str = "mean"  #: how several named maps become one
    #: the rule of single maps that nobody chose to align by: of ``plot``, ``report``, fairseq-generate, monitoring, and
    #: of Python's ``ExtractionOptions``
    map_rule: str = "kobayashi2020"
    map_setting: str = "awi"  #: the setting of the maps that ``map_rule`` reads
    rule: str = "two-way=0.4"  #: the rule for a word map that is sharpened
    #: the rule of each direction if their links become one (``mutual``, symmetrisations): maps that are not sharpened
    direction_rule: str = "two-way=0.25"
    join: str = "product"  #: how the word maps of two directions become one
    #: whether the final punctuation of both sides is linked to each other only, by a profile: the last row of an AWI
    #: map, which predicts ``</s>``, often looks elsewhere.  Where maps are named it is not.
    final_punctuation: bool = True
    table_pairs: int = 20_000  #: a lexical table is counted on this number of sentence pairs, the first of the text
    #: the fewest sentence pairs for a choice of maps, and for a lexical table that nobody asked for: on fewer, the
    #: choice changes from text to text
    fewest_pairs: int = 30
    profile_pairs: int = 300  #: how many sentence pairs maps are chosen on: more do not change the choice
    max_tokens: int = 4000  #: tokens of a batch, pads included

    def rule_by(self, join: str | None) -> str:
        """The rule of one direction, or of two that ``join`` makes one."""
        return self.rule if join in (None, *MAP_JOINS) else self.direction_rule


DEFAULTS = Defaults()


@dataclass(frozen=True, order=True)
class MapName:
    """A head, ``LAYER.HEAD``, or the map of a whole layer, ``LAYER``; both count from 0.

    ``setting``, if given, applies to this map only, ``LAYER.HEAD:SETTING``.
    """

    layer: int
    head: int | None = None
    setting: str | None = None

    def __str__(self) -> str:
        name = str(self.layer) if self.head is None else f"{self.layer}.{self.head}"
        return name if self.setting is None else f"{name}:{self.setting}"


class MapNames(tuple[MapName, ...]):
    """Names of maps.

    In a text commas separate them: ``1.2,0.3:awi,1`` is head 2 of layer 1, head 3 of layer 0 in AWI, and the whole
    layer 1.
    """

    def __new__(cls, names: Iterable[MapName] | str = ()) -> MapNames:
        """From names, or from their text."""
        return super().__new__(cls, _parsed(names) if isinstance(names, str) else names)

    def __str__(self) -> str:
        return ",".join(map(str, self))

    def beyond(self, layers: Iterable[int], heads: int, owner: str) -> str:
        """That ``owner``, which has these layers of so many heads, lacks one of the maps; empty: it has all.

        ``heads`` 0: any head may be there, because only maps of whole layers are known.
        """
        known = tuple(layers)
        for name in self:
            if name.layer not in known or (heads and name.head not in (None, *range(heads))):
                has = f"{owner} has decoder layers {', '.join(map(str, known))} of {heads} heads, counted from 0"
                return f"map {name} (LAYER.HEAD, or LAYER for a whole layer), but {has}"
        return ""


def _parsed(text: str) -> list[MapName]:
    pattern = rf"([0-9]{{1,9}})(?:\.([0-9]{{1,9}}))?(?::({'|'.join(SETTINGS)}))?"
    matches = [re.fullmatch(pattern, part.strip().lower()) for part in text.split(",")]
    names = [MapName(int(m[1]), None if m[2] is None else int(m[2]), m[3]) for m in matches if m is not None]
    if len(names) < len(matches):
        raise UsageError(
            f"cannot read heads {shown(text)}: write LAYER.HEAD for a head or LAYER for a whole layer, counted from 0 "
            f"and separated by commas, such as 1.2,0.3,1; a head may have its own setting, such as 0.3:awi"
        )
    return names


@dataclass(frozen=True)
class ExtractionOptions:
    """Which maps are read, and how links are made of them; names are checked on construction.

    Attributes:
        kind: a map kind (:data:`alignment_eval.maps.sentence.KINDS`).
        heads: the maps, in the order of their combination, or their text.
        combine: how to combine them (:func:`alignment_eval.maps.words.combine`); ignored for a single map.
        setting: ``awo``, alignment with output: a target token's row is the one that predicts it; ``awi``,
            alignment with input: its row is the next one, where it is the decoder input.  Each of several ``heads``
            may have its own setting; that of a single one becomes ``setting``.
        rule: a rule of :mod:`alignment_eval.extraction.method`, with its value if it has one: ``threshold=0.2``.
        null: ``allow``: special source tokens (``</s>``) may win, and the word then stays unaligned;
            ``mask``: they cannot win.  None: the rule's default.
        final_punctuation: link the final punctuation of both sides to each other only
            (:func:`alignment_eval.extraction.extract.ends_in_punctuation`).

    Raises:
        UsageError: a name is unknown, the rule does not have this ``null``, the kind has no maps of heads, no map is
            named, or a map is named twice.
    """

    kind: str
    heads: MapNames
    combine: str = DEFAULTS.combine
    setting: str = DEFAULTS.map_setting
    rule: str = DEFAULTS.map_rule
    null: Optional[str] = None
    final_punctuation: bool = False

    def __post_init__(self) -> None:
        named, rule = MapNames(self.heads), rule_of(self.rule)
        null = rule.nulls[0] if self.null is None else self.null
        for what, value, known in (
            ("map kind", self.kind, KINDS),
            ("combination", self.combine, COMBINATIONS),
            ("null", null, NULLS),
            *(("setting", name.setting or self.setting, SETTINGS) for name in (self, *named)),
        ):
            require_known(what, value, known)
        for name in () if KINDS[self.kind].heads else named:
            if name.head is not None:
                raise UsageError(
                    f"head {name} of kind {self.kind}: this kind has maps of whole layers only; name a layer"
                )
        if null not in rule.nulls:
            raise UsageError(
                f"null {null!r} does not work with rule {self.rule!r}: omit it, or choose rule 'kobayashi2020'"
            )
        if not named:
            raise UsageError("no maps are named; name a head, such as 1.2, or a layer, such as 1")
        # the same maps have the same names: one has a setting only where it is not that of the others
        setting = (named[0].setting if len(named) == 1 else None) or self.setting
        heads = MapNames(replace(name, setting=None) if name.setting == setting else name for name in named)
        if len(set(heads)) < len(heads):
            raise UsageError(f"duplicate head in heads {named} (setting {setting}); name each head once")
        for field, value in (("heads", heads), ("setting", setting), ("rule", rule.name), ("null", null)):
            object.__setattr__(self, field, value)

    @property
    def titles(self) -> list[str]:
        """What a reader calls the maps: ``head 0.0 (AWI)``, ``layer 2 (AWO)``."""
        return [
            f"{'layer' if name.head is None else 'head'} {replace(name, setting=None)} "
            f"({(name.setting or self.setting).upper()})"
            for name in self.heads
        ]

    def fields(self) -> dict[str, Any]:
        """The fields of the extraction in a signature."""
        stated: dict[str, Any] = {**vars(self), "heads": str(self.heads)}
        first, *others = self.heads
        if not others:
            stated = {"kind": self.kind, "layer": first.layer, "head": first.head, **stated}
            del stated["heads"], stated["combine"]
        elif self.combine == "product":
            stated = {**{name: stated.pop(name) for name in ("kind", "heads", "combine")}, "floor": FLOOR, **stated}
        return stated


@dataclass(frozen=True)
class AlignmentMethod:
    """Everything that turns the maps of sentence pairs into word alignments."""

    forward: ExtractionOptions  #: what is read from the maps of the source-target model
    #: what is read from the maps of the target-source model; None: one direction only
    reverse: Optional[ExtractionOptions] = None
    #: how the two directions become one: one of :data:`JOINS`, which keep confidences, or a symmetrisation
    #: (:data:`alignment_eval.links.symmetrize.METHODS`)
    join: Optional[str] = None
    #: how a lexical table, which may be empty, and the order of words sharpen the word map
    #: (:mod:`alignment_eval.maps.words`); None: they do not
    sharpening: Optional[Sharpening] = None
    #: the number of sentence pairs, the first of the text, that the table is counted on; 0: it is given, or empty.
    #: Those of a given table come to them.
    table_pairs: int = 0

    def __post_init__(self) -> None:
        if self.join is not None:
            require_known("join", self.join, (*JOINS, *METHODS))
        if (self.reverse is None) != (self.join is None):
            raise UsageError("maps of the other direction need a way to combine both directions; give both or neither")
        if self.joins_maps and rule_of(self.forward.rule).units != "words":
            raise UsageError(
                f"join {self.join!r} with rule {self.forward.rule!r}: choose a rule for words, or join 'mutual'"
            )
        if self.join == "product" and self.forward.null != "mask":
            raise UsageError(
                "join 'product' with null 'allow': the other model has no score for null; choose null 'mask' (--null "
                "mask), or join 'mutual' (--join mutual)"
            )
        if self.sharpened and not self.can_be_sharpened:
            join = "" if self.join is None else f" and join {self.join!r}"
            raise UsageError(
                f"a lexical table does not work with rule {self.forward.rule!r}, null {self.forward.null!r}{join}: it "
                f"reweights one map between words, without null; choose a rule for words and null 'mask', such as rule "
                f"two-way=0.3, and for two directions join 'average' or 'product'"
            )

    @property
    def joins_maps(self) -> bool:
        """Whether both word maps become one, of which the rule makes links."""
        return self.join in MAP_JOINS

    @property
    def sharpened(self) -> bool:
        """Whether the word map is sharpened."""
        return self.sharpening is not None

    @property
    def can_be_sharpened(self) -> bool:
        """Whether the rule reads one map between words, without null."""
        of_words = rule_of(self.forward.rule).units == "words" and self.forward.null == "mask"
        return of_words and (self.join is None or self.joins_maps)

    def fields(self) -> dict[str, Any]:
        """The fields of the method in a signature."""
        fields = self.forward.fields()
        if self.join is not None and self.reverse is not None:
            variant = None if self.join in ("intersection", "union") else DEFAULT_VARIANT
            fields |= {"join": self.join} if self.join in JOINS else {"symmetrized": self.join, "variant": variant}
            fields["reverse_heads"] = str(self.reverse.heads)
            for name in ("kind", "setting", "combine"):  # as in the forward direction unless it is stated
                value = getattr(self.reverse, name)
                if value != getattr(self.forward, name) and (name != "combine" or len(self.reverse.heads) > 1):
                    fields[f"reverse_{name}"] = value
        if self.sharpened:
            fields["table"] = "text" if self.table_pairs else "none"
        return fields
