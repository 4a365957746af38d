"""Choosing the maps of a model without gold: the AWI map and the AWO map whose links agree most.

In a decoder whose alignment has formed, a low layer finds the source word of the token that is its input (AWI), and an
upper layer the source word of the token that it predicts (AWO).  The two make different errors.  So two such maps that
draw the same links on unlabelled sentence pairs are both right, and their product is better than either.

In a young model no two maps agree that well.  Their agreement stays below :data:`FORMED`, and the upper layers in AWO
are the better choice (:mod:`alignment_eval.extraction.defaults`).  docs/reproduction.md has the measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import stacked_maps, unit_maps
from alignment_eval.extraction.options import MapName
from alignment_eval.maps.sentence import HEAD_KINDS, SentenceMaps
from alignment_eval.maps.words import two_way_shares

#: The kind of the maps that are compared, and read.
KIND = "attn_n"
#: How many sentence pairs are compared; more do not change the choice.
PAIRS = 100
#: The fewest sentence pairs on which the choice is stable.
FEWEST_PAIRS = 30
#: Two words are linked in the comparison from this two-way share on.
SHARE = 0.3
#: The alignment of a model has formed from this agreement on.
FORMED = 0.4


@dataclass(frozen=True)
class Agreement:
    """The two maps that agree most.

    Attributes:
        awi: the map to read in AWI, of a lower layer than ``awo``.
        awo: the map to read in AWO.
        dice: Dice coefficient of their links, a fraction.
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


def choose_by_agreement(sentences: Iterable[SentenceMaps], kind: str = KIND, pairs: int = PAIRS) -> Agreement | None:
    """The AWI map and the AWO map of a higher layer whose links agree most.

    Of equal ones the first: by layer and head of the AWO map, then of the AWI map; a whole layer comes after its heads.

    Args:
        sentences: the maps of all layers of one model; those without maps are skipped.
        kind: a map kind.
        pairs: how many sentences with maps are read, from the first on.

    Returns:
        None if the model has one layer only, or if no two maps share a link.

    Raises:
        UsageError: ``pairs`` is less than 1.
        InputError: no sentence has maps, not all have the same layers and heads, or a map is damaged.
    """
    if pairs < 1:
        raise UsageError(f"{pairs} sentence pairs to choose maps by: expected 1 or more")
    read = list(islice((sentence for sentence in sentences if sentence.ok), pairs))
    if not read:
        raise InputError("no sentence has maps: expected some to choose maps by; give other text, or name the maps")
    names = map_names(read[0], kind)
    dice = agreements(read, kind, names)
    layers = np.array([name.layer for name in names])
    dice[layers[:, None] <= layers] = 0  # neighbouring rows of one layer share links, right or wrong
    row, column = divmod(int(dice.argmax()), len(names))
    best = float(dice[row, column])
    if best == 0:
        return None
    return Agreement(replace(names[column], setting="awi"), replace(names[row], setting="awo"), best, len(read))


def agreements(sentences: Sequence[SentenceMaps], kind: str, names: Sequence[MapName]) -> NDArray[np.float64]:
    """How well the links of each map in AWO agree with those of each map in AWI.

    The Dice coefficient 2 |A ∩ B| / (|A| + |B|) over all sentences; 0 without links.

    Args:
        sentences: sentences with maps.
        kind: a map kind.
        names: all M maps of the sentences (:func:`map_names`).

    Returns:
        float64 [M in AWO, M in AWI].

    Raises:
        InputError: a sentence has other layers or heads, or a map is damaged.
    """
    common = np.zeros((len(names), len(names)))
    sizes = np.zeros((len(names), len(names)))
    for sentence in sentences:
        if map_names(sentence, kind) != list(names):
            raise InputError(
                f"sentence {sentence.id} has other layers or heads than the first: expected maps of one model"
            )
        maps = stacked_maps(sentence, kind)
        awo, awi = (_linked(maps, sentence, setting) for setting in ("awo", "awi"))
        common += awo @ awi.T
        sizes += awo.sum(axis=1)[:, None] + awi.sum(axis=1)
    found: NDArray[np.float64] = np.divide(2 * common, sizes, out=np.zeros_like(common), where=sizes > 0)
    return found


def map_names(sentence: SentenceMaps, kind: str) -> list[MapName]:
    """The names of all maps of a kind, layer by layer, each layer's heads before the whole layer."""
    heads: list[int | None] = [*range(sentence.heads if kind in HEAD_KINDS else 0), None]
    return [MapName(layer, head) for layer in sentence.layers for head in heads]


def _linked(maps: NDArray[np.float64], sentence: SentenceMaps, setting: str) -> NDArray[np.float64]:
    """1 where ``maps`` [L, H + 1, T, S] link two words, [L · (H + 1), cells]; sums of them are exact."""
    scores = unit_maps(maps, sentence, setting, "words").scores[..., :-1]  # two-way shares leave null out
    linked = two_way_shares(scores) >= SHARE
    return linked.reshape(maps.shape[0] * maps.shape[1], -1).astype(np.float64)
