"""The recorded quantities of a batch of sentence pairs, with padding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alignment_eval.maps.sentence import QUANTITIES, Array, SentenceMaps, SentenceSide


@dataclass(frozen=True, eq=False)
class PaddedMaps:
    """The recorded quantities of a batch of sentence pairs.

    Attributes:
        sentences: the pairs, without their maps; at least one.
        columns: the first source column of each pair, [B]; others before it are padding, as are all behind its tokens.
        arrays: quantities (:data:`alignment_eval.maps.sentence.QUANTITIES`), with an axis of the pairs before those of
            tokens: ``LHBTS``.
    """

    sentences: Sequence[SentenceMaps]
    columns: Sequence[int]
    arrays: Mapping[str, Array]

    def sentence(self, place: int) -> SentenceMaps:
        """The pair at ``place``, with its maps."""
        sentence, first = self.sentences[place], self.columns[place]
        cuts: dict[str, int | slice] = {
            "B": place,
            "T": slice(len(sentence.target.tokens)),
            "S": slice(first, first + len(sentence.source.tokens)),
        }
        index = {name: tuple(cuts.get(axis, slice(None)) for axis in batch_axes(name)) for name in self.arrays}
        arrays = {name: np.ascontiguousarray(array[index[name]]) for name, array in self.arrays.items()}
        return replace(sentence, arrays=arrays)

    def __iter__(self) -> Iterator[SentenceMaps]:
        return (self.sentence(place) for place in range(len(self.sentences)))

    @property
    def together(self) -> SentenceMaps:
        """All pairs as if they were one, for maps [L, H, B, T, S]."""
        nothing = SentenceSide((), np.empty(0, dtype=np.int32))
        return SentenceMaps(-1, nothing, nothing, self.sentences[0].layers, arrays=self.arrays)


def batch_axes(quantity: str) -> str:
    """The axes of a quantity of a batch: that of its pairs, B, comes before those of tokens."""
    axes = QUANTITIES[quantity]
    tokens = axes.lstrip("LH")
    return f"{axes.removesuffix(tokens)}B{tokens}"
