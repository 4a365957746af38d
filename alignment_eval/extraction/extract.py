"""Extracts word alignments from maps: selects maps, combines them, and turns them into links by a rule.

Everything is computed in float64 and for any leading axes (layers, heads) at once.  So a head extracted alone and a
sweep over all heads give the same links.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.extraction.rules import apply_rule, rule_of
from alignment_eval.links.sets import Link, Links
from alignment_eval.links.write import format_pharaoh_line, format_scored_line
from alignment_eval.maps.sentence import Array, SentenceMaps, SentenceSide
from alignment_eval.maps.subwords import is_punctuation
from alignment_eval.maps.words import SETTINGS, UnitMap, combine, require_known, row_shares, unit_map


@dataclass(frozen=True, eq=False)
class SentenceLinks:
    """Links of one sentence, with the map that their confidences come from.

    Attributes:
        linked: bool [source words, target words].
        shares: float64 [target words, source words + 1]: the word map (null last), each row divided by its sum; None
            for symmetrised links, which have no confidences.
    """

    linked: NDArray[np.bool_]
    shares: NDArray[np.float64] | None = None

    @property
    def links(self) -> Links:
        """The links as a set."""
        return links_of(self.linked)

    def confidences(self) -> dict[Link, float]:
        """Each link with its share of its row, from 0 to 1."""
        if self.shares is None:
            raise UsageError("symmetrised links have no confidences; write plain links, or join word maps instead")
        return {(i, j): float(self.shares[j, i]) for i, j in sorted(self.links)}


def links_line(links: SentenceLinks | None, confidences: bool = False) -> str:
    """The line of a sentence, ``i-j`` or ``i-j:p``; empty if the sentence is not aligned."""
    if links is None:
        return ""
    return format_scored_line(links.confidences()) if confidences else format_pharaoh_line(links.links)


@dataclass(frozen=True, eq=False)
class PairMap:
    """The word map of a sentence pair, from which a rule makes its links.

    Attributes:
        sentence: the pair, without its recorded quantities; its status says why there is no word map.
        scores: float64 [target words, source words + 1], the last column for null; None: the pair cannot be aligned.
        subwords: the map between subwords, if the rule reads that instead.
        contribution: the mean share of the source in the prediction of a target token (ALTI+), if it was computed.
    """

    sentence: SentenceMaps
    scores: NDArray[np.float64] | None
    subwords: UnitMap | None = None
    contribution: float | None = None

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The word map, each row divided by its sum."""
        assert self.scores is not None
        return row_shares(self.scores)

    def links(self, options: ExtractionOptions) -> SentenceLinks:
        """The links that the rule of ``options`` makes; under every rule confidences are shares of the word map."""
        assert self.scores is not None
        units = self.subwords
        if units is None:
            targets, columns = self.scores.shape
            units = UnitMap(self.scores, np.arange(targets), np.append(np.arange(columns - 1), -1))
        return SentenceLinks(choose_units(units, self.sentence, options), self.shares)


def links_of(linked: NDArray[np.bool_]) -> Links:
    """The links of a matrix [source words, target words]."""
    return frozenset(zip(*(axis.tolist() for axis in np.nonzero(linked))))


def extract(sentence: SentenceMaps, options: ExtractionOptions) -> Links:
    """The links of one sentence.

    Raises:
        InputError: the sentence has no maps; the kind, layer or head was not recorded; a map holds NaN or infinity;
            word indices are not 0, 1, 2, …; or AWI needs a row beyond the map.
    """
    return word_links(sentence, options).links


def word_links(sentence: SentenceMaps, options: ExtractionOptions) -> SentenceLinks:
    """The links of one sentence with their confidences; errors as for :func:`extract`."""
    return pair_map(sentence, options).links(options)


def pair_map(sentence: SentenceMaps, options: ExtractionOptions) -> PairMap:
    """The word map that ``options`` name; errors as for :func:`extract`."""
    maps = named_maps(sentence, options)
    scores = combined_units(maps, sentence, options, "words").scores
    read = rule_of(options.rule).units
    subwords = None if read == "words" else combined_units(maps, sentence, options, read)
    return PairMap(replace(sentence, arrays={}), scores, subwords)


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


def unit_maps(maps: Array, sentence: SentenceMaps, setting: str, units: str) -> UnitMap:
    """:func:`alignment_eval.maps.words.unit_map` of ``maps`` [..., T, S]; its errors name the sentence."""
    if not sentence.ok:
        raise InputError(f"sentence {sentence.id} cannot be aligned, its status is {sentence.status!r}")
    try:
        return unit_map(maps, sentence.source, sentence.target, setting, units)
    except InputError as error:
        raise InputError(f"sentence {sentence.id}: {error}") from error


def combined_units(maps: Array, sentence: SentenceMaps, options: ExtractionOptions, units: str) -> UnitMap:
    """Combine ``maps`` [M, T, S], which ``options`` name, into one map between units; each has its own setting."""
    each = [unit_maps(one, sentence, name.setting or options.setting, units) for name, one in zip(options.heads, maps)]
    return replace(each[0], scores=combine(np.stack([one.scores for one in each]), options.combine))


def choose(maps: Array, sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.bool_]:
    """The links [..., source words, target words] of each of ``maps`` [..., T, S] by the rule of ``options``.

    Kind and heads of ``options`` are ignored, because the maps are given.
    """
    return choose_units(unit_maps(maps, sentence, options.setting, rule_of(options.rule).units), sentence, options)


def choose_units(units: UnitMap, sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.bool_]:
    """The links of each of the maps ``units``, which must be between the units of the rule of ``options``."""
    final = options.final_punctuation and ends_in_punctuation(sentence.source, sentence.target)
    return apply_rule(rule_of(options.rule), units, options.null, final)


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
