"""The options of an alignment, declared once, and the method that they and the profiles of the models make."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from numbers import Integral
from pathlib import Path
from typing import Any

from alignment_eval.command_line import Input, add_fields, check_types, option, positive_integer
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.lexical_table import LexicalTable, read_lexical_table
from alignment_eval.extraction.method import (
    DEFAULTS,
    JOINS,
    MAP_JOINS,
    RULE_NAMES,
    AlignmentMethod,
    ExtractionOptions,
    MapNames,
    rule_of,
)
from alignment_eval.files import Value
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.maps.sentence import KINDS, kinds_help
from alignment_eval.maps.words import COMBINATIONS, FORMED, FORMING, WITHOUT_TABLE
from alignment_eval.profiles.profile import NO_PROFILE, Profile
from alignment_eval.reading import file_hash, read_once

#: The value of ``heads`` for the layer with the highest mean norm, which only recorded maps show.
MAX_NORM = "max-norm"
FINAL_PUNCTUATION = "link the final punctuation marks of both sides to each other and to nothing else"
SETTING_HELP = "the row of a target word: awo, the row that predicts it (default), or awi, the next row, which reads it"
#: The options that mean something only where maps are named.
_OF_MAPS = ("kind", "combine", "setting", "null", "reverse_heads")
#: The value of ``table`` for a lexical table that is counted on the text that is aligned, and the profile's.
OF_TEXT = "text"
#: The value of ``table`` for no lexical table.
NO_TABLE = "none"


def check_whole(option: str, value: object) -> None:
    """Check that an option is a whole number of 1 or more."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise UsageError(f"{option} {value}: expected a whole number, 1 or more")


@dataclass(frozen=True)
class AlignmentOptions:
    """The options of an alignment, for command lines, Python and Ray alike; None: as the profile says, or by default.

    Attributes:
        heads: maps to read, such as ``1.2,0.3:awi,1``; without them, the profile of each model names its maps.
        kind: the kind of named maps (docs/maps.md).
        combine: ``mean`` or ``product`` of several named maps.
        setting: ``awo`` or ``awi``, of named maps.
        rule: an extraction rule.
        null: ``allow`` or ``mask``, of named maps.
        final_punctuation: whether the final punctuation of both sides is linked to each other only.
        profile: a profile's file; ``none``: use no profile.
        reverse_heads: named maps of the reverse model.
        join: how two directions become one.
        table: the file of a lexical table; ``text``: the profile's, and one counted on the text that is aligned;
            ``none``.
        max_tokens: tokens of a batch, pads included.
        scores: score the pairs and their words, too (docs/scores.md).
        source_contribution: with the contribution of the source (ALTI+), which takes longer; implies ``scores``.
        force: align lines that do not look like translations of each other, too.
        split_sentences: cut lines that are paragraphs into sentences, by sentencex (docs/text.md).

    Raises:
        UsageError: options that do not go together, or a value out of its range.
    """

    heads: MapNames | str | None = option(  # noqa: RUF009
        "maps to read: LAYER.HEAD, or LAYER for all its heads, counted from 0, such as 1.2,0.3,1; 0.3:awi has a "
        "setting of its own; separated by commas",
        metavar="MAP,…",
    )
    kind: str | None = option(f"kind of the maps: {kinds_help()} (default: {DEFAULTS.kind})", metavar="KIND")
    combine: str | None = option(
        "make one map of several: their mean (default), or their product, a geometric mean; each row is divided by its "
        "sum first",
        choices=COMBINATIONS,
    )
    setting: str | None = option(SETTING_HELP, type=str.lower, metavar="SETTING")
    rule: str | None = option(
        f"extraction rule: {', '.join(RULE_NAMES)} (default: {DEFAULTS.rule}; {DEFAULTS.direction_rule} if --join "
        f"combines links, not maps)",
        metavar="RULE",
    )
    null: str | None = option(
        "what a target word does whose map is largest at null, that is </s> or a tag; allow: it stays unaligned; mask: "
        "it takes a word, as null is left out (default: by the rule)",
        metavar="NULL",
    )
    final_punctuation: bool | None = option(
        f"{FINAL_PUNCTUATION} (default: yes by a profile, no where maps are named)",
        action=argparse.BooleanOptionalAction,
    )
    profile: str | Path | None = option(  # noqa: RUF009
        f"a profile, made by norm-align calibrate, which names the maps; {NO_PROFILE}: use no profile",
        type=Input,
        metavar="FILE",
    )
    reverse_heads: MapNames | str | None = option(  # noqa: RUF009
        "maps of the other model (default: the same layers and heads); separated by commas", metavar="MAP,…"
    )
    join: str | None = option(
        f"how the directions become one: {' or '.join(MAP_JOINS)} of their maps (default: {DEFAULTS.join}); mutual, "
        f"the links that both have; or a symmetrisation of links, without confidences: {', '.join(METHODS)}",
        choices=(*JOINS, *METHODS),
        metavar="RULE",
    )
    table: str | Path | None = option(  # noqa: RUF009
        f"lexical table: a FILE, made by norm-align calibrate; {OF_TEXT}, counted on the first {DEFAULTS.table_pairs} "
        f"pairs of this text and added to the profile's; {NO_TABLE} (default: the profile's; without a profile "
        f"{OF_TEXT}, from {DEFAULTS.fewest_pairs} pairs on; where maps are named, {NO_TABLE})",
        type=lambda text: text if text in (OF_TEXT, NO_TABLE) else Input(text),
        metavar=f"FILE|{OF_TEXT}|{NO_TABLE}",
    )
    max_tokens: int = option(
        f"tokens in a batch (default: {DEFAULTS.max_tokens})", DEFAULTS.max_tokens, type=positive_integer, metavar="N"
    )
    scores: bool = False
    source_contribution: bool = False
    force: bool = False
    split_sentences: bool = option(
        "the lines are paragraphs: align or translate each of their sentences, which sentencex finds, and join them "
        "again",
        default=False,
        action="store_true",
    )

    def __post_init__(self) -> None:
        check_types(self)
        for name in ("heads", "reverse_heads"):
            if (text := getattr(self, name)) not in (None, MAX_NORM):
                object.__setattr__(self, name, MapNames(text or ()))
        for name in _OF_MAPS if self.heads is None else ():
            if getattr(self, name) is not None:
                raise UsageError(f"{name} without heads: expected the maps that it applies to")
        if self.heads is not None and self.profile not in (None, NO_PROFILE):
            raise UsageError("heads together with profile, which names the maps: leave one of the two out")
        if self.rule is not None:
            rule_of(self.rule)
        check_whole("max_tokens", self.max_tokens)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> AlignmentOptions:
        """The options that a program gives by name."""
        known = [option.name for option in fields(cls)]
        for name in given:
            if name not in known:
                raise unknown_option("align", name, known)
        return cls(**given)

    def join_of(self, directions: int) -> str | None:
        """How two directions become one; None: there is only one, and nothing is stated."""
        return self.join or (DEFAULTS.join if directions > 1 else None)

    def named_maps(self, directions: int) -> AlignmentMethod:
        """The method that reads the named maps of one direction or of two."""
        join = self.join_of(directions)
        forward = ExtractionOptions(
            self.kind or DEFAULTS.kind,
            MapNames(self.heads or ()),
            self.combine or DEFAULTS.combine,
            self.setting or DEFAULTS.setting,
            self.rule or DEFAULTS.rule_by(join),
            self.null,
            bool(self.final_punctuation),
        )
        reverse = None
        if directions > 1:
            reverse = forward if self.reverse_heads is None else replace(forward, heads=MapNames(self.reverse_heads))
        return AlignmentMethod(forward, reverse, join)

    def profiled_maps(self, profiles: Sequence[Profile]) -> AlignmentMethod:
        """The method that reads the maps of the profile of each direction's model."""
        join = self.join_of(len(profiles))
        maps = [profile.extraction(join, self.rule, self.final_punctuation) for profile in profiles]
        return AlignmentMethod(maps[0], maps[1] if len(maps) > 1 else None, join)


def unknown_option(owner: str, name: str, known: Collection[str]) -> UsageError:
    """The error of an option that a function lacks: names the nearest of its own."""
    near = "".join(f"; do you mean {other}?" for other in get_close_matches(name, known, 1))
    return UsageError(f"{owner} has no option {name}{near} (options: {', '.join(sorted(known))})")


def add_options(group: argparse._ActionsContainer, *names: str) -> None:
    """Declare options by the names of their fields."""
    add_fields(group, AlignmentOptions, *names)


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that name maps, rule and lexical table, or the profile that does; returns their group."""
    group = parser.add_argument_group("maps", description)
    add_options(group, "heads", "kind", "combine", "setting", "rule", "null", "final_punctuation", "profile", "table")
    return group


def given_options(args: argparse.Namespace) -> AlignmentOptions:
    """The options that a command line states."""
    names = [option.name for option in fields(AlignmentOptions)]
    given = {name: getattr(args, name) for name in names if hasattr(args, name)}
    return AlignmentOptions(**{**given, "scores": getattr(args, "scores_out", None) is not None})


@dataclass(frozen=True)
class ChosenMethod:
    """A method and where it comes from."""

    method: AlignmentMethod  #: the method
    reason: str = ""  #: which profile it is by, for a reader; empty where maps are named
    table: LexicalTable | None = None  #: the lexical table; None: the method counts one, or uses none
    given: bool = False  #: whether the user gave that table
    #: signature fields of the choice, those of the method included
    fields: dict[str, Value] = field(default_factory=dict)


def choose_method(
    options: AlignmentOptions, directions: int, profiles: Sequence[Profile], pairs: int | None
) -> ChosenMethod:
    """The method by the maps that ``options`` name, else by the ``profiles`` of the models of each direction.

    ``pairs``: how many sentence pairs are aligned together; None: unknown, or one by one.
    """
    is_named, wanted = options.heads is not None, options.table
    method = options.named_maps(directions) if is_named else options.profiled_maps(profiles)
    wants_table = wanted not in (None, NO_TABLE)
    # named maps with a named rule are read as they are: sweep does the same
    sharpened = wants_table or (method.can_be_sharpened and not (is_named and options.rule))
    table, hash_ = None, ""
    given = wants_table and wanted != OF_TEXT
    if given:
        table, hash_ = _read_table(wanted)
    elif sharpened and wanted != NO_TABLE:
        table, hash_ = _table_of(profiles)
    counted = wanted == OF_TEXT
    if wanted is None and sharpened and table is None:
        unknown = any(profile.of_text or not profile.formed for profile in profiles)
        counted = unknown and pairs is not None and pairs >= DEFAULTS.fewest_pairs
    sharpening = None
    if sharpened:
        has_table, formed = table is not None or counted, all(profile.formed for profile in profiles)
        sharpening = (FORMED if formed else FORMING) if has_table else WITHOUT_TABLE
    method = replace(method, sharpening=sharpening, table_pairs=DEFAULTS.table_pairs if counted else 0)
    fields = method.fields()
    if table is not None:
        fields["table"] = f"{hash_}+{OF_TEXT}" if counted else hash_
    for prefix, profile in zip(("", "reverse_"), () if is_named else profiles):
        fields |= {f"{prefix}{name}": value for name, value in profile.fields().items()}
    reasons = [] if is_named else _reasons(method, profiles)
    if counted:
        reasons.append("the lexical table is of the text, so each pair depends on the others")
    if table is not None:
        reasons.append(f"{'added to the ' if counted else ''}lexical table of {table.pairs} pairs: {table.name}")
    return ChosenMethod(method, "; ".join(reasons), table, given, fields)


def _table_of(profiles: Sequence[Profile]) -> tuple[LexicalTable | None, str]:
    """The lexical table of the first profile that has one, with its hash; sides as the first model has them."""
    for profile, is_reverse in zip(profiles, (False, True)):
        if profile.table is not None:
            table, hash_ = _read_table(profile.table.name)
            if hash_ != profile.table.hash:
                stated = f"{profile.name}: names the lexical table {profile.table.name} with hash {profile.table.hash}"
                raise InputError(f"{stated}, but it has {hash_}: calibrate the model again, or use no table")
            return (table.exchanged if profile.table.exchanged != is_reverse else table), hash_
    return None, ""


@read_once
def _read_table(file: str) -> tuple[LexicalTable, str]:
    """The lexical table of a file, and the file's hash."""
    return read_lexical_table(file), file_hash(file)


def _reasons(method: AlignmentMethod, profiles: Sequence[Profile]) -> list[str]:
    """Which maps are read and by which profiles, and what a reader should know of a profile without good maps."""
    read = f"reading {described(method.forward)}"
    if method.reverse is not None and method.reverse.heads != method.forward.heads:
        read += f" and, in the other direction, {described(method.reverse)}"
    first, *others = dict.fromkeys(profile.name for profile in profiles)
    # the directory of the first is said once
    others = [Path(name).name if Path(name).parent == Path(first).parent else name for name in others]
    remarks = []
    for profile in profiles:
        if not (profile.formed or profile.text):
            remarks.append(f"the text is too short to choose maps by: it takes {DEFAULTS.fewest_pairs} different pairs")
        elif not profile.formed:
            agreement = f"{100 * (profile.figure or 0):.0f} %"
            remarks.append(
                f"no two maps agree enough to be chosen, above chance in {agreement} of their links, so the upper "
                f"layers are read, whose links may still be good"
            )
    return [read, f"profile: {', '.join([first, *others])}", *dict.fromkeys(remarks)]


def described(options: ExtractionOptions) -> str:
    """The maps that are read: ``head 0.0 (AWI) × layer 2 (AWO)``; another kind than the default is named."""
    kind = "" if options.kind == DEFAULTS.kind else f"{KINDS[options.kind].label} of "
    if len(options.heads) > 1 and options.combine == "mean":
        return f"the mean of {kind}{' and '.join(options.titles)}"
    return kind + " × ".join(options.titles)
