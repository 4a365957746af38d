"""Profiles of recorded runs: a named file, the profile in the records, or a choice on the recorded maps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.extraction.options import MapName
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.store import Records, RunInfo
from alignment_eval.selection.agreement import FEWEST_PAIRS, KIND, PAIRS, choose_by_agreement
from alignment_eval.selection.chosen import ChosenMethod, Overrides, chosen_method, require_both
from alignment_eval.selection.profile import Profile, calibrated, parse_profile, read_profile, text_hash
from alignment_eval.selection.shares import Calibration, profiles_together

#: The value of ``--profile`` that ignores the profile of a model.
NO_PROFILE = "none"
_NOTHING = Overrides()


def model_of(info: RunInfo) -> str | None:
    """Hash of the model of a run; None if the records do not hold it."""
    model = info.signature.get("model")
    return None if model is None else str(model)


def profiles_of(runs: Sequence[Records], named: str | None) -> tuple[list[Profile], list[str]]:
    """The profile of each run's model, and where it comes from.

    Args:
        runs: the records of the source-target model, and of the target-source model if there are any.
        named: a profile file; ``none``: choose on the recorded maps; None: first look for a profile in the records.

    Raises:
        UsageError: the file is of one direction, but there are two; or the maps to choose among were not recorded.
        InputError: a profile cannot be used, or an error of the records.
    """
    if named is not None and named != NO_PROFILE:
        first = read_profile(named, model_of(runs[0].info))
        if len(runs) == 1:
            return [first], [named]
        require_both(first, named)
        return [first, first.of_reverse(str(model_of(runs[1].info)), named)], [named, named]
    found = [_profile_of(records, named) for records in runs]
    return profiles_together([made for made, _ in found]), [source for _, source in found]


def method_of_records(
    runs: Sequence[Records], named: str | None, overrides: Overrides = _NOTHING, pair_by_pair: bool = False
) -> ChosenMethod:
    """The method by the profiles of runs, where no maps are named.

    Args:
        runs: the records of the source-target model, and of the target-source model if there are any.
        named: as for :func:`profiles_of`.
        overrides: what is stated beside the profiles.
        pair_by_pair: whether no lexicon is counted unless it is stated.

    Raises:
        UsageError: what is stated does not go together, or as :func:`profiles_of`.
        InputError: as :func:`profiles_of`, or the records lack a map of a profile.
    """
    profiles, sources = profiles_of(runs, named)
    if pair_by_pair:
        profiles = [replace(profile, alone=profile.streamed) for profile in profiles]
    chosen = chosen_method(profiles, sources, runs[0].info.size, overrides)
    for run, source, options in zip(runs, sources, (chosen.method.forward, chosen.method.reverse)):
        if options is not None:
            check_maps(source, options.maps, run.info, run.directory)
    return chosen


def _profile_of(records: Records, named: str | None) -> tuple[Calibration, str]:
    carried = records.info.profile
    if carried is not None and named is None:
        return Calibration(parse_profile(carried, str(records.directory))), f"the profile in {records.directory}"
    info = records.info
    if KIND not in info.kinds:
        raise UsageError(
            f"{records.directory}: kind {KIND} was not recorded, so no maps can be chosen: name them by --kind and "
            f"--layer or --heads, or give --profile FILE"
        )
    sentences = list(_different(records))
    agreement = choose_by_agreement(sentences) if len(sentences) >= FEWEST_PAIRS else None
    text = text_hash((sentence.id, words_of(sentence)) for sentence in sentences)
    profile = calibrated(agreement, info.layers, str(model_of(info)), text, len(sentences))
    return Calibration.of(profile, sentences).with_share(), f"the maps in {records.directory}"


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

    Args:
        name: the profile, for messages.
        maps: its maps of this direction.
        info: the run.
        directory: its records, for messages.

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
