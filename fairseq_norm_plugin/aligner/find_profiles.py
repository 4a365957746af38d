"""The profile of each model: the one that is named, the one beside its checkpoint, or what the text itself shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial

from alignment_eval.profiles.chosen import ProfileSource, find_profiles
from alignment_eval.profiles.profile import Profile, read_profile
from fairseq_norm_plugin.aligner.calibration import calibrate, usable_pairs
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.text.tokenise import LinePair


def profiles_of(
    directions: Sequence[Direction],
    models: Sequence[str],
    text: Iterable[LinePair],
    named: str | None = None,
    max_tokens: int = 4000,
) -> tuple[list[Profile], list[str]]:
    """The profile of each model and its name (:func:`alignment_eval.profiles.chosen.find_profiles`).

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
    pairs = cache(lambda: usable_pairs(text, directions))

    def carried(direction: Direction, model: str) -> tuple[Profile, str] | None:
        path = direction.profile
        return (read_profile(path, model), str(path)) if path.is_file() else None

    def chosen(direction: Direction, model: str, exchanged: bool) -> tuple[Profile, str]:
        own = [pair[::-1] if exchanged else pair for pair in pairs()]
        where = "the maps it was trained with" if direction.guided else "none, chosen on the text itself"
        return calibrate(direction, own, model, max_tokens), where

    sources = [
        ProfileSource(model, partial(carried, direction, model), partial(chosen, direction, model, exchanged))
        for direction, model, exchanged in zip(directions, models, (False, True))
    ]
    return find_profiles(sources, named)
