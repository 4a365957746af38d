"""Profiles of recorded runs: a named file, the profile in the records, or a choice on the recorded maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.extraction.defaults import KIND, PAIRS
from alignment_eval.extraction.options import MapName
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.chosen import (
    AS_PROFILED,
    ChosenMethod,
    Overrides,
    ProfileSource,
    chosen_method,
    find_profiles,
)
from alignment_eval.profiles.profile import Profile, parse_profile
from alignment_eval.profiles.shares import Calibration, calibration
from alignment_eval.records.store import Records, RunInfo


def model_of(info: RunInfo) -> str | None:
    """Hash of the model of a run; None if the records do not hold it."""
    model = info.signature.get("model")
    return None if model is None else str(model)


def method_of_records(
    runs: Sequence[Records], named: str | None, overrides: Overrides = AS_PROFILED, pair_by_pair: bool = False
) -> ChosenMethod:
    """The method by the profiles of runs, where no maps are named.

    ``named`` is a profile file; ``none``: choose on the recorded maps; None: first look for a profile in the records.
    With ``pair_by_pair`` no lexicon is counted unless it is stated.

    Raises:
        UsageError: what is stated does not go together; a profile of one direction is named for two; or the maps to
            choose among were not recorded.
        InputError: a profile cannot be used, an error of the records, or they lack a map of a profile.
    """
    sources = [
        ProfileSource(str(model_of(run.info)), partial(_carried, run), partial(calibrated_records, run)) for run in runs
    ]
    profiles, names = find_profiles(sources, named)
    if pair_by_pair:
        profiles = [replace(profile, alone=profile.streamed) for profile in profiles]
    chosen = chosen_method(profiles, names, runs[0].info.size, overrides)
    for run, name, options in zip(runs, names, (chosen.method.forward, chosen.method.reverse)):
        if options is not None:
            check_maps(name, options.maps, run.info, run.directory)
    return chosen


def _carried(records: Records) -> tuple[Profile, str] | None:
    """The profile that records carry."""
    if records.info.profile is None:
        return None
    return parse_profile(records.info.profile, str(records.directory)), f"the one in {records.directory}"


def calibrated_records(records: Records) -> tuple[Calibration, str]:
    """A choice on recorded maps, without gold, and where it was made.

    Raises:
        UsageError: the maps to choose among were not recorded.
    """
    if KIND not in records.info.kinds:
        raise UsageError(
            f"{records.directory}: kind {KIND} was not recorded, so no maps can be chosen: name them by --kind and "
            f"--heads, or give --profile FILE"
        )
    sentences = list(_different(records))
    chosen = calibration(sentences, records.info.layers, str(model_of(records.info)))
    return chosen, f"none, chosen on the maps in {records.directory}"


def _different(records: Records) -> Iterator[SentenceMaps]:
    """The first :data:`PAIRS` different sentence pairs that have maps, by id."""
    seen: set[tuple[tuple[str, ...], ...]] = set()
    for sentence in records.best():
        words = tuple(map(tuple, words_of(sentence)))
        if sentence.ok and words not in seen:
            seen.add(words)
            yield sentence
        if len(seen) == PAIRS:
            return


def check_maps(name: str, maps: Sequence[MapName], info: RunInfo, directory: str | Path) -> None:
    """Check that the records of a run have the maps of a profile.

    Raises:
        InputError: they lack a layer or head.
    """
    for chosen in maps:
        if chosen.layer not in info.layers or (chosen.head is not None and chosen.head >= info.heads):
            raise InputError(
                f"{name}: reads map {chosen} (LAYER.HEAD, or LAYER for a whole one), but {directory} holds layers "
                f"{', '.join(map(str, info.layers))} of {info.heads} heads, counted from 0: expected records with "
                f"those layers"
            )
