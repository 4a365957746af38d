"""Choosing the maps of a model: an AWI map and an AWO map, by their agreement without gold or by AER on a gold.

In a decoder whose alignment has formed, a low layer finds the source word of the token that is its input (AWI), and an
upper layer the source word of the token that it predicts (AWO).  The two make different errors.  So two such maps that
draw the same links on unlabelled sentence pairs are both right, and their product is better than either.

Every AWI map is compared with every AWO map of a higher layer.  Which of some close pairs agrees most differs from text
to text.  Of those, the place in the model says which is better: alignment forms in one head of a low layer in AWI, and
in all of the top layer in AWO.  In a young model no two maps agree well, and the upper layers in AWO are better.
docs/reproduction.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from alignment_eval.alignment import align_pairs
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import CLOSE, FORMED, KIND, LINKED, PAIRS, SINGLE_RULE, product_of, upper_layers
from alignment_eval.extraction.extract import WordMaps, links_by_rule, merged, read_word_map, stacked_maps
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapName
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.sets import GoldSentence, Link, transpose
from alignment_eval.maps.sentence import HEAD_KINDS, PairWords, SentenceMaps, words_of
from alignment_eval.maps.words import combined, terms, two_way_shares
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.gold_corpus import GoldCorpus, GoldMatrix, aer_of

#: Two maps agree only if they share at least this many links a word above chance: near-uniform maps link next to no
#: words of long sentences,
FEWEST_SHARED = 0.15
#: and if at least this part of the shared links is off the diagonal: maps may follow the order of the words only.
OFF_DIAGONAL = 0.1

#: Counts of one sentence for each of P pairs of maps, [P, n], from its maps [L, H + 1, T, S] and the pairs' indices.
PairCounts = Callable[[SentenceMaps, NDArray[np.float64], "_Pairs"], NDArray[np.float64]]


@dataclass(frozen=True)
class Agreement:
    """The two maps that agree most.

    Attributes:
        awi: the map to read in AWI, of a lower layer than ``awo``.
        awo: the map to read in AWO.
        dice: Dice coefficient of their links above chance, a fraction.
        pairs: how many sentence pairs were compared.
    """

    awi: MapName
    awo: MapName
    dice: float
    pairs: int

    @property
    def formed(self) -> bool:
        """Whether they agree well enough to read the product of the two."""
        return self.dice >= FORMED

    @property
    def maps(self) -> tuple[MapName, MapName]:
        """Both maps, each with its setting."""
        return self.awi, self.awo


@dataclass(frozen=True)
class GoldChoice:
    """What was compared by AER on a gold.

    Attributes:
        ranking: the candidates and their AER, a fraction, best first; of equal ones in the order of comparison.
        words: id -> the words of each sentence pair that has maps.
        skipped: id -> why the others have none; they count as empty hypotheses.
    """

    ranking: tuple[tuple[ExtractionOptions, float], ...]
    words: Mapping[int, PairWords]
    skipped: Mapping[int, str]

    @property
    def maps(self) -> ExtractionOptions:
        """The maps of the lowest AER, with the rule that they were compared under."""
        return self.ranking[0][0]

    @property
    def aer(self) -> float:
        """Their AER."""
        return self.ranking[0][1]


@dataclass(frozen=True, eq=False)
class _Pairs:
    """The pairs of maps of a model that are compared.

    Attributes:
        names: all maps, layer by layer, each layer's heads before the whole layer.
        awo: the place of each pair's AWO map in ``names``, ascending.
        awi: the place of its AWI map, of a lower layer: neighbouring rows of one layer share links, right or wrong.
    """

    names: list[MapName]
    awo: NDArray[np.intp]
    awi: NDArray[np.intp]

    @classmethod
    def of(cls, sentence: SentenceMaps, kind: str) -> _Pairs:
        """The pairs of the maps of a sentence."""
        names = map_names(sentence, kind)
        layers = np.array([name.layer for name in names])
        return cls(names, *np.nonzero(layers[:, None] > layers))

    def order(self, pair: int) -> tuple[int, bool, int, bool]:
        """Its place among pairs that agree equally well: AWI of a low layer, of a head; AWO of a high one, whole."""
        awi, awo = self.maps(pair)
        return awi.layer, awi.head is None, -awo.layer, awo.head is not None

    def maps(self, pair: int) -> tuple[MapName, MapName]:
        """The two maps of a pair, each with its setting, the AWI map first."""
        awi, awo = self.names[self.awi[pair]], self.names[self.awo[pair]]
        return replace(awi, setting="awi"), replace(awo, setting="awo")


def map_names(sentence: SentenceMaps, kind: str) -> list[MapName]:
    """The names of all maps of a kind, layer by layer, each layer's heads before the whole layer."""
    heads: list[int | None] = [*range(sentence.heads if kind in HEAD_KINDS else 0), None]
    return [MapName(layer, head) for layer in sentence.layers for head in heads]


def _summed(
    sentences: Iterable[SentenceMaps], kind: str, counts: PairCounts
) -> tuple[_Pairs, NDArray[np.float64], int]:
    """The pairs of maps, their ``counts`` summed over the sentences, and how many sentences there are."""
    pairs: _Pairs | None = None
    total: NDArray[np.float64] = np.zeros(())
    number = 0
    for sentence in sentences:
        number += 1
        pairs = pairs or _Pairs.of(sentence, kind)
        if map_names(sentence, kind) != pairs.names:
            raise InputError(
                f"sentence {sentence.id} has other layers or heads than the first: expected maps of one model"
            )
        total = total + counts(sentence, stacked_maps(sentence, kind), pairs)
    if pairs is None:
        raise InputError("no sentence has maps: expected some to choose maps by; give other text, or name the maps")
    return pairs, total, number


def choose_by_agreement(sentences: Iterable[SentenceMaps], kind: str = KIND, pairs: int = PAIRS) -> Agreement | None:
    """The AWI map and the AWO map of a higher layer whose links agree most above chance.

    With c links in common, a and b in each map, and a b / n of them in common by chance in a sentence pair of n cells,
    the agreement is (2 Σ c − 2 Σ a b / n) / (Σ (a + b) − 2 Σ a b / n): the Dice coefficient, less what is chance in
    numerator and denominator, as Cohen's kappa has it for cells.  It counts only if the maps share enough links, not
    all of them in the order of the words: :data:`FEWEST_SHARED`, :data:`OFF_DIAGONAL`.

    Pairs of maps within :data:`CLOSE` of the best are compared by their place in the model: first the AWI map of the
    lowest layer, a head before its whole layer, then the AWO map of the highest layer, the whole layer before its
    heads; of pairs alike in all that, the one that agrees most, and of equal ones the one of lower heads.

    ``sentences`` have the maps of all layers of one model; the first ``pairs`` that have maps are read.

    Returns:
        None if the model has one layer only, or if no two maps agree by more than chance and position.
    """
    if pairs < 1:
        raise UsageError(f"{pairs} sentence pairs to choose maps by: expected 1 or more")
    read = islice((sentence for sentence in sentences if sentence.ok), pairs)
    compared, total, number = _summed(read, kind, _links_in_common)
    if (best := best_of(compared, total)) is None:
        return None
    pair, dice = best
    return Agreement(*compared.maps(pair), dice, number)


def best_of(pairs: _Pairs, total: NDArray[np.float64]) -> tuple[int, float] | None:
    """The pair of maps to read and its agreement, by the sums of :func:`_links_in_common`; None if no two agree."""
    common, sizes, shared, straight, words = total.reshape(-1, 5).T
    counts = (common >= FEWEST_SHARED * words) & (shared - straight >= OFF_DIAGONAL * shared) & (sizes > 0)
    dice = np.divide(2 * common, sizes, out=np.zeros_like(common), where=counts)
    if not dice.any():
        return None
    close = np.flatnonzero(dice >= dice.max() - CLOSE).tolist()
    best = min(close, key=lambda pair: (pairs.order(pair), -dice[pair]))
    return best, float(dice[best])


def _links_in_common(sentence: SentenceMaps, maps: NDArray[np.float64], pairs: _Pairs) -> NDArray[np.float64]:
    """What the links of the two maps of each pair have in common, [P, 5].

    They are: how many links they share and how many they have in all, both above chance; how many they share, and how
    many of these are on the diagonal; and the mean number of words of both sides.
    """
    linked = []
    for setting in ("awo", "awi"):
        scores = merged(maps, sentence, setting, "words")[..., :-1]  # two-way shares leave null out
        linked.append((two_way_shares(scores) >= LINKED).reshape(len(pairs.names), -1).astype(np.float64))
    height, width = scores.shape[-2:]
    awo, awi = linked
    targets = np.arange(height)
    diagonal = targets * width + (2 * targets + 1) * width // (2 * height)
    first, second = awo.sum(axis=1)[pairs.awo], awi.sum(axis=1)[pairs.awi]
    chance = first * second / (height * width)
    shared = (awo @ awi.T)[pairs.awo, pairs.awi]
    straight = (awo[:, diagonal] @ awi[:, diagonal].T)[pairs.awo, pairs.awi]
    words = np.full(len(shared), (height + width) / 2)
    return np.stack([shared - chance, first + second - 2 * chance, shared, straight, words], axis=-1)


def choose_by_gold(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    kinds: Sequence[str] = (KIND,),
    rules: Sequence[str] = (SINGLE_RULE,),
) -> GoldChoice:
    """The AWI map and the AWO map of a higher layer whose product has the lowest AER, or the upper layers.

    Of equal ones the first: by kind, by rule, then by layer and head of the AWO map, then of the AWI map; a whole layer
    comes after its heads, and the upper layers come last.

    ``sentences`` have the maps of all layers of one model, in any order; id k belongs to ``gold[k]``.  They are read
    once for each kind and rule; each rule has its default treatment of null.
    """
    words: dict[int, PairWords] = {}
    candidates: list[tuple[ExtractionOptions, float]] = []
    skipped: Mapping[int, str] = {}
    for kind in kinds:
        for rule in rules:
            corpus = GoldCorpus(sentences, gold)
            scorer = _GoldCounts(gold, kind, rule, words)
            pairs, hits, _ = _summed((sentence for sentence, _ in corpus), kind, scorer)
            figures = aer_of(hits.astype(np.int64), corpus.sure).tolist()
            products = [scorer.product(pairs.maps(pair)) for pair in range(len(pairs.awo))]
            candidates += zip([*products, scorer.upper(pairs.names)], figures)
            skipped = corpus.skipped
    return GoldChoice(tuple(sorted(candidates, key=lambda candidate: candidate[1])), words, skipped)


def exchanged_gold(gold: Iterable[GoldSentence]) -> list[GoldSentence]:
    """The same gold with source and target exchanged."""
    return [GoldSentence(transpose(sentence.sure), transpose(sentence.possible)) for sentence in gold]


@dataclass(frozen=True, eq=False)
class _GoldCounts:
    """|A|, |A∩S| and |A∩P| of each product of a sentence, and of its upper layers, [P + 1, 3]; collects the words."""

    gold: Sequence[GoldSentence]
    kind: str
    rule: str
    words: dict[int, PairWords]

    def product(self, maps: Sequence[MapName]) -> ExtractionOptions:
        """The extraction of a product."""
        return product_of(maps, self.kind).with_rule(self.rule)

    def upper(self, names: Iterable[MapName]) -> ExtractionOptions:
        """The extraction of the upper layers."""
        return replace(upper_layers(sorted({name.layer for name in names})), kind=self.kind).with_rule(self.rule)

    def __call__(self, sentence: SentenceMaps, maps: NDArray[np.float64], pairs: _Pairs) -> NDArray[np.float64]:
        self.words[sentence.id] = words_of(sentence)
        matrix = GoldMatrix.of(self.gold[sentence.id], sentence)
        upper = self.upper(pairs.names)
        counts = [matrix.hits(read_word_map(sentence, upper).linked(upper))[None]]
        options = self.product((MapName(0, None, "awi"), MapName(1)))
        flat = maps.reshape(len(pairs.names), *maps.shape[2:])
        awi, awo = (merged(flat, sentence, setting, rule_of(self.rule).units) for setting in ("awi", "awo"))
        added = terms(awi, "product")
        for place, term in enumerate(terms(awo, "product")):
            lower = pairs.awi[pairs.awo == place]
            if not len(lower):
                continue
            scores = combined(added[lower] + term, 2, "product")
            counts.insert(-1, matrix.hits(links_by_rule(scores, sentence, options)))
        return np.concatenate(counts).astype(np.float64)


def aer_of_method(method: AlignmentMethod, pairs: Sequence[WordMaps], gold: Sequence[GoldSentence]) -> float:
    """The AER of the links of a method; a sentence without maps counts as an empty hypothesis.

    Pair k, as its maps were read, belongs to ``gold[k]``.
    """
    links: list[Sequence[Link]] = [()] * len(gold)
    for alignment in align_pairs(pairs, method):
        links[alignment.id] = alignment.links
    return score(links, gold).aer
