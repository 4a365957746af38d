"""A model chooses its own maps from sentence pairs, without gold (alignment_eval.selection.agreement)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.selection.agreement import FEWEST_PAIRS, KIND, PAIRS, choose_by_agreement
from alignment_eval.selection.profile import Profile, calibrated, text_hash
from fairseq_norm_plugin.aligning.aligner import length_batches
from fairseq_norm_plugin.aligning.direction import Direction, EncodedPair
from fairseq_norm_plugin.aligning.text import TokenPair


def usable_pairs(pairs: Iterable[TokenPair], directions: Iterable[Direction]) -> list[TokenPair]:
    """The first :data:`PAIRS` different pairs that all models can align; ``pairs`` are source-target.

    Args:
        pairs: sentence pairs, read as far as needed.
        directions: the source-target model, and the target-source model if there is one.
    """
    found: dict[tuple[tuple[str, ...], ...], TokenPair] = {}
    checks = list(directions)
    for pair in pairs:
        if all(pair) and all(d.fits(d.encode(way)) for d, way in zip(checks, (pair, pair[::-1]))):
            found.setdefault((tuple(pair[0]), tuple(pair[1])), pair)
        if len(found) == PAIRS:
            break
    return list(found.values())


def calibrate(direction: Direction, pairs: Iterable[TokenPair], model: str, max_tokens: int = 4000) -> Profile:
    """The profile of a model by the agreement of its own maps; of its upper layers if the pairs are too few.

    Args:
        direction: the model.
        pairs: sentence pairs that it can align (:func:`usable_pairs`), in its own direction.
        model: its hash.
        max_tokens: tokens of a batch, pads included.
    """
    encoded = {id_: direction.encode(pair) for id_, pair in enumerate(pairs)}
    if len(encoded) < FEWEST_PAIRS:
        return calibrated(None, range(direction.layers), model, "", len(encoded))
    sentences = dict(_maps(direction, encoded, max_tokens))
    agreement = choose_by_agreement(sentences[id_] for id_ in sorted(sentences))
    text = text_hash((id_, words_of(sentence)) for id_, sentence in sentences.items())
    return calibrated(agreement, range(direction.layers), model, text, len(encoded))


def _maps(
    direction: Direction, encoded: Mapping[int, EncodedPair], max_tokens: int
) -> Iterator[tuple[int, SentenceMaps]]:
    ids = list(encoded)
    lengths = np.array([[len(side.ids) for side in encoded[id_]] for id_ in ids], dtype=np.int64)
    for rows in length_batches(lengths, max_tokens):
        batch = {ids[row]: encoded[ids[row]] for row in rows}
        yield from direction.maps(batch, [KIND], range(direction.layers)).items()
