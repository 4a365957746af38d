"""From maps to word maps, and from word maps to links: selects maps, combines them, and applies a rule.

Everything is computed in float64 and for any leading axes (layers, heads) at once.  So a head extracted alone and a
sweep over all heads give the same links.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Union

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, apply_rule, rule_of
from alignment_eval.links.formats import Links
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import Array, PairWords, SentenceMaps, SentenceSide, is_punctuation, words_of
from alignment_eval.maps.words import (
    SMOOTHING,
    Floats,
    combine,
    row_shares,
    subword_map,
    two_way_shares,
    word_map,
    words_of_subwords,
)

#: Two runs with a smaller share of equal words are runs on different texts.
SAME_TEXT = 0.5
#: A link of share s is right with a probability of about 1 - (1 - s)².
RIGHT = 2
#: A link of share s without the order weighs 1 - (1 - s)^1.5 in markup; chosen on 260 lines (docs/reproduction.md).
UNORDERED = 1.5
#: Decimals of numbers of links and of words: those after them change with the batches that a model reads.
LINK_DECIMALS = 2


@dataclass(frozen=True, eq=False)
class WordMap:
    """The word map of a sentence pair, of one direction or of two combined: what a rule reads to make links."""

    sentence: SentenceMaps  #: without its recorded quantities; its status says why there is no word map
    #: float64 [target words, source words + 1], the last column for null; None: the pair cannot be aligned
    scores: Floats | None
    #: the map between subwords [target subwords, source tokens], if the rule reads that instead
    subwords: Floats | None = None
    #: the row shares of each map that was read, [maps, target words, source words + 1], if they are kept
    maps: Floats | None = None
    #: the mean share of the source in the prediction of a target token (ALTI+), if it was computed
    contribution: float | None = None
    #: of the maps of two models that will be sharpened, [target words, source words]: the larger one of what the two
    #: words of a cell get in all
    fertility: Floats | None = None
    #: of a sharp map, whose ``scores`` are S of :mod:`~alignment_eval.maps.words`: S without the order, [target words,
    #: source words]
    unordered: Floats | None = None

    @property
    def sharp(self) -> bool:
        """Whether ``scores`` are what a rule compares."""
        return self.unordered is not None

    @cached_property
    def shares(self) -> Floats:
        """The word map, each row divided by its sum."""
        assert self.scores is not None
        return row_shares(self.scores)

    @property
    def counted(self) -> tuple[PairWords, Floats]:
        """The words and the map without null, as a lexical table takes them."""
        assert self.scores is not None
        return words_of(self.sentence), self.scores[:, :-1]

    def linked(self, options: ExtractionOptions) -> NDArray[np.bool_]:
        """The links that the rule of ``options`` makes, [source words, target words]."""
        assert self.scores is not None
        scores = self.scores if self.subwords is None else self.subwords
        return links_by_rule(scores, self.sentence, options, self.sharp)


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
    _check_status(sentence)
    return links_of(read_word_map(sentence, options).linked(options))


def read_word_map(sentence: SentenceMaps, options: ExtractionOptions, keep: bool = False) -> WordMap:
    """The word map that ``options`` name, or only the status of a pair that cannot be aligned.

    With ``keep`` the shares of each map that is read stay; errors as for :func:`extract`.
    """
    without_maps = replace(sentence, arrays={})
    if not sentence.ok:
        return WordMap(without_maps, None)
    maps = named_maps(sentence, options)
    settings = [name.setting or options.setting for name in options.heads]

    def between(units: str) -> Floats:
        return np.stack([in_units(one, sentence, setting, units) for setting, one in zip(settings, maps)])

    words, units = between("words"), rule_of(options.rule).units
    subwords = None if units == "words" else combine(between(units), options.combine)
    return WordMap(without_maps, combine(words, options.combine), subwords, row_shares(words) if keep else None)


def combined_map(pair: WordMaps, method: AlignmentMethod) -> WordMap:
    """The word map of a pair: of its only direction, or of both combined.

    F and R are the ``shares`` of the two directions; each row, null included, sums to 1.  ``average``: (F + Rᵀ) / 2.  R
    has no null column for *target* words, so it counts as 0 there and null gets half of F's share.  ``product``:
    F ∘ Rᵀ, cell by cell, without null.  If each direction has links of its own, the map is that of the forward
    direction.

    A map that will be sharpened has no null, and each row of F and of R gets :data:`SMOOTHING` more, the same in each
    cell.  Its product is √(F ∘ Rᵀ).
    """
    forward, reverse = pair
    if forward.scores is None:
        return forward
    if reverse is None:
        return _without_null(forward, _smoothed(forward)) if method.sharpened else forward
    if reverse.scores is None:
        status = f"{reverse.sentence.status} in the other direction"
        return WordMap(replace(forward.sentence, status=status), None)
    sizes, others = ([len(side) for side in words_of(one.sentence)] for one in (forward, reverse))
    if sizes != others[::-1]:
        raise InputError(
            f"sentence {forward.sentence.id} (line {forward.sentence.id + 1}) has {sizes[0]} source and {sizes[1]} "
            f"target words, but {others[1]} and {others[0]} in the other direction; give records of the same sentence "
            f"pairs with source and target exchanged"
        )
    if not method.joins_maps:
        return forward
    if method.sharpened:
        there, back = _smoothed(forward), _smoothed(reverse).T
        joined = (there + back) / 2 if method.join == "average" else np.sqrt(there * back)
        fertility = np.maximum(_fertility(forward), _fertility(reverse)[:, None])
        return replace(_without_null(forward, joined), fertility=fertility)
    back = np.zeros(forward.shares.shape)
    back[:, :-1] = reverse.shares[:, :-1].T
    return WordMap(forward.sentence, (forward.shares + back) / 2 if method.join == "average" else forward.shares * back)


def sharp_map(combined: WordMap, shares: Floats, unordered: Floats) -> WordMap:
    """The ``combined`` map as the order of words has sharpened it."""
    return replace(_without_null(combined, shares), unordered=unordered)


def _without_null(one: WordMap, cells: Floats) -> WordMap:
    """A map of the sentence of ``one`` with these cells [target words, source words]; null gets nothing."""
    return WordMap(one.sentence, np.concatenate([cells, np.zeros((len(cells), 1))], axis=1))


def _smoothed(one: WordMap) -> Floats:
    cells = one.shares[:, :-1]
    smoothed: Floats = cells + SMOOTHING / max(cells.shape[1], 1)
    return smoothed


def _fertility(one: WordMap) -> Floats:
    """What each source word gets from all target words."""
    sums: Floats = np.ascontiguousarray(one.shares[:, :-1].T).sum(axis=1)
    return sums


def linked_pair(whole: WordMap, pair: WordMaps, method: AlignmentMethod) -> tuple[NDArray[np.bool_], Floats | None]:
    """The links [source words, target words] of a pair by its combined map, or of each direction, combined.

    With their confidences [target words, source words + 1] (:func:`confidences`), under every rule of the word map:
    the smaller one of both directions for ``mutual`` links, which both directions have; symmetrised links have none.
    """
    forward, reverse = pair
    if reverse is None or method.reverse is None or method.joins_maps:
        assert whole.scores is not None
        return whole.linked(method.forward), confidences(whole.scores, whole.sharp)
    one, other = forward.linked(method.forward), reverse.linked(method.reverse).T
    if method.join == "mutual":  # with a rule that makes one choice per word, this is the mutual argmax
        assert forward.scores is not None
        assert reverse.scores is not None
        sure = confidences(forward.scores)
        sure[:, :-1] = np.minimum(sure[:, :-1], confidences(reverse.scores)[:, :-1].T)
        return one & other, sure
    linked = np.zeros(one.shape, dtype=np.bool_)
    for cell in symmetrize(links_of(one), links_of(other), str(method.join)):
        linked[cell] = True
    return linked, None


def unordered_weights(unordered: Floats) -> Floats:
    """What links of these shares without the order weigh in markup: see :data:`UNORDERED`."""
    wrong: Floats = np.maximum(1 - unordered, 0) ** UNORDERED
    return 1 - wrong


def confidences(scores: Floats, sharp: bool = False) -> Floats:
    """How likely each cell of a word map is a link in the gold, if it is one here, [target words, source words + 1].

    It is 1 - (1 - s)^:data:`RIGHT`, where s is its two-way share, at most 1, which a ``sharp`` map already has;
    docs/questions.md says how well that holds.  They are rounded: see :data:`LINK_DECIMALS`.
    """
    shares = scores if sharp else two_way_shares(scores)
    wrong: Floats = np.maximum(1 - shares, 0) ** RIGHT
    return (1 - wrong).round(LINK_DECIMALS)


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


def named_maps(sentence: SentenceMaps, options: ExtractionOptions) -> Floats:
    """The maps that ``options`` name, in that order: float64 [M, T, S]; no other layer is computed."""
    if beyond := options.heads.beyond(sentence.layers, sentence.heads, f"sentence {sentence.id}"):
        raise UsageError(beyond)
    kind, maps = options.kind, []
    for name in options.heads:
        of_layer = sentence.at(name.layer)
        if name.head is None:
            maps.append(of_layer.layer_maps(kind)[0].astype(np.float64))
            continue
        maps.append(_in_float64(of_layer).head_maps(kind)[0, name.head])
    _check_finite(sentence.arrays.values(), sentence, kind)
    return np.stack(maps)


def stacked_maps(sentence: SentenceMaps, kind: str) -> Floats:
    """The maps of all heads and, at the last head index, the layer maps: float64 [L, H + 1, T, S]."""
    wide = _in_float64(sentence)
    maps: Floats = np.concatenate([wide.head_maps(kind), wide.layer_maps(kind)[:, None]], axis=1)
    _check_finite([maps], sentence, kind)
    return maps


def _in_float64(sentence: SentenceMaps) -> SentenceMaps:
    return replace(sentence, arrays={name: array.astype(np.float64) for name, array in sentence.arrays.items()})


def _check_finite(arrays: Iterable[Array], sentence: SentenceMaps, kind: str) -> None:
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError(
            f"sentence {sentence.id}: a map of kind {kind!r} holds NaN or infinite values; record it again"
        )


def _check_status(sentence: SentenceMaps) -> None:
    if not sentence.ok:
        raise InputError(f"sentence {sentence.id} cannot be aligned, its status is {sentence.status!r}")


def in_units(maps: Array, sentence: SentenceMaps, setting: str, units: str) -> Floats:
    """``maps`` [..., T, S] between ``units``, ``words`` or ``subwords``; errors name the sentence."""
    _check_status(sentence)
    try:
        return (word_map if units == "words" else subword_map)(maps, sentence.source, sentence.target, setting)
    except InputError as error:
        raise InputError(f"sentence {sentence.id}: {error}") from error


def linked_cells(maps: Array, sentence: SentenceMaps, options: ExtractionOptions) -> NDArray[np.bool_]:
    """The links [..., source words, target words] of each of ``maps`` [..., T, S] by the rule of ``options``.

    Kind and heads of ``options`` are ignored, because the maps are given.
    """
    return links_by_rule(in_units(maps, sentence, options.setting, rule_of(options.rule).units), sentence, options)


def links_by_rule(
    scores: Floats, sentence: SentenceMaps, options: ExtractionOptions, sharp: bool = False
) -> NDArray[np.bool_]:
    """The links of each of the maps ``scores``, which must be between the units of the rule of ``options``."""
    rule = rule_of(options.rule)
    final = options.final_punctuation and ends_in_punctuation(sentence.source, sentence.target)
    words = None if rule.units == "words" else words_of_subwords(sentence.source, sentence.target)
    return apply_rule(rule, scores, options.null, final, words, sharp)


def ends_in_punctuation(source: SentenceSide, target: SentenceSide) -> bool:
    """Whether the final-punctuation rule applies: the last word of each side is punctuation.

    The last words of both sides are then linked to each other, and to no other word.  (If the source has one word, the
    other target words stay unaligned.)  The published Shift-Att figures use it.
    """
    return all(side.word_count and is_punctuation(side.word_strings()[-1]) for side in (source, target))
