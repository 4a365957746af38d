"""Recorded runs: the method by their profiles, and their sentence pairs in one direction or in two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import KIND, PAIRS
from alignment_eval.extraction.extract import WordMap, WordMaps, read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.links.checks import Texts
from alignment_eval.maps.sentence import PairWords, SentenceMaps, words_of
from alignment_eval.profiles.chosen import (
    AS_PROFILED,
    ChosenMethod,
    Overrides,
    ProfileSource,
    chosen_method,
    find_profiles,
)
from alignment_eval.profiles.profile import Profile, choose_profile, parse_profile
from alignment_eval.records.store import Records, RunInfo
from alignment_eval.scoring.gold_corpus import confirmed


def model_of(info: RunInfo) -> str | None:
    """Hash of the model of a run; None if the records do not hold it."""
    model = info.signature.get("model")
    return None if model is None else str(model)


def method_of_records(
    runs: Sequence[Records], named: str | None, overrides: Overrides = AS_PROFILED, pair_by_pair: bool = False
) -> ChosenMethod:
    """The method by the profiles of runs, where no maps are named.

    ``named`` is a profile file; ``none``: choose on the recorded maps; None: first look for a profile in the records.
    With ``pair_by_pair`` no word table is counted unless it is stated.
    """
    sources = [
        ProfileSource(str(model_of(run.info)), partial(_carried, run), partial(calibrated_records, run)) for run in runs
    ]
    profiles, names = find_profiles(sources, named)
    if pair_by_pair:
        profiles = [replace(profile, alone=profile.streamed) for profile in profiles]
    chosen = chosen_method(profiles, names, runs[0].info.size, overrides)
    for run, name, options in zip(runs, names, (chosen.method.forward, chosen.method.reverse)):
        for chosen_map in () if options is None else options.heads:
            if chosen_map.layer not in run.info.layers or (
                chosen_map.head is not None and chosen_map.head >= run.info.heads
            ):
                raise InputError(
                    f"{name}: reads map {chosen_map} (LAYER.HEAD, or LAYER for a whole one), but {run.directory} holds "
                    f"layers {', '.join(map(str, run.info.layers))} of {run.info.heads} heads, counted from 0: "
                    f"expected records with those layers"
                )
    return chosen


def _carried(records: Records) -> tuple[Profile, str] | None:
    """The profile that records carry."""
    if records.info.profile is None:
        return None
    return parse_profile(records.info.profile, str(records.directory)), f"the one in {records.directory}"


def calibrated_records(records: Records) -> tuple[Profile, str]:
    """A choice on recorded maps, without gold, and where it was made."""
    if KIND not in records.info.kinds:
        raise UsageError(
            f"{records.directory}: kind {KIND} was not recorded, so no maps can be chosen: name them by --kind and "
            f"--heads, or give --profile FILE"
        )
    sentences = list(_different(records))
    chosen = choose_profile(sentences, records.info.layers, str(model_of(records.info)))
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


def directed_pairs(
    records: Records, reverse: Records | None, method: AlignmentMethod, level: str, texts: Texts | None
) -> Iterator[WordMaps]:
    """What the maps of one run or of two say of each sentence pair.

    The pairs that a word table is counted on come first; if there are others, the records are read twice.  Otherwise
    the order is that of the first run.
    """
    back: dict[int, WordMap] = {}
    if reverse is not None and method.reverse is not None:
        try:
            exchanged = None if texts is None else texts.exchanged
            sentences = best_of_each(reverse, method.reverse, level, exchanged)
            back = {sentence.id: read_word_map(sentence, method.reverse) for sentence in sentences}
        except InputError as error:
            raise InputError(f"{reverse.directory}: {error}") from error
    first = method.word_table_pairs if method.word_table_passes else records.info.size
    for ids in (range(first), range(first, records.info.size)):
        for sentence in best_of_each(records, method.forward, level, texts) if ids else ():
            if sentence.id in ids:
                yield read_word_map(sentence, method.forward), back.get(sentence.id)


def best_of_each(
    records: Records, options: ExtractionOptions, level: str, texts: Texts | None
) -> Iterator[SentenceMaps]:
    """The best hypothesis of every sentence; with level ``token`` its tokens pass for words."""
    for sentence in records.best():
        for name in options.heads:
            sentence.layer_index(name.layer)  # an unknown layer is an error even if all sentences were skipped
        checked = sentence if texts is None else confirmed(sentence, texts)
        yield checked.by_tokens() if level == "token" else checked


def with_words(pairs: Iterable[WordMaps], words: dict[int, tuple[PairWords, PairWords | None]]) -> Iterator[WordMaps]:
    """The same pairs; the words of those that can be aligned are put into ``words`` as they pass."""
    for forward, reverse in pairs:
        if forward.scores is not None and (reverse is None or reverse.scores is not None):
            other = None if reverse is None else words_of(reverse.sentence)
            words[forward.sentence.id] = words_of(forward.sentence), other
        yield forward, reverse
