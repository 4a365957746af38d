"""Choosing the maps of a model without gold: an AWI map and an AWO map, by their agreement.

In a decoder whose alignment has formed, a low layer finds the source word of the token that is its input (AWI), and an
upper layer the source word of the token that it predicts (AWO).  The two make different errors.  So two such maps that
draw the same links on unlabelled sentence pairs are both right, and their product is better than either.  Their links
are those after a lexical table of the same pairs has sharpened each map: it tells maps that can align from others.

Every AWI map is compared with every AWO map of a higher layer.  Which of some close pairs agrees most differs from text
to text.  Of those, the place in the model says which is better: alignment forms in one head of a low layer in AWI, and
in all of the top layer in AWO.  In a young model no two maps agree well, and the upper layers in AWO are better.
docs/reproduction.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.extract import merged, stacked_maps
from alignment_eval.extraction.lexical_table import count_lexical_table
from alignment_eval.extraction.method import MapName
from alignment_eval.maps.sentence import SentenceMaps, words_of
from alignment_eval.maps.words import balanced_shares, row_shares

#: Two words are linked in the comparison of maps from this share on.
LINKED = 0.3
#: Two maps agree only if they share at least this many links a word above chance: near-uniform maps link next to no
#: words of long sentences,
FEWEST_SHARED = 0.15
#: and if at least this part of the shared links is off the diagonal: maps may follow the order of the words only.
OFF_DIAGONAL = 0.1
#: Pairs of maps that agree by so little less than the best are as good by agreement: their place in the model decides.
CLOSE = 0.03
#: The alignment of a model has formed from this agreement on: formed models have 0.66 or more, others 0.32 or less.
FORMED = 0.5


@dataclass(frozen=True)
class Agreement:
    """The two maps that agree most.

    Attributes:
        maps: the map to read in AWI and that of a higher layer to read in AWO, each with its setting.
        dice: Dice coefficient of their links above chance, a fraction.
    """

    maps: tuple[MapName, MapName]
    dice: float

    @property
    def formed(self) -> bool:
        """Whether they agree well enough to read the product of the two."""
        return self.dice >= FORMED


def map_names(sentence: SentenceMaps) -> list[MapName]:
    """The names of all maps, layer by layer, each layer's heads before the whole layer."""
    return [MapName(layer, head) for layer in sentence.layers for head in (*range(sentence.heads), None)]


def choose_by_agreement(sentences: Iterable[SentenceMaps]) -> Agreement | None:
    """The AWI map and the AWO map of a higher layer whose links agree most above chance.

    Each map is sharpened by a lexical table of its own, of all pairs.  With c links in common, a and b in each map, and
    a b / n of them in common by chance in a sentence pair of n cells, the agreement is
    (2 Σ c − 2 Σ a b / n) / (Σ (a + b) − 2 Σ a b / n): the Dice coefficient, less what is chance in numerator and
    denominator, as Cohen's kappa has it for cells.  It counts only if the maps share enough links, not all of them in
    the order of the words: :data:`FEWEST_SHARED`, :data:`OFF_DIAGONAL`.

    Pairs of maps within :data:`CLOSE` of the best are compared by their place in the model: first the AWI map of the
    lowest layer, a head before its whole layer, then the AWO map of the highest layer, the whole layer before its
    heads; of pairs alike in all that, the one that agrees most, and of equal ones the one of lower heads.

    ``sentences`` have the maps of all layers of one model; those without maps do not count.

    Returns:
        None if the model has one layer only, or if no two maps agree by more than chance and position.
    """
    found = [sentence for sentence in sentences if sentence.ok]
    names = map_names(found[0])
    layers = np.array([name.layer for name in names])
    # by the AWO map; of one layer, neighbouring rows share links, right or wrong
    awo, awi = np.nonzero(layers[:, None] > layers)
    linked = _linked(found)
    sums: NDArray[np.float64] = sum((_in_common(of_pair, awo, awi) for of_pair in linked), np.zeros((5, len(awo))))
    common, sizes, shared, straight, words = sums
    counts = (common >= FEWEST_SHARED * words) & (shared - straight >= OFF_DIAGONAL * shared)
    dice = np.divide(2 * common, sizes, out=np.zeros_like(common), where=counts)
    if not dice.any():
        return None

    def order(pair: int) -> tuple[int, bool, int, bool, float]:
        one, other = names[awi[pair]], names[awo[pair]]
        return one.layer, one.head is None, -other.layer, other.head is not None, -dice[pair]

    best = min(np.flatnonzero(dice >= dice.max() - CLOSE).tolist(), key=order)
    maps = replace(names[awi[best]], setting="awi"), replace(names[awo[best]], setting="awo")
    return Agreement(maps, float(dice[best]))


def _linked(sentences: Sequence[SentenceMaps]) -> list[NDArray[np.bool_]]:
    """The links of each map of each sentence in AWO and in AWI, [2, maps, target words, source words].

    They are those of the map as a lexical table of all these sentences has sharpened it.
    """
    maps = []
    for sentence in sentences:
        stacked = stacked_maps(sentence, DEFAULTS.kind)
        both = [merged(stacked, sentence, setting, "words") for setting in ("awo", "awi")]
        shares = row_shares(np.stack(both))[..., :-1].astype(np.float32)
        maps.append(shares.reshape(2, -1, *shares.shape[-2:]))
    words = [words_of(sentence) for sentence in sentences]
    linked = [np.zeros(of_sentence.shape, dtype=np.bool_) for of_sentence in maps]
    for place in np.ndindex(maps[0].shape[:2]):
        _, sharp = count_lexical_table([(own, each[place]) for own, each in zip(words, maps)], balanced_shares)
        for of_sentence, word_map in zip(linked, sharp):
            of_sentence[place] = balanced_shares(word_map) >= LINKED
    return linked


def _in_common(linked: NDArray[np.bool_], awo: NDArray[np.intp], awi: NDArray[np.intp]) -> NDArray[np.float64]:
    """What the links of the two maps of each pair have in common in a sentence, [5, pairs of maps].

    They are: how many links they share and how many they have in all, both above chance; how many they share, and how
    many of these are on the diagonal; and the mean number of words of both sides.
    """
    height, width = linked.shape[-2:]
    outputs, inputs = linked.reshape(*linked.shape[:2], -1).astype(np.float64)
    targets = np.arange(height)
    diagonal = targets * width + (2 * targets + 1) * width // (2 * height)
    first, second = outputs.sum(axis=1)[awo], inputs.sum(axis=1)[awi]
    chance = first * second / (height * width)
    shared = (outputs @ inputs.T)[awo, awi]
    straight = (outputs[:, diagonal] @ inputs[:, diagonal].T)[awo, awi]
    words = np.full(len(shared), (height + width) / 2)
    return np.stack([shared - chance, first + second - 2 * chance, shared, straight, words])
