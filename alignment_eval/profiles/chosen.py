"""The method of a text when no maps are named: by the profiles of one model or two, which are found here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import (
    FEWEST_PAIRS,
    WEAK,
    joined,
    with_word_table,
)
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.maps.sentence import PairWords
from alignment_eval.profiles.profile import Profile, read_profile
from alignment_eval.signature import Value

#: The value of ``--profile`` that ignores the profile of a model.
NO_PROFILE = "none"


@dataclass(frozen=True)
class Overrides:
    """What a user states besides the maps; None: as the profile says.

    Attributes:
        rule: an extraction rule.
        word_table_passes: passes over a word table, 0 for none.
        both: how two directions become one.
        final_punctuation: whether the final punctuation of both sides is linked to each other only.
        word_table_file: the file of a word table that is used; the text's own is then not counted.
    """

    rule: str | None = None
    word_table_passes: int | None = None
    both: BidirectionalOptions | None = None
    final_punctuation: bool | None = None
    word_table_file: str | None = None

    def __post_init__(self) -> None:
        passes = self.word_table_passes
        if passes is not None and passes < 0:
            raise UsageError(f"word table {passes}: expected a number of passes, 1 or more, or 0 for no word table")
        if self.word_table_file is not None:
            if passes:
                raise UsageError(
                    f"word table {passes} with word table file {self.word_table_file}: no word table is counted then; "
                    f"give one of the two"
                )
            object.__setattr__(self, "word_table_passes", 0)


#: Nothing is stated.
AS_PROFILED = Overrides()


@dataclass(frozen=True)
class ChosenMethod:
    """A method and where it comes from.

    Attributes:
        method: the method.
        reason: how it was chosen, for a reader.
        fields: signature fields of the choice, besides those of the method.
        profile: the profile of the source-target model; None where maps were named.
    """

    method: AlignmentMethod
    reason: str
    fields: dict[str, Value]
    profile: Profile | None = None


def by_options(method: AlignmentMethod) -> ChosenMethod:
    """A method that the options name."""
    return ChosenMethod(method, "maps by the options", {})


@dataclass(frozen=True)
class ProfileSource:
    """Where the profile of one model may come from.

    Attributes:
        model: hash of the model.
        carried: gives the profile that comes with the model, and its name for a reader; None: there is none.
        calibrate: chooses maps on the text or on its recorded maps; gives the choice, and where it was made.
    """

    model: str
    carried: Callable[[], tuple[Profile, str] | None]
    calibrate: Callable[[], tuple[Profile, str]]


def find_profiles(sources: Sequence[ProfileSource], named: str | None) -> tuple[list[Profile], list[str]]:
    """The profile of each model, and where it comes from.

    ``sources`` are those of the source-target model, and of the target-source model if there is one.  ``named`` is a
    profile's file; ``none``: choose on the text; None: first look for a profile that comes with the model.
    """
    if named is not None and named != NO_PROFILE:
        profile = read_profile(named, sources[0].model)
        if len(sources) == 1:
            return [profile], [named]
        if profile.both is None:
            raise UsageError(
                f"--profile {named}: is of one direction, but two models are given: expected a profile of both; "
                f"run norm-align calibrate with --reverse-path"
            )
        return [profile, profile.of_reverse(sources[1].model, named)], [named, named]
    found = [(source.carried() if named is None else None) or source.calibrate() for source in sources]
    return [profile for profile, _ in found], [name for _, name in found]


def chosen_method(
    profiles: Sequence[Profile], names: Sequence[str], pairs: int | None, overrides: Overrides = AS_PROFILED
) -> ChosenMethod:
    """The method by profiles.

    ``profiles`` are those of the source-target model, and of the target-source model if there is one.  ``pairs`` are
    aligned together; None: unknown, or one by one.
    """
    given = overrides.word_table_passes
    wanted = bool(given or overrides.word_table_file)
    counted = pairs if given is None else (FEWEST_PAIRS if wanted else None)
    forward, *rest = profiles
    if rest and overrides.both is not None and overrides.both.join != "product":
        each = [profile.streamed.forward for profile in profiles]
        each = [joined(options) for options in each] if overrides.both.joins_maps else each
        method = AlignmentMethod(each[0], each[1], overrides.both)
    else:
        method = forward.method_with(rest[0], counted) if rest else forward.method(counted)
    method = _overridden(with_word_table(method) if wanted else method, overrides)
    fields: dict[str, Value] = {}
    for prefix, profile in zip(("", "reverse_"), profiles):
        fields.update({f"{prefix}{name}": value for name, value in profile.fields().items()})
    read = [described(method.forward)]
    if method.reverse is not None and method.reverse.heads != method.forward.heads:
        read.append(f"and, in the other direction, {described(method.reverse)}")
    reason = f"reading {' '.join(read)}; profile: {', '.join(dict.fromkeys(names))}"
    remarks = [_remark(profile) for profile in profiles] + [_word_table(method, pairs, overrides, forward)]
    return ChosenMethod(method, "; ".join([reason, *dict.fromkeys(filter(None, remarks))]), fields, forward)


def _overridden(method: AlignmentMethod, overrides: Overrides) -> AlignmentMethod:
    both, passes = overrides.both or method.both, overrides.word_table_passes
    if passes is None:
        passes = method.word_table_passes if both is None or both.joins_maps else 0
    each = [method.forward] if method.reverse is None else [method.forward, method.reverse]
    if overrides.rule is not None:
        each = [options.with_rule(overrides.rule) for options in each]
    if overrides.final_punctuation is not None:
        each = [replace(options, final_punctuation=overrides.final_punctuation) for options in each]
    return AlignmentMethod(each[0], each[1] if len(each) > 1 else None, both, passes)


def _remark(profile: Profile) -> str:
    """What a reader should know of a profile that has no good maps."""
    if profile.chosen_by != "upper-layers":
        return ""
    if not profile.text:
        return (
            f"the text is too short to choose maps by: give {FEWEST_PAIRS} pairs or more, or run norm-align calibrate"
        )
    agreement = f"{100 * (profile.figure or 0):.0f} %"
    return f"the alignment of this model has not formed: above chance its maps agree in {agreement} of their links"


def _word_table(method: AlignmentMethod, pairs: int | None, overrides: Overrides, forward: Profile) -> str:
    """What a reader should know of the word table; empty if there is none and none is missed."""
    if overrides.word_table_file is not None:
        return f"word_table: {overrides.word_table_file}"
    if method.word_table_passes:
        return "with a word table of the text, so each pair depends on the others (--word-table 0: not)"
    if overrides.word_table_passes is not None or method.both is not None:
        return ""
    if pairs is not None and pairs < FEWEST_PAIRS and forward.alone.word_table_passes:
        return f"without a word table, which needs {FEWEST_PAIRS} pairs, not {pairs}"
    weak = forward.chosen_by == "agreement" and forward.figure is not None and forward.figure < WEAK
    return "these maps agree little: --word-table 2 may help" if weak else ""


def described(options: ExtractionOptions) -> str:
    """The maps that are read: ``head 0.0 (AWI) × layer 2 (AWO)``."""
    names = []
    for name in options.heads:
        what = "layer" if name.head is None else "head"
        names.append(f"{what} {replace(name, setting=None)} ({(name.setting or options.setting).upper()})")
    if len(names) > 1 and options.combine == "mean":
        return f"the mean of {' and '.join(names)}"
    return " × ".join(names)


def description(profile: Profile) -> str:
    """What a profile reads, how that was chosen, and by which shares words are linked."""
    maps = described(profile.streamed.forward)
    if profile.chosen_by == "training":
        chosen = f"which it was trained to align with; on {profile.pairs} pairs"
    else:
        chosen = f"chosen by {profile.chosen_by} on {profile.pairs} pairs, {_figure(profile)}"
    rules = f"rule {profile.streamed.forward.rule}"
    if profile.alone.word_table_passes:
        rules += f", with a word table {profile.alone.forward.rule}"
    if profile.both is not None:
        rules += f", both models {profile.both.forward.rule}"
    return f"{maps}, {chosen}; {rules}"


def _figure(profile: Profile) -> str:
    if profile.figure is None:
        return "no two maps agree by more than chance"
    if profile.chosen_by == "gold":
        return f"AER {100 * profile.figure:.2f} %, an optimistic figure: report one on other sentences"
    return f"{100 * profile.figure:.1f} % agreement"


def few_pairs_warning(pairs: int) -> str | None:
    """What to warn of if a word table was counted on ``pairs`` sentence pairs; None: they are enough."""
    if pairs >= FEWEST_PAIRS:
        return None
    return (
        f"the word table was counted on {pairs} sentence pairs: below {FEWEST_PAIRS} it says little; count one on more "
        f"text with norm-align --save-word-table, and give it as --word-table FILE (word_table_file in Python)"
    )


def seen_warning(profile: Profile | None, pairs: Iterable[PairWords], size: int) -> str | None:
    """A warning if the maps were chosen by the gold of some of the sentence pairs that are aligned."""
    seen = 0 if profile is None else profile.seen(pairs)
    if not seen:
        return None
    return (
        f"{seen} of these {size} sentence pairs are among those the maps were chosen on, with their gold: an AER of "
        f"these links is optimistic; report one on other sentences"
    )
