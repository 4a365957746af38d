"""The profile of each model: the one that is named, the one beside its checkpoint, or what the text itself shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Optional

from alignment_eval.selection.chosen import require_both
from alignment_eval.selection.of_records import NO_PROFILE
from alignment_eval.selection.profile import Profile, read_profile
from alignment_eval.selection.shares import Calibration, profiles_together
from fairseq_norm_plugin.aligning.calibration import calibrate, usable_pairs
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.text import TokenPair


def find_profiles(
    directions: Sequence[Direction],
    models: Sequence[str],
    text: Iterable[TokenPair],
    named: Optional[str] = None,
    max_tokens: int = 4000,
) -> tuple[list[Profile], list[str]]:
    """The profile of each model and where it comes from.

    Args:
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
        text: the pairs to be aligned; models without a profile choose their maps on the first of them.
        named: the profile's file; ``none``: no profile; None: those beside the checkpoints.
        max_tokens: tokens of a batch, pads included.

    Raises:
        UsageError: a profile of one direction is named for two.
        InputError: a profile cannot be used.
    """
    if named is not None and named != NO_PROFILE:
        profile = read_profile(named, models[0])
        if len(directions) == 1:
            return [profile], [named]
        require_both(profile, named)
        return [profile, profile.of_reverse(models[1], named)], [named, named]
    found: list[Calibration] = []
    sources: list[str] = []
    pairs = None
    for direction, model, exchanged in zip(directions, models, (False, True)):
        beside = direction.profile
        if named is None and beside.is_file():
            found.append(Calibration(read_profile(beside, model)))
            sources.append(str(beside))
            continue
        if pairs is None:
            pairs = usable_pairs(text, directions)
        mine = [(pair[1], pair[0]) if exchanged else pair for pair in pairs]
        found.append(calibrate(direction, mine, model, max_tokens))
        sources.append("its checkpoint" if direction.guided else "the text itself")
    return profiles_together(found), sources
