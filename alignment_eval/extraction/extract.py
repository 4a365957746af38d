"""Extracts word alignments from maps: selects maps, combines them, and turns them into links by a rule.

Everything is computed in float64 and for any leading axes (layers, heads) at once.  So a head extracted alone and a
sweep over all heads give the same links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.rules import apply_rule, rule_of
from alignment_eval.links.sets import Links
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import Array, PairWords, SentenceMaps, SentenceSide
from alignment_eval.maps.subwords import is_punctuation
from alignment_eval.maps.words import (
    SETTINGS,
    combine,
    require_known,
    row_shares,
    subword_map,
    word_map,
    words_of_subwords,
)

#: Two runs with a smaller share of equal words are runs on different texts.
SAME_TEXT = 0.5


@dataclass(frozen=True, eq=False)
class WordMap:
    """The word map of a sentence pair, of one direction or of two combined: what a rule reads to make links.

    Attributes:
        sentence: the pair, without its recorded quantities; its status says why there is no word map.
        scores: float64 [target words, source words + 1], the last column for null; None: the pair cannot be aligned.
        subwords: the map between subwords [target subwords, source tokens], if the rule reads that instead.
        maps: the row shares of each map that was read, [maps, target words, source words + 1], if they are kept.
        contribution: the mean share of the source in the prediction of a target token (ALTI+), if it was computed.
    """

    sentence: SentenceMaps
    scores: NDArray[np.float64] | None
    subwords: NDArray[np.float64] | None = None
    maps: NDArray[np.float64] | None = None
    contribution: float | None = None

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The word map, each row divided by its sum."""
        assert self.scores is not None
        return row_shares(self.scores)

    def linked(self, options: ExtractionOptions) -> NDArray[np.bool_]:
        """The links that the rule of ``options`` makes, [source words, target words]."""
        assert self.scores is not None
        return links_by_rule(self.scores if self.subwords is None else self.subwords, self.sentence, options)

    def with_scores(self, scores: NDArray[np.float64]) -> WordMap:
        """The map with other scores [target words, source words], and none for null."""
        return replace(self, scores=np.pad(scores, ((0, 0), (0, 1))))


#: The word maps of the forward and the reverse direction of a pair; None: there is no reverse direction.
WordMaps = tuple[WordMap, Union[WordMap, None]]


def links_of(linked: NDArray[np.bool_]) -> Links:
    """The links of a matrix [source words, target words]."""
    return frozenset(zip(*(axis.tolist() for axis in np.nonzero(linked))))


def extract(sentence: SentenceMaps, options: ExtractionOptions) -> Links:
    """The links of one sentence.

    Raises:
        InputError: the sentence has no maps; the kind, layer or head was not recorded; a map holds NaN or infinity;
            word indices are not 0, 1, 2, …; or AWI needs a row beyond the map.
    """
    return links_of(_word_map(sentence, options).linked(options))


def read_word_map(sentence: SentenceMaps, options: ExtractionOptions, keep: bool = False) -> WordMap:
    """The word map that ``options`` name, or only the status of a pair that cannot be aligned.

    With ``keep`` the shares of each map that is read stay; errors as for :func:`extract`.
    """
    return _word_map(sentence, options, keep) if sentence.ok else WordMap(replace(sentence, arrays={}), None)


def _word_map(sentence: SentenceMaps, options: ExtractionOptions, keep: bool = False) -> WordMap:
    maps = named_maps(sentence, options)
    words = _merged_each(maps, sentence, options, "words")
    scores, read = combine(words, options.combine), rule_of(options.rule).units
    subwords = None
    if read != "words":
        subwords = combine(_merged_each(maps, sentence, options, read), options.combine)
    return WordMap(replace(sentence, arrays={}), scores, subwords, row_shares(words) if keep else None)


def _merged_each(maps: Array, sentence: SentenceMaps, options: ExtractionOptions, units: str) -> NDArray[np.float64]:
    """The ``maps`` [M, T, S] that ``options`` name, between units, each read in its own setting."""
    settings = (name.setting or options.setting for name in options.heads)
    return np.stack([merged(one, sentence, setting, units) for setting, one in zip(settings, maps)])


def combined_map(pair: WordMaps, method: AlignmentMethod) -> WordMap:
    """The word map of a pair: of its only direction, or of both combined."""
    forward, reverse = pair
    if reverse is None or forward.scores is None:
        return forward
    if reverse.scores is None:
        status = f"{reverse.sentence.status} in the other direction"
        return WordMap(replace(forward.sentence, status=status), None)
    check_same_size(forward.sentence, reverse.sentence)
    assert method.both is not None
    if not method.both.joins_maps:
        return forward
    return combine_maps(str(method.both.join), forward, reverse, method.sharpened)


def combine_maps(how: str, forward: WordMap, reverse: WordMap, sharpened: bool = False) -> WordMap:
    """Combine the word maps of both directions into one, to which the rule is applied.

    F and R are the ``shares`` of the two directions; each row, null included, sums to 1.  ``average``: (F + Rᵀ) / 2.  R
    has no null column for *target* words, so it counts as 0 there and null gets half of F's share.  ``product``:
    F ∘ Rᵀ, cell by cell, without null; of a map that will be ``sharpened``, √(F ∘ Rᵀ).
    """
    back = np.zeros(forward.shares.shape)
    back[:, :-1] = reverse.shares[:, :-1].T
    scores = (forward.shares + back) / 2 if how == "average" else forward.shares * back
    return WordMap(forward.sentence, np.sqrt(scores) if sharpened and how == "product" else scores)


def linked_pair(
    whole: WordMap, pair: WordMaps, method: AlignmentMethod
) -> tuple[NDArray[np.bool_], NDArray[np.float64] | None]:
    """The links [source words, target words] of a pair by its combined map, or of each direction, combined.

    With the shares [target words, source words + 1] that are their confidences: of the word map under every rule, the
    smaller share of both directions for ``mutual`` links, which both directions have; symmetrised links have none.
    """
    (forward, reverse), both = pair, method.both
    if reverse is None or method.reverse is None or both is None or both.joins_maps:
        return whole.linked(method.forward), whole.shares
    one, other = forward.linked(method.forward), reverse.linked(method.reverse)
    if both.join is not None:  # with a rule that makes one choice per word, this is the mutual argmax
        shares = forward.shares.copy()
        shares[:, :-1] = np.minimum(shares[:, :-1], reverse.shares[:, :-1].T)
        return one & other.T, shares
    linked = np.zeros(one.shape, dtype=np.bool_)
    for cell in symmetrize(links_of(one), links_of(other.T), str(both.method), both.variant):
        linked[cell] = True
    return linked, None


def check_same_size(forward: SentenceMaps, reverse: SentenceMaps) -> None:
    """Check that both directions of a sentence pair have the same number of words."""
    sizes = forward.source.word_count, forward.target.word_count
    other = reverse.target.word_count, reverse.source.word_count
    if sizes != other:
        raise InputError(
            f"sentence {forward.id} (line {forward.id + 1}) has {sizes[0]} source and {sizes[1]} target words, but "
            f"{other[0]} and {other[1]} in the other direction; give records of the same sentence pairs with source "
            f"and target exchanged"
        )


def check_same_text(pairs: Iterable[tuple[PairWords, PairWords]]) -> None:
    """Check that both directions have the same sentence pairs.

    Unknown words and normalisation may change some words, so only a share of :data:`SAME_TEXT` must be equal.
    """
    equal = total = 0
    for forward, reverse in pairs:
        for words, others in zip(forward, reversed(reverse)):
            total += len(words)
            equal += sum(word.casefold() == other.casefold() for word, other in zip(words, others))
    if equal < SAME_TEXT * total:
        raise InputError(
            f"only {equal} of {total} words are the same in both directions; give records of the same sentence pairs "
            f"with source and target exchanged"
        )


def named_maps(sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.float64]:
    """The maps that ``options`` name, in that order: float64 [M, T, S]; no other layer is computed.

    Errors as for :func:`stacked_maps`.
    """
    kind, maps = options.kind, []
    for name in options.heads:
        of_layer = sentence.at(name.layer)
        if name.head is None:
            maps.append(of_layer.layer_maps(kind)[0].astype(np.float64))
            continue
        of_heads = _in_float64(of_layer).head_maps(kind)[0]
        if not 0 <= name.head < len(of_heads):
            known = f"each layer has {len(of_heads)} heads; name one of 0 to {len(of_heads) - 1}"
            if not len(of_heads):
                known = f"kind {kind!r} has maps of whole layers only; name the layer without a head"
            raise UsageError(f"the records have no head {name.head}: {known}")
        maps.append(of_heads[name.head])
    _check_finite(all(np.isfinite(array).all() for array in sentence.arrays.values()), sentence, kind)
    return np.stack(maps)


def _in_float64(sentence: SentenceMaps) -> SentenceMaps:
    return replace(sentence, arrays={name: array.astype(np.float64) for name, array in sentence.arrays.items()})


def stacked_maps(sentence: SentenceMaps, kind: str) -> NDArray[np.float64]:
    """The maps of all heads and, at the last head index, the layer maps: float64 [L, H + 1, T, S]."""
    wide = _in_float64(sentence)
    maps: NDArray[np.float64] = np.concatenate([wide.head_maps(kind), wide.layer_maps(kind)[:, None]], axis=1)
    _check_finite(bool(np.isfinite(maps).all()), sentence, kind)
    return maps


def _check_finite(finite: bool, sentence: SentenceMaps, kind: str) -> None:
    if not finite:
        raise InputError(
            f"sentence {sentence.id}: a map of kind {kind!r} holds NaN or infinite values; record it again"
        )


def merged(maps: Array, sentence: SentenceMaps, setting: str, units: str) -> NDArray[np.float64]:
    """``maps`` [..., T, S] between ``units``, ``words`` or ``subwords``; errors name the sentence."""
    if not sentence.ok:
        raise InputError(f"sentence {sentence.id} cannot be aligned, its status is {sentence.status!r}")
    try:
        return (word_map if units == "words" else subword_map)(maps, sentence.source, sentence.target, setting)
    except InputError as error:
        raise InputError(f"sentence {sentence.id}: {error}") from error


def choose(maps: Array, sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.bool_]:
    """The links [..., source words, target words] of each of ``maps`` [..., T, S] by the rule of ``options``.

    Kind and heads of ``options`` are ignored, because the maps are given.
    """
    return links_by_rule(merged(maps, sentence, options.setting, rule_of(options.rule).units), sentence, options)


def links_by_rule(scores: NDArray[np.float64], sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.bool_]:
    """The links of each of the maps ``scores``, which must be between the units of the rule of ``options``."""
    rule = rule_of(options.rule)
    final = options.final_punctuation and ends_in_punctuation(sentence.source, sentence.target)
    words = None if rule.units == "words" else words_of_subwords(sentence.source, sentence.target)
    return apply_rule(rule, scores, options.null, final, words)


def ends_in_punctuation(source: SentenceSide, target: SentenceSide) -> bool:
    """Whether the final-punctuation rule applies: the last word of each side is punctuation.

    The last target word is then linked to the last source word only, and no other target word may take that one.  (If
    the source has one word and null is masked, the others stay unaligned.)  The published Shift-Att figures use it.
    """
    if not (source.word_count and target.word_count):
        return False
    return all(is_punctuation(side.word_strings()[-1]) for side in (source, target))


def max_norm_layer(sentences: Iterable[SentenceMaps], setting: str) -> int:
    """Choose the layer (fairseq's number) whose heads have the largest mean norms; no gold is needed.

    The rule of Kobayashi et al. (2020), as in their ``calculate_aer.py``: the mean of ‖α^h f^h(x_j)‖ of each head
    (``attn_n``), summed over the heads of a layer; the first of equal layers.  The mean is over all cells of all
    sentences that have maps, ``</s>`` included.
    """
    require_known("setting", setting, SETTINGS)
    if setting != "awi":
        raise UsageError(
            f"layer max-norm does not work with setting {setting!r}: the layer with the highest mean norm aligns well "
            f"in AWI only; choose setting 'awi' or name a layer"
        )
    sums: list[NDArray[np.float64]] = []
    cells = 0
    layers: tuple[int, ...] = ()
    for sentence in sentences:
        if sentence.ok:
            maps = sentence.head_maps("attn_n")  # [L, H, T, S]
            sums.append(maps.sum(axis=(1, 2, 3), dtype=np.float64))
            cells += maps[0, 0].size
            layers = sentence.layers
    if not cells:
        raise InputError("layer max-norm: no sentence has maps to take the mean of; name a layer")
    # fsum: the order in which the shards give the sentences does not change the layer
    means = [math.fsum(column) / cells for column in zip(*sums)]
    if not all(map(math.isfinite, means)):
        raise InputError("layer max-norm: the maps hold NaN or infinite values; record them again")
    return layers[means.index(max(means))]
