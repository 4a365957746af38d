"""How to align with models: by named maps, by their profiles, or by profiles that are made on the text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

from alignment_eval.extraction.method import DEFAULTS, MapName
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod, choose_method
from alignment_eval.profiles.profile import Profile, find_profile, fit_profile
from alignment_eval.progress import progress_bar
from fairseq_norm_plugin.model.direction import Direction, length_batches
from fairseq_norm_plugin.text.tokenise import SentencePair

#: Tokens of a batch at most: all layers of it are held, which takes gigabytes of larger batches in large models.
_TOKENS = 1000


def choose(
    options: AlignmentOptions,
    directions: Sequence[Direction],
    models: Sequence[str],
    text: Iterable[SentencePair] = (),
    pairs: int | None = None,
) -> ChosenMethod:
    """How to align: by the maps that ``options`` name, else by the models' profiles, else by a choice on the text.

    Args:
        options: what the user states.
        directions: the source-target model, and the target-source model if there is one.
        models: their hashes.
        text: the pairs to be aligned; models without a profile choose their maps on the first of them.
        pairs: how many sentence pairs are aligned together; None: unknown, or one by one.
    """
    usable: list[SentencePair] | None = None
    profiles: list[Profile] = []
    named = None if options.profile is None else str(options.profile)
    for direction, model in zip(directions, models) if options.heads is None else ():
        reverse = bool(profiles)
        found = find_profile(model, named, direction.profile, reverse)
        if found is None:
            usable = usable_pairs(text, directions) if usable is None else usable
            own = [pair.exchanged for pair in usable] if reverse else usable
            where = "the maps it was trained with" if direction.guided else "none, chosen on the text itself"
            found = replace(fit_on_pairs(direction, own, model, options.max_tokens), name=where, of_text=True)
        profiles.append(found)
    return choose_method(options, len(directions), profiles, pairs)


def usable_pairs(pairs: Iterable[SentencePair], directions: Sequence[Direction]) -> list[SentencePair]:
    """The first different source-target pairs that all models can align; they are read as far as needed."""
    different: dict[tuple[tuple[str, ...], ...], SentencePair] = {}
    for pair in itertools.chain.from_iterable(pair.sentences for pair in pairs):
        if can_align(pair, directions):
            different.setdefault(pair.words, pair)
        if len(different) == DEFAULTS.profile_pairs:
            break
    return list(different.values())


def can_align(pair: SentencePair, directions: Sequence[Direction]) -> bool:
    """Whether each of the models can read a source-target pair."""
    ways = zip(directions, (pair, pair.exchanged))
    return not any(direction.refusal(direction.encode(way)) for direction, way in ways)


def fit_on_pairs(direction: Direction, pairs: Iterable[SentencePair], model: str, max_tokens: int) -> Profile:
    """The profile of a model by its training to align, else by its maps of sentence pairs, without gold.

    Args:
        direction: the model.
        pairs: sentence pairs that it can align (:func:`usable_pairs`), in its own direction.
        model: its hash.
        max_tokens: tokens of a batch, pads included.
    """
    encoded = {id_: direction.encode(pair) for id_, pair in enumerate(pairs)}
    if len(encoded) < DEFAULTS.fewest_pairs:
        encoded = {}
    layers = range(direction.layers)
    batches = list(length_batches(encoded, min(max_tokens, _TOKENS)))
    maps: dict[int, SentenceMaps] = {}
    for batch in progress_bar(batches, len(batches), "batches"):
        maps |= direction.maps(batch, [DEFAULTS.kind], list(map(MapName, layers)))
    return fit_profile([maps[id_] for id_ in encoded], layers, model, direction.guided)
