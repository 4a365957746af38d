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
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.rules import Rule, apply_rule, barred_cells, rule_of, word_numbers
from alignment_eval.extraction.sharpen import FERTILITY, SMOOTHING, Reweighted, ordered_shares
from alignment_eval.links.formats import Link, Links
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import Array, PairWords, SentenceMaps, SentenceSide, is_punctuation, words_of
from alignment_eval.maps.words import (
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
    """The word map of a sentence pair, of one direction or of two combined: what a rule reads to make links.

    Attributes:
        sentence: the pair, without its recorded quantities; its status says why there is no word map.
        scores: float64 [target words, source words + 1], the last column for null; None: the pair cannot be aligned.
        subwords: the map between subwords [target subwords, source tokens], if the rule reads that instead.
        maps: the row shares of each map that was read, [maps, target words, source words + 1], if they are kept.
        contribution: the mean share of the source in the prediction of a target token (ALTI+), if it was computed.
        fertility: of the maps of two models that will be sharpened, [target words, source words]: the larger one of
            what the two words of a cell get in all.
        unordered: of a sharp map, whose ``scores`` are S of :mod:`~alignment_eval.extraction.sharpen`: S without the
            order, [target words, source words].
    """

    sentence: SentenceMaps
    scores: Floats | None
    subwords: Floats | None = None
    maps: Floats | None = None
    contribution: float | None = None
    fertility: Floats | None = None
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
        return np.stack([merged(one, sentence, setting, units) for setting, one in zip(settings, maps)])

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
    return WordMap(one.sentence, np.pad(cells, ((0, 0), (0, 1))))


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


def merged(maps: Array, sentence: SentenceMaps, setting: str, units: str) -> Floats:
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
    return links_by_rule(merged(maps, sentence, options.setting, rule_of(options.rule).units), sentence, options)


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


@dataclass(frozen=True, eq=False)
class ReadMaps:
    """The maps that an alignment was made of.

    Attributes:
        method: how it was made.
        pair: the word maps of both directions, with each map that was read.
        combined: the word map of the pair, before it is sharpened.
        weighed: as a lexical table has reweighted it; None: the map is not sharpened.
        whole: the map that the rule reads.
    """

    method: AlignmentMethod
    pair: WordMaps
    combined: WordMap
    weighed: Reweighted | None
    whole: WordMap


@dataclass(frozen=True)
class Explanation:
    """Why two words are linked or not; printed, it says all of this in a few lines.

    Attributes:
        source: the source word.
        target: the target word.
        linked: whether they are linked.
        maps: each map that was read, and what it gives the source word of the target word's row, from 0 to 1; maps of
            the reverse model give the target word a share of the source word's row.
        share: the share that the combined map gives the cell of its row, before it is sharpened.
        table: what the lexical table multiplies the cell by, in proportion to the mean of the row; None: the map is
            not sharpened.
        beginnings: the part of the table's weight that is by the first letters of the words, from 0 to 1.
        two_way: the cell's two-way share, of the map as the table has left it.
        order: how likely the words are linked by the order of the words around them.
        weight: λ, what the order counts; the two-way share counts the rest.
        fertility: of two models, what S is multiplied by: words that get much may belong to several.
        compared: the share that the rule compares.
        rule: the rule with its value.
        reason: why the rule, or what follows it, makes the link or refuses it.
    """

    source: str
    target: str
    linked: bool
    maps: dict[str, float]
    share: float
    table: float | None
    beginnings: float | None
    two_way: float
    order: float | None
    weight: float | None
    fertility: float | None
    compared: float
    rule: str
    reason: str

    def __str__(self) -> str:
        made = "linked" if self.linked else "not linked"
        lines = [f"{self.source!r} and {self.target!r} are {made}: {self.reason}"]
        lines += [f"  {share:.3f}  {name}" for name, share in self.maps.items()]
        lines.append(f"  {self.share:.3f}  combined: share of the row")
        if self.table is not None:
            letters = f", {self.beginnings:.0%} by the first letters" if self.beginnings else ""
            lines.append(f"  × {self.table:.3g}  evidence for both words, relative to the mean of the row{letters}")
        lines.append(f"  {self.two_way:.3f}  two-way share")
        if self.order is not None:
            lines.append(f"  {self.order:.3f}  by the order of the words, which weighs {self.weight}")
        if self.fertility is not None:
            lines.append(f"  × {self.fertility:.3g}  what both words get in all")
        return "\n".join([*lines, f"  {self.compared:.3f}  compared by rule {self.rule}"])

    __repr__ = __str__


def explain(maps: ReadMaps, words: PairWords, link: Link, linked: bool) -> Explanation:
    """Explain a link (source word, target word) that is ``linked`` or not, in a pair of these ``words``."""
    (i, j), (forward, reverse), method, whole = link, maps.pair, maps.method, maps.whole
    assert whole.scores is not None
    read = _shares_of(forward, method.forward, (j, i), "")
    if reverse is not None and method.reverse is not None:
        read |= _shares_of(reverse, method.reverse, (i, j), "reverse ")
    rule, final = rule_of(method.forward.rule), ends_in_punctuation(whole.sentence.source, whole.sentence.target)
    final = final and method.forward.final_punctuation
    scores = np.where(barred_cells(*word_numbers(whole.scores), rule, method.forward.null, final), 0, whole.scores)
    table = beginnings = order = weight = fertility = None
    two_way = two_way_shares(scores)
    if maps.weighed is not None and method.sharpening is not None:
        weighed, combined, weight = maps.weighed, maps.combined, method.sharpening.of_order
        factors = _quotient(weighed.cells[j], combined.shares[j, :-1])
        table = float(factors[i] / factors.mean())
        beginnings = float(weighed.beginnings[j, i] / (weighed.words[j, i] + weighed.beginnings[j, i]))
        two_way, order = two_way_shares(weighed.cells), float(ordered_shares([weighed.cells])[0][j, i])
        fertility = None if combined.fertility is None else float(combined.fertility[j, i] ** FERTILITY)
    if reverse is not None and method.reverse is not None and not method.joins_maps:
        made = {"forward": forward.linked(method.forward)[i, j], "reverse": reverse.linked(method.reverse)[j, i]}
        said = (f"{direction} {'yes' if has_link else 'no'}" for direction, has_link in made.items())
        reason = f"{method.join} of the links of each direction ({', '.join(said)})"
    elif final and (i == len(words[0]) - 1 or j == len(words[1]) - 1):
        reason = "the final punctuation of both sides is linked to each other only"
    else:
        reason = _reason(rule, scores, (j, i), linked, whole.sharp)
    share = float(maps.combined.shares[j, i])
    compared = float(rule.compared(scores, whole.sharp)[j, i])
    parts = share, table, beginnings, float(two_way[j, i]), order, weight, fertility, compared
    return Explanation(words[0][i], words[1][j], linked, read, *parts, rule.name, reason)


def _quotient(after: Floats, before: Floats) -> Floats:
    return np.divide(after, before, out=np.ones_like(before), where=before > 0)


def _shares_of(word_map: WordMap, options: ExtractionOptions, cell: Link, prefix: str) -> dict[str, float]:
    """The share of a cell in each map that was read, by the map's title."""
    assert word_map.maps is not None
    titles = (f"{prefix}{options.kind} {title}" for title in options.titles)
    return dict(zip(titles, word_map.maps[:, cell[0], cell[1]].tolist()))


def _reason(rule: Rule, scores: Floats, cell: Link, linked: bool, sharp: bool) -> str:
    """Why a rule that reads these ``scores`` links a cell or refuses it."""
    if rule.units != "words":
        return f"{'a' if linked else 'no'} subword of the target word has its largest value on this source word"
    if rule.count:
        if not scores[cell]:
            return "the source word has nothing of its row"
        place = int((scores[cell[0]] > scores[cell]).sum()) + 1
        return f"the source word is number {place} of its row, and the rule takes {rule.count}"
    said = f"their {'share' if rule.two_way else 'share of the row'} {rule.compared(scores, sharp)[cell]:.3f} is"
    return f"{said} {'at least' if linked else 'below'} {rule.least}"
