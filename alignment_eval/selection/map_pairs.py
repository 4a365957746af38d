"""Choosing the maps of a model by a development gold, among those that are compared without gold.

The candidates are those of :mod:`alignment_eval.selection.agreement`: every product of an AWI map and an AWO map of a
higher layer, and the upper layers in AWO.  Each is read without a lexicon, by the rule of
:func:`alignment_eval.extraction.defaults.product_of`.  The lowest AER is taken.  Another rule may then be chosen for
these maps; :func:`aer_under` is its AER.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.bidirectional import Words, words_of
from alignment_eval.extraction.corpus import DirectedLinks
from alignment_eval.extraction.defaults import product_of, upper_layers
from alignment_eval.extraction.extract import choose_units, stacked_maps, unit_maps, word_links, word_map_links
from alignment_eval.extraction.options import ExtractionOptions, MapName
from alignment_eval.links.table import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import combined, terms
from alignment_eval.scoring.gold_corpus import GoldCorpus, GoldMatrix, aer_of
from alignment_eval.selection.agreement import KIND, map_names


@dataclass(frozen=True)
class MapsByGold:
    """The maps of the lowest AER.

    Attributes:
        maps: the maps, and the rule that they were compared under.
        aer: their AER, a fraction.
        words: id -> the words of each sentence pair that has maps.
        skipped: id -> why the others have none; they count as empty hypotheses.
    """

    maps: ExtractionOptions
    aer: float
    words: Mapping[int, Words]
    skipped: Mapping[int, str]


def choose_maps_by_gold(
    sentences: Iterable[SentenceMaps], gold: Sequence[GoldSentence], layers: Sequence[int], kind: str = KIND
) -> MapsByGold:
    """The AWI map and the AWO map of a higher layer whose product has the lowest AER, or the upper layers.

    Of equal ones the first: by layer and head of the AWO map, then of the AWI map; a whole layer comes after its heads,
    and the upper layers come last.

    Args:
        sentences: the maps of all layers of one model, in any order; id k belongs to ``gold[k]``.
        gold: the development gold, one entry a sentence.
        layers: the numbers of all decoder layers.
        kind: a map kind.

    Raises:
        InputError: as :class:`alignment_eval.scoring.gold_corpus.GoldCorpus`, or a map is damaged.
    """
    corpus = GoldCorpus(sentences, gold)
    words: dict[int, Words] = {}
    upper = replace(upper_layers(layers), kind=kind)
    candidates: list[ExtractionOptions] = []
    hits: NDArray[np.int64] = np.zeros((1, 3), dtype=np.int64)
    for sentence, matrix in corpus:
        words[sentence.id] = words_of(sentence)
        if not candidates:
            candidates = [*(product_of(pair, kind) for pair in _pairs(map_names(sentence, kind))), upper]
        linked = matrix.hits(word_links(sentence, upper).linked)
        hits = hits + np.concatenate([*_product_hits(sentence, matrix, kind), linked[None]])
    figures = aer_of(hits, corpus.sure)
    best = int(figures.argmin())
    return MapsByGold(candidates[best], float(figures[best]), words, corpus.skipped)


def aer_under(options: ExtractionOptions, pairs: Collection[DirectedLinks], gold: Sequence[GoldSentence]) -> float:
    """The AER of word maps, read by another rule than before.

    Args:
        options: the rule, which reads word maps.
        pairs: all sentence pairs as they were read; id k belongs to ``gold[k]``.
        gold: the gold, one entry a sentence.

    Raises:
        InputError: as :class:`alignment_eval.scoring.gold_corpus.GoldCorpus`.
    """
    links = {pair.sentence.id: pair.links for pair in pairs}
    corpus = GoldCorpus((pair.sentence for pair in pairs), gold)
    hits = np.zeros(3, dtype=np.int64)
    for sentence, matrix in corpus:
        of_sentence = links[sentence.id]
        if of_sentence is not None:
            hits = hits + matrix.hits(word_map_links(of_sentence.shares, sentence, options).linked)
    return float(aer_of(hits, corpus.sure))


def _pairs(names: Sequence[MapName]) -> list[tuple[MapName, MapName]]:
    """Each map in AWO with each map of a lower layer in AWI, the AWI map first."""
    return [
        (replace(awi, setting="awi"), replace(awo, setting="awo"))
        for awo in names
        for awi in names
        if awi.layer < awo.layer
    ]


def _product_hits(sentence: SentenceMaps, gold: GoldMatrix, kind: str) -> list[NDArray[np.int64]]:
    """|A|, |A∩S| and |A∩P| of each of :func:`_pairs`, [pairs of one AWO map, 3] each."""
    names = map_names(sentence, kind)
    stacked = stacked_maps(sentence, kind)
    maps = stacked.reshape(len(names), *stacked.shape[2:])
    awi, awo = (unit_maps(maps, sentence, setting, "words") for setting in ("awi", "awo"))
    added, options = terms(awi.scores, "product"), product_of((MapName(0, None, "awi"), MapName(1)))
    found = []
    for name, term in zip(names, terms(awo.scores, "product")):
        lower = [k for k, other in enumerate(names) if other.layer < name.layer]
        if lower:
            scores = combined(added[lower] + term, 2, "product")
            chosen = choose_units(replace(awo, scores=scores), sentence, options)
            found.append(gold.hits(chosen.linked(*gold.sure.shape)))
    return found
