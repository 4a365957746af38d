"""How links are made of maps: which maps are read and by which rule, both directions, a lexical table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Optional

from alignment_eval.errors import UsageError, shown
from alignment_eval.extraction.rules import NULLS, rule_of
from alignment_eval.extraction.sharpen import Sharpening
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS, require_known
from alignment_eval.signature import Value

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
    """Names of maps, as one text separates them by commas: ``1.2,0.3:awi,1`` (:func:`parse_maps`)."""

    def __new__(cls, names: Iterable[MapName] | str = ()) -> MapNames:
        """From names, or from the text of a file."""
        return super().__new__(cls, parse_maps(names) if isinstance(names, str) else names)

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


def parse_maps(text: str) -> MapNames:
    """Parse names of maps: ``1.2,0.3:awi,1`` is head 2 of layer 1, head 3 of layer 0 in AWI, and the whole layer 1."""
    pattern = rf"([0-9]{{1,9}})(?:\.([0-9]{{1,9}}))?(?::({'|'.join(SETTINGS)}))?"
    matches = [re.fullmatch(pattern, part.strip()) for part in text.split(",")]
    names = [MapName(int(m[1]), None if m[2] is None else int(m[2]), m[3]) for m in matches if m is not None]
    if len(names) < len(matches):
        raise UsageError(
            f"cannot read heads {shown(text)}: write LAYER.HEAD for a head or LAYER for a whole layer, counted from 0 "
            f"and separated by commas, such as 1.2,0.3,1; a head may have its own setting, such as 0.3:awi"
        )
    return MapNames(names)


@dataclass(frozen=True)
class ExtractionOptions:
    """Which maps are read, and how links are made of them; names are checked on construction.

    Attributes:
        kind: a map kind (:data:`alignment_eval.maps.kinds.KINDS`).
        heads: the maps, in the order of their combination, or their text (:func:`parse_maps`).
        combine: how to combine them (:func:`alignment_eval.maps.words.combine`); ignored for a single map.
        setting: ``awo``, alignment with output: a target token's row is the one that predicts it; ``awi``,
            alignment with input: its row is the next one, where it is the decoder input.  Each of several ``heads``
            may have its own setting; that of a single one becomes ``setting``.
        rule: a rule of :mod:`alignment_eval.extraction.rules`, with its value if it has one: ``threshold=0.2``.
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

    def fields(self) -> dict[str, Value]:
        """The fields of the extraction in a signature."""
        stated: dict[str, Value] = {**vars(self), "heads": str(self.heads)}
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
    #: (:mod:`alignment_eval.extraction.sharpen`); None: they do not
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
                "join 'product' with null 'allow': the reverse model has no score for it; choose null 'mask'"
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

    def fields(self) -> dict[str, Value]:
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
