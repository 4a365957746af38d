"""The options of an alignment, declared once, and the method that they and the profiles of the models make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

from alignment_eval.errors import UsageError, warn_on_stderr
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.lexical_table import LexicalTable
from alignment_eval.extraction.method import (
    JOINS,
    AlignmentMethod,
    BidirectionalOptions,
    ExtractionOptions,
    MapName,
    MapNames,
)
from alignment_eval.extraction.rules import NULLS, RULE_NAMES, rule_of
from alignment_eval.links.symmetrize import METHODS
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS
from alignment_eval.profiles.profile import NO_PROFILE, Profile
from alignment_eval.signature import Value

#: The value of ``heads`` for the layer with the highest mean norm, which only recorded maps show.
MAX_NORM = "max-norm"
FINAL_PUNCTUATION = "link the final punctuation marks of both sides to each other and to nothing else"
#: The options that mean something only where maps are named.
_OF_MAPS = ("kind", "combine", "setting", "null", "reverse_heads")
#: Formed models whose maps agree less gained up to 4 points from a lexical table.
_WEAK = 0.52


def _option(help: str, default: Any = None, **declared: Any) -> Any:
    """A field with its help; ``declared``: how a command line takes it (``add_argument`` of argparse)."""
    return field(default=default, metadata={"help": help, **declared})


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
        lexical_table: passes over a lexical table that is counted on the text, 0 for none.
        lexical_table_file: the file of a lexical table that is used instead.
        lexical_table_pairs: a lexical table is counted on the first pairs of the text, so many.
        max_tokens: tokens of a batch, pads included.
        scores: score the pairs and their words, too (docs/scores.md).
        source_contribution: with the contribution of the source (ALTI+), which takes longer; implies ``scores``.

    Raises:
        UsageError: options that do not go together, or a value out of its range.
    """

    heads: str | None = _option(
        f"maps to read: LAYER.HEAD, or LAYER for a whole layer, counted from 0, such as 1.2,0.3,1; 0.3:awi has a "
        f"setting of its own; {MAX_NORM}: the layer with the highest mean norm, without gold (extract, AWI only); "
        f"separated by commas",
        metavar="MAP,…",
    )
    kind: str | None = _option(f"map kind (default: {DEFAULTS.kind}): {', '.join(KINDS)}", metavar="KIND")
    combine: str | None = _option(
        f"mean (default) or product of the maps' rows, each divided by its sum (product: the geometric mean of shares "
        f"of {FLOOR:g} or more)",
        choices=COMBINATIONS,
    )
    setting: str | None = _option(
        f"{', '.join(SETTINGS)}: a target word has the row that predicts it (default), or the row whose input it is",
        metavar="SETTING",
    )
    rule: str | None = _option(
        f"extraction rule: {', '.join(RULE_NAMES)} (default: {DEFAULTS.rule()}, for the product of two models "
        f"{DEFAULTS.rule('product')})",
        metavar="RULE",
    )
    null: str | None = _option(
        f"{', '.join(NULLS)}: allow alignment to null (</s>, a tag), so that a word stays unaligned? (default: by the "
        f"rule)",
        metavar="NULL",
    )
    final_punctuation: bool | None = _option(
        f"{FINAL_PUNCTUATION} (default: yes by a profile, no where maps are named)"
    )
    profile: str | Path | None = field(
        default=None,
        metadata={
            "help": f"read the maps that a profile names (of norm-align calibrate); {NO_PROFILE}: use no profile",
            "metavar": "FILE",
        },
    )
    reverse_heads: str | None = _option(
        "maps of the other model (default: the same layers and heads); separated by commas", metavar="MAP,…"
    )
    join: str | None = _option(
        f"mutual links; the rule on average or product of both word maps (default: {DEFAULTS.join}); or links "
        f"symmetrised by one of the other methods, without confidences",
        choices=(*JOINS, *METHODS),
    )
    lexical_table: int | None = _option(
        f"count a lexical table on the text in PASSES passes (0: none; default: {DEFAULTS.lexical_table_passes} where the "
        f"alignment of a model has not formed and the text has {DEFAULTS.fewest_pairs} pairs or more, else 0)",
        metavar="PASSES",
    )
    lexical_table_file: str | Path | None = None
    lexical_table_pairs: int | None = _option(
        f"count it on the first N sentence pairs and use it for all pairs (default: {DEFAULTS.lexical_table_pairs})",
        metavar="N",
    )
    max_tokens: int = _option(
        f"tokens in a batch (default: {DEFAULTS.max_tokens})", default=DEFAULTS.max_tokens, metavar="N"
    )
    scores: bool = False
    source_contribution: bool = False

    def __post_init__(self) -> None:
        for name in _OF_MAPS if self.heads is None else ():
            if getattr(self, name) is not None:
                raise UsageError(f"{name} without heads: expected the maps that it applies to")
        if self.heads is not None and self.profile not in (None, NO_PROFILE):
            raise UsageError("heads together with profile, which names the maps: leave one of the two out")
        if self.rule is not None:
            rule_of(self.rule)
        passes = self.lexical_table
        if passes is not None and passes < 0:
            raise UsageError(
                f"lexical table {passes}: expected a number of passes, 1 or more, or 0 for no lexical table"
            )
        if self.lexical_table_file is not None and (passes or self.lexical_table_pairs):
            raise UsageError(
                f"lexical table file {self.lexical_table_file} with passes or pairs: none is counted then; leave them out"
            )
        for name in ("max_tokens", "lexical_table_pairs"):
            if (value := getattr(self, name)) is not None:
                check_whole(name, value)

    @property
    def both(self) -> BidirectionalOptions | None:
        """How two directions become one, if it is stated."""
        if self.join is None:
            return None
        return BidirectionalOptions(method=self.join) if self.join in METHODS else BidirectionalOptions(self.join)

    def named_maps(self, directions: int) -> AlignmentMethod:
        """The method that reads the named maps of one direction or of two."""
        both = self.both or (BidirectionalOptions(DEFAULTS.join) if directions > 1 else None)
        forward = ExtractionOptions(
            self.kind or DEFAULTS.kind,
            MapNames(self.heads or ()),
            self.combine or DEFAULTS.combine,
            self.setting or DEFAULTS.setting,
            self.rule or DEFAULTS.rule(None if both is None else both.join),
            self.null,
            bool(self.final_punctuation),
        )
        reverse = None
        if directions > 1:
            reverse = forward if self.reverse_heads is None else replace(forward, heads=MapNames(self.reverse_heads))
        return AlignmentMethod(forward, reverse, both, self.lexical_table or 0)


@dataclass(frozen=True)
class ChosenMethod:
    """A method and where it comes from.

    Attributes:
        method: the method.
        reason: which profile it is by, for a reader; empty where maps are named.
        fields: signature fields of the choice, besides those of the method.
    """

    method: AlignmentMethod
    reason: str = ""
    fields: dict[str, Value] = field(default_factory=dict)


def choose_method(
    options: AlignmentOptions, directions: int, profiles: Sequence[Profile], pairs: int | None
) -> ChosenMethod:
    """The method by the named maps, else by the profiles.

    Args:
        options: what the user states.
        directions: 1, or 2 with a target-source model.
        profiles: the profile of each direction's model; not read where ``options`` name maps.
        pairs: how many sentence pairs are aligned together; None: unknown, or one by one.
    """
    if options.heads is not None:
        chosen = ChosenMethod(options.named_maps(directions))
    else:
        chosen = _by_profiles(options, profiles, pairs)
    method = chosen.method
    if options.lexical_table_file is not None:
        method.check_lexical_table()
    if options.lexical_table_pairs is not None:
        if not method.lexical_table_passes:
            raise UsageError("lexical_table_pairs: no lexical table is counted here: expected its passes, too")
        method = replace(method, lexical_table_pairs=options.lexical_table_pairs)
    return replace(chosen, method=method)


def _by_profiles(options: AlignmentOptions, profiles: Sequence[Profile], pairs: int | None) -> ChosenMethod:
    both = options.both or (BidirectionalOptions(DEFAULTS.join) if len(profiles) > 1 else None)
    join = None if both is None else both.join
    passes, file = options.lexical_table, options.lexical_table_file
    if passes is None:
        unformed = not all(profile.formed for profile in profiles) and (both is None or join == "product")
        enough = pairs is not None and pairs >= DEFAULTS.fewest_pairs
        passes = DEFAULTS.lexical_table_passes if unformed and enough and file is None else 0
    lexical_table = bool(passes or file)
    each = [profile.extraction(join, lexical_table and both is None) for profile in profiles]
    if options.rule is not None:
        each = [own.with_rule(options.rule) for own in each]
    if options.final_punctuation is not None:
        each = [replace(own, final_punctuation=options.final_punctuation) for own in each]
    method = AlignmentMethod(each[0], each[1] if len(each) > 1 else None, both, passes)
    fields: dict[str, Value] = {}
    for prefix, profile in zip(("", "reverse_"), profiles):
        fields.update({f"{prefix}{name}": value for name, value in profile.fields().items()})
    read = [described(each[0])]
    if len(each) > 1 and each[1].heads != each[0].heads:
        read.append(f"and, in the other direction, {described(each[1])}")
    reason = f"reading {' '.join(read)}; profile: {', '.join(dict.fromkeys(profile.name for profile in profiles))}"
    remarks = [*map(_remark, profiles), _lexical_table(method, pairs, options, profiles[0])]
    return ChosenMethod(method, "; ".join([reason, *dict.fromkeys(filter(None, remarks))]), fields)


def _remark(profile: Profile) -> str:
    """What a reader should know of a profile that has no good maps."""
    if profile.formed:
        return ""
    if not profile.text:
        return (
            f"the text is too short to choose maps by: give {DEFAULTS.fewest_pairs} pairs or more, or run norm-align "
            f"calibrate"
        )
    agreement = f"{100 * (profile.figure or 0):.0f} %"
    return f"the alignment of this model has not formed: above chance its maps agree in {agreement} of their links"


def _lexical_table(method: AlignmentMethod, pairs: int | None, options: AlignmentOptions, forward: Profile) -> str:
    """What a reader should know of the lexical table; empty if there is none and none is missed."""
    if options.lexical_table_file is not None:
        return f"lexical table: {options.lexical_table_file}"
    if method.lexical_table_passes:
        return "with a lexical table of the text, so each pair depends on the others (--lexical-table 0: not)"
    if options.lexical_table is not None or method.both is not None:
        return ""
    if pairs is not None and pairs < DEFAULTS.fewest_pairs and not forward.formed:
        return f"without a lexical table, which needs {DEFAULTS.fewest_pairs} pairs, not {pairs}"
    weak = forward.chosen_by == "agreement" and forward.figure is not None and forward.figure < _WEAK
    return "these maps agree little: --lexical-table 2 may help" if weak else ""


def described(options: ExtractionOptions) -> str:
    """The maps that are read: ``head 0.0 (AWI) × layer 2 (AWO)``."""
    names = [_described(name, options.setting) for name in options.heads]
    if len(names) > 1 and options.combine == "mean":
        return f"the mean of {' and '.join(names)}"
    return " × ".join(names)


def _described(name: MapName, setting: str) -> str:
    what = "layer" if name.head is None else "head"
    return f"{what} {replace(name, setting=None)} ({(name.setting or setting).upper()})"


def description(profile: Profile) -> str:
    """What a profile reads, how that was chosen, and by which shares words are linked."""
    if profile.chosen_by == "training":
        chosen = f"which it was trained to align with; on {profile.pairs} pairs"
    else:
        agreement = f"{100 * profile.figure:.1f} % agreement" if profile.figure is not None else "no two maps agree"
        chosen = f"chosen by {profile.chosen_by} on {profile.pairs} pairs, {agreement}"
    rules = f"rule {profile.extraction().rule}"
    if not profile.formed:
        rules += f", with a lexical table {profile.extraction(lexical_table=True).rule}"
    if profile.reverse_maps is not None:
        rules += f", both models {profile.extraction(DEFAULTS.join).rule}"
    return f"{described(profile.maps)}, {chosen}; {rules}"


def warn_of_few_pairs(lexical_table: LexicalTable) -> None:
    """Warn of a counted lexical table of few pairs."""
    if lexical_table.pairs < DEFAULTS.fewest_pairs:
        warn_on_stderr(
            f"the lexical table was counted on {lexical_table.pairs} sentence pairs: below {DEFAULTS.fewest_pairs} it "
            f"says little; count one on more text with norm-align --save-lexical-table, and give it as --lexical-table FILE "
            f"(lexical_table_file in Python)"
        )
