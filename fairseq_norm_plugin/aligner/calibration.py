"""The profile of each model: named, beside its checkpoint, or chosen on pairs, by agreement or by AER on a gold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial

import numpy as np

from alignment_eval.extraction.defaults import FEWEST_PAIRS, KIND, PAIRS, SHARE_ALONE, SHARE_GUIDED, single_rule
from alignment_eval.extraction.method import MapName
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.profiles.chosen import ProfileSource, find_profiles
from alignment_eval.profiles.profile import Profile, calibrated_by_gold, choose_profile, read_profile
from alignment_eval.profiles.search import choose_by_gold
from alignment_eval.progress import progress_bar
from fairseq_norm_plugin.aligner.aligner import length_batches
from fairseq_norm_plugin.aligner.direction import Direction, lengths_of
from fairseq_norm_plugin.text.tokenise import SentencePair

#: Tokens of a batch at most: all layers of it are held, which takes gigabytes of larger batches in large models.
_TOKENS = 1000


def profiles_of(
    directions: Sequence[Direction],
    models: Sequence[str],
    text: Iterable[SentencePair],
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
    """
    pairs = cache(lambda: usable_pairs(text, directions))

    def carried(direction: Direction, model: str) -> tuple[Profile, str] | None:
        path = direction.profile
        return (read_profile(path, model), str(path)) if path.is_file() else None

    def chosen(direction: Direction, model: str, exchanged: bool) -> tuple[Profile, str]:
        own = [pair.exchanged if exchanged else pair for pair in pairs()]
        where = "the maps it was trained with" if direction.guided else "none, chosen on the text itself"
        return calibrate(direction, own, model, max_tokens), where

    sources = [
        ProfileSource(model, partial(carried, direction, model), partial(chosen, direction, model, exchanged))
        for direction, model, exchanged in zip(directions, models, (False, True))
    ]
    return find_profiles(sources, named)


def usable_pairs(pairs: Iterable[SentencePair], directions: Iterable[Direction]) -> list[SentencePair]:
    """The first :data:`PAIRS` different pairs that all models can align; ``pairs`` are source-target.

    Args:
        pairs: sentence pairs, read as far as needed.
        directions: the source-target model, and the target-source model if there is one.
    """
    different: dict[tuple[tuple[str, ...], ...], SentencePair] = {}
    checks = list(directions)
    for pair in pairs:
        if can_align(pair, checks):
            different.setdefault(pair.words, pair)
        if len(different) == PAIRS:
            break
    return list(different.values())


def can_align(pair: SentencePair, directions: Sequence[Direction]) -> bool:
    """Whether a source-target pair has words on both sides, and no more than each of the models takes."""
    ways = zip(directions, (pair, pair.exchanged))
    return all(pair) and all(direction.fits(direction.encode(way)) for direction, way in ways)


def calibrate(direction: Direction, pairs: Iterable[SentencePair], model: str, max_tokens: int = 4000) -> Profile:
    """The profile of a model without gold (:func:`alignment_eval.profiles.profile.choose_profile`).

    Args:
        direction: the model.
        pairs: sentence pairs that it can align (:func:`usable_pairs`), in its own direction.
        model: its hash.
        max_tokens: tokens of a batch, pads included.
    """
    encoded = {id_: direction.encode(pair) for id_, pair in enumerate(pairs)}
    if len(encoded) < FEWEST_PAIRS:
        encoded = {}
    sentences = sorted(_maps(direction, encoded, max_tokens), key=lambda sentence: sentence.id)
    return choose_profile(sentences, range(direction.layers), model, direction.guided)


def calibrate_by_gold(
    direction: Direction,
    pairs: Mapping[int, SentencePair],
    gold: Sequence[GoldSentence],
    names: tuple[str, str],
    max_tokens: int = 4000,
) -> Profile:
    """The profile of a model by AER on a development gold, which chooses its maps but not its share.

    Args:
        direction: the model.
        pairs: the sentence pairs that it can align, by id, in its own direction; others count as empty hypotheses.
        gold: the gold of all pairs; pair k has ``gold[k]``.
        names: the hashes of the model and of the gold.
        max_tokens: tokens of a batch, pads included.
    """
    encoded = {id_: direction.encode(pair) for id_, pair in pairs.items()}
    nothing = SentenceSide((), np.empty(0, dtype=np.int32))
    others = [id_ for id_ in range(len(gold)) if id_ not in pairs]
    stubs = [SentenceMaps(id_, nothing, nothing, (), status="empty or too long") for id_ in others]

    def sentences() -> Iterator[SentenceMaps]:  # made anew: all maps of a large gold would not fit into memory
        yield from _maps(direction, encoded, max_tokens)
        yield from stubs

    share = SHARE_GUIDED if direction.guided else SHARE_ALONE
    return calibrated_by_gold(choose_by_gold(sentences(), gold, rules=[single_rule(share)]), *names, share)


def _maps(direction: Direction, encoded: Mapping[int, SentencePair], max_tokens: int) -> Iterator[SentenceMaps]:
    batches = list(length_batches(lengths_of(encoded), min(max_tokens, _TOKENS)))
    for ids in progress_bar(batches, len(batches), "batches"):
        batch = {id_: encoded[id_] for id_ in ids}
        yield from direction.maps(batch, [KIND], list(map(MapName, range(direction.layers)))).values()
