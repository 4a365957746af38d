"""The method of a text when no maps are named: by the profiles of one model or two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import Words
from alignment_eval.extraction.defaults import FEWEST_PAIRS, joined, with_lexicon
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions, Value
from alignment_eval.selection.profile import Profile

#: Formed models whose maps agree less (Dice) gained up to 4 points from a lexicon (docs/reproduction.md).
WEAK = 0.52


@dataclass(frozen=True)
class Overrides:
    """What a user states besides the maps; None: as the profile says.

    Attributes:
        rule: an extraction rule.
        lexicon_passes: passes over a lexicon, 0 for none.
        both: how two directions become one.
        final_punctuation: whether the final punctuation of both sides is linked to each other only.
        lexicon_file: the file of a lexicon that is used; the text's own is then not counted (``lexicon_passes`` 0).
    """

    rule: str | None = None
    lexicon_passes: int | None = None
    both: BidirectionalOptions | None = None
    final_punctuation: bool | None = None
    lexicon_file: str | None = None


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


def chosen_method(
    profiles: Sequence[Profile], sources: Sequence[str], pairs: int | None, overrides: Overrides = Overrides()
) -> ChosenMethod:
    """The method by profiles.

    Args:
        profiles: that of the source-target model, and of the target-source model if there is one.
        sources: where each profile comes from, for a reader.
        pairs: how many sentence pairs are aligned together; None: unknown, or one by one.
        overrides: what is stated besides the profiles.

    Raises:
        UsageError: the stated options contradict each other.
    """
    given = overrides.lexicon_passes
    wanted = bool(given or overrides.lexicon_file)
    counted = pairs if given is None else (FEWEST_PAIRS if wanted else None)
    forward, *rest = profiles
    if rest and overrides.both is not None and overrides.both.join != "product":
        each = [profile.streamed.forward for profile in profiles]
        each = [joined(options) for options in each] if overrides.both.join == "average" else each
        method = AlignmentMethod(each[0], each[1], overrides.both)
    else:
        method = forward.method_with(rest[0], counted) if rest else forward.method(counted)
    method = _overridden(with_lexicon(method) if wanted else method, overrides)
    fields: dict[str, Value] = {}
    for prefix, profile in zip(("", "reverse_"), profiles):
        fields.update({f"{prefix}{name}": value for name, value in profile.fields().items()})
    read = (method.forward, method.reverse or method.forward)
    said = [
        f"{_described(profile, maps, len(profiles) == 1)} ({source})"
        for profile, maps, source in zip(profiles, read, sources)
    ]
    return ChosenMethod(method, "; ".join([*said, _lexicon(method, pairs, overrides, forward)]), fields, forward)


def _overridden(method: AlignmentMethod, overrides: Overrides) -> AlignmentMethod:
    both, passes = overrides.both or method.both, overrides.lexicon_passes
    if passes is None:
        weighable = both is None or both.join in ("product", "average")
        passes = method.lexicon_passes if weighable else 0
    each = [method.forward] if method.reverse is None else [method.forward, method.reverse]
    if overrides.rule is not None:
        each = [options.with_rule(overrides.rule) for options in each]
    if overrides.final_punctuation is not None:
        each = [replace(options, final_punctuation=overrides.final_punctuation) for options in each]
    return AlignmentMethod(each[0], each[1] if len(each) > 1 else None, both, passes)


def _described(profile: Profile, maps: ExtractionOptions, alone: bool) -> str:
    if profile.chosen_by == "upper-layers":
        if profile.figure is None:
            return f"maps {maps.map_names}, the upper layers: the text is too short to choose maps by"
        return (
            f"maps {maps.map_names}, the upper layers: its alignment has not formed "
            f"(agreement {100 * profile.figure:.0f} %)"
        )
    if profile.chosen_by == "training":
        return f"maps {maps.map_names}, which it was trained to align with"
    of_both = profile.chosen_by == "gold" and profile.both is not None  # the figure of both says nothing of one alone
    name = "AER" if profile.chosen_by == "gold" else profile.chosen_by
    figure = "" if profile.figure is None or (alone and of_both) else f" ({name} {100 * profile.figure:.1f} %)"
    return f"maps {maps.map_names}, chosen by {profile.chosen_by} on {profile.pairs} pairs{figure}"


def _lexicon(method: AlignmentMethod, pairs: int | None, overrides: Overrides, forward: Profile) -> str:
    if overrides.lexicon_file is not None:
        return f"with the lexicon of {overrides.lexicon_file}: each pair stands alone"
    if method.lexicon_passes:
        return "with a lexicon of the text: each pair depends on the others (--lexicon 0: not)"
    few = pairs is not None and pairs < FEWEST_PAIRS
    if overrides.lexicon_passes is None and method.both is None and few and forward.alone.lexicon_passes:
        return f"without a lexicon, which needs {FEWEST_PAIRS} pairs, not {pairs}: each pair stands alone"
    hint = " (these maps agree little: --lexicon 2 may help)" if _is_weak(method, overrides, forward) else ""
    return f"without a lexicon: each pair stands alone{hint}"


def _is_weak(method: AlignmentMethod, overrides: Overrides, forward: Profile) -> bool:
    """Whether a lexicon, which is not turned off, may help one formed model."""
    by_agreement = forward.figure if forward.chosen_by == "agreement" else None
    free = overrides.lexicon_passes is None and method.both is None
    return free and by_agreement is not None and by_agreement < WEAK


def few_pairs_warning(pairs: int) -> str | None:
    """What to warn of if a lexicon was counted on ``pairs`` sentence pairs; None: they are enough."""
    if pairs >= FEWEST_PAIRS:
        return None
    return (
        f"the lexicon was counted on {pairs} sentence pairs: below {FEWEST_PAIRS} it says little; count one on more "
        f"text with norm-align --save-lexicon, and give it with --lexicon-file (lexicon_file in Python)"
    )


def seen_warning(profile: Profile | None, pairs: Iterable[Words], size: int) -> str | None:
    """A warning if the maps were chosen by the gold of some of the sentence pairs that are aligned.

    Args:
        profile: what the maps were chosen by, if it is a profile.
        pairs: the words of each pair; read only if the choice was made by gold.
        size: how many pairs there are.
    """
    seen = 0 if profile is None else profile.seen(pairs)
    if not seen:
        return None
    return (
        f"{seen} of these {size} sentence pairs are among those the maps were chosen on, with their gold: an AER of "
        f"these links is optimistic; report one on other sentences"
    )


def require_both(profile: Profile, name: str) -> None:
    """Check that a profile named for two models is a profile of two.

    Raises:
        UsageError: it is a profile of one direction.
    """
    if profile.both is None:
        raise UsageError(
            f"--profile {name}: is of one direction, but two models are given: expected a profile of both; "
            f"run norm-align calibrate with --reverse-path"
        )
