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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import DEFAULTS
from alignment_eval.extraction.extract import merged, stacked_maps
from alignment_eval.extraction.lexical_table import count_lexical_table
from alignment_eval.extraction.method import MapName
from alignment_eval.maps.kinds import KINDS
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
        awi: the map to read in AWI, of a lower layer than ``awo``.
        awo: the map to read in AWO.
        dice: Dice coefficient of their links above chance, a fraction.
    """

    awi: MapName
    awo: MapName
    dice: float

    @property
    def formed(self) -> bool:
        """Whether they agree well enough to read the product of the two."""
        return self.dice >= FORMED

    @property
    def maps(self) -> tuple[MapName, MapName]:
        """Both maps, each with its setting."""
        return self.awi, self.awo


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
    heads: list[int | None] = [*range(sentence.heads if KINDS[kind].heads else 0), None]
    return [MapName(layer, head) for layer in sentence.layers for head in heads]


def choose_by_agreement(
    sentences: Iterable[SentenceMaps], kind: str = DEFAULTS.kind, pairs: int = DEFAULTS.profile_pairs
) -> Agreement | None:
    """The AWI map and the AWO map of a higher layer whose links agree most above chance.

    Each map is sharpened by a lexical table of its own, of all pairs.  With c links in common, a and b in each map, and
    a b / n of them in common by chance in a sentence pair of n cells, the agreement is
    (2 Σ c − 2 Σ a b / n) / (Σ (a + b) − 2 Σ a b / n): the Dice coefficient, less what is chance in numerator and
    denominator, as Cohen's kappa has it for cells.  It counts only if the maps share enough links, not all of them in
    the order of the words: :data:`FEWEST_SHARED`, :data:`OFF_DIAGONAL`.

    Pairs of maps within :data:`CLOSE` of the best are compared by their place in the model: first the AWI map of the
    lowest layer, a head before its whole layer, then the AWO map of the highest layer, the whole layer before its
    heads; of pairs alike in all that, the one that agrees most, and of equal ones the one of lower heads.

    ``sentences`` have the maps of all layers of one model; the first ``pairs`` that have maps are read.

    Returns:
        None if the model has one layer only, or if no two maps agree by more than chance and position.
    """
    if pairs < 1:
        raise UsageError(f"{pairs} sentence pairs to choose maps by: expected 1 or more")
    found = list(islice((sentence for sentence in sentences if sentence.ok), pairs))
    if not found:
        raise InputError("no sentence has maps: expected some to choose maps by; give other text, or name the maps")
    compared = _Pairs.of(found[0], kind)
    for sentence in found:
        if map_names(sentence, kind) != compared.names:
            raise InputError(
                f"sentence {sentence.id} has other layers or heads than the first: expected maps of one model"
            )
    total: NDArray[np.float64] = np.zeros(())
    for linked in _linked(found, kind):
        total = total + _links_in_common(linked, compared)
    if (best := best_of(compared, total)) is None:
        return None
    pair, dice = best
    return Agreement(*compared.maps(pair), dice)


def _linked(sentences: Sequence[SentenceMaps], kind: str) -> Iterator[NDArray[np.bool_]]:
    """The links of each map of each sentence in AWO and in AWI, [2, maps, target words, source words].

    They are those of the map as a lexical table of all these sentences has sharpened it.
    """
    maps = []
    for sentence in sentences:
        stacked = stacked_maps(sentence, kind)
        both = [merged(stacked, sentence, setting, "words") for setting in ("awo", "awi")]
        shares = row_shares(np.stack(both))[..., :-1].astype(np.float32)
        maps.append(shares.reshape(2, -1, *shares.shape[-2:]))
    words = [words_of(sentence) for sentence in sentences]
    linked = [np.zeros(of_sentence.shape, dtype=np.bool_) for of_sentence in maps]
    for place in np.ndindex(maps[0].shape[:2]):
        _, sharp = count_lexical_table([(own, each[place]) for own, each in zip(words, maps)], balanced_shares)
        for of_sentence, word_map in zip(linked, sharp):
            of_sentence[place] = balanced_shares(word_map) >= LINKED
    yield from linked


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


def _links_in_common(linked: NDArray[np.bool_], pairs: _Pairs) -> NDArray[np.float64]:
    """What the links of the two maps of each pair have in common in a sentence, [P, 5].

    They are: how many links they share and how many they have in all, both above chance; how many they share, and how
    many of these are on the diagonal; and the mean number of words of both sides.
    """
    height, width = linked.shape[-2:]
    awo, awi = linked.reshape(*linked.shape[:2], -1).astype(np.float64)
    targets = np.arange(height)
    diagonal = targets * width + (2 * targets + 1) * width // (2 * height)
    first, second = awo.sum(axis=1)[pairs.awo], awi.sum(axis=1)[pairs.awi]
    chance = first * second / (height * width)
    shared = (awo @ awi.T)[pairs.awo, pairs.awi]
    straight = (awo[:, diagonal] @ awi[:, diagonal].T)[pairs.awo, pairs.awi]
    words = np.full(len(shared), (height + width) / 2)
    return np.stack([shared - chance, first + second - 2 * chance, shared, straight, words], axis=-1)
