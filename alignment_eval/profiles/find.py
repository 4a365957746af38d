"""Finding the profile of each model: a named file, the one that comes with the model, or a choice on the text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from alignment_eval.errors import UsageError
from alignment_eval.profiles.profile import Profile, read_profile
from alignment_eval.profiles.shares import Calibration, profiles_together

#: The value of ``--profile`` that ignores the profile of a model.
NO_PROFILE = "none"


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
    calibrate: Callable[[], tuple[Calibration, str]]


def find_profiles(sources: Sequence[ProfileSource], named: str | None) -> tuple[list[Profile], list[str]]:
    """The profile of each model, and where it comes from.

    Args:
        sources: for the source-target model, and for the target-source model if there is one.
        named: a profile's file; ``none``: choose on the text; None: first look for a profile that comes with the model.

    Raises:
        UsageError: a profile of one direction is named for two.
        InputError: a profile cannot be used.
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
    calibrations, names = [], []
    for source in sources:
        carried = source.carried() if named is None else None
        calibration, name = source.calibrate() if carried is None else (Calibration(carried[0]), carried[1])
        calibrations.append(calibration)
        names.append(name)
    return profiles_together(calibrations), names
