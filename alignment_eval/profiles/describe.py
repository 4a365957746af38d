"""Maps and profiles in words, for messages."""

from __future__ import annotations

from dataclasses import replace

from alignment_eval.extraction.defaults import ALONE, PRODUCT
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.profiles.profile import Profile


def described(options: ExtractionOptions) -> str:
    """The maps that are read: ``head 0.0 (AWI) × layer 2 (AWO)``."""
    names = []
    for name in options.maps:
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
    return f"{maps}, {chosen}; {_rules(profile)}"


def _figure(profile: Profile) -> str:
    if profile.figure is None:
        return "no two maps could be compared"
    if profile.chosen_by == "gold":
        return f"AER {100 * profile.figure:.2f} %, an optimistic figure: report one on other sentences"
    return f"{100 * profile.figure:.1f} % agreement"


def _rules(profile: Profile) -> str:
    """The rules of a profile, and whether their shares are the default ones."""
    rules = f"rule {_rule(profile.streamed, ALONE)}"
    if profile.alone.lexicon_passes:
        rules += f", with a lexicon {profile.alone.forward.rule}"
    return rules if profile.both is None else f"{rules}, both models {_rule(profile.both, PRODUCT)}"


def _rule(method: AlignmentMethod, default: float) -> str:
    name, _, value = method.forward.rule.partition("=")
    if name not in ("balanced", "grow"):
        return method.forward.rule
    return f"{name}={value} ({'default' if value == str(default) else f'estimated; default {default}'})"
