"""From a line of text to the tokens and ids that a model reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from alignment_eval.maps.sentence import SentenceSide
from fairseq_norm_plugin.text.tokenise import Line, TextPipeline
from fairseq_norm_plugin.text.tokens import Frame


@dataclass(frozen=True, eq=False)
class EncodedSide:
    """One side of a pair, encoded for a model.

    Attributes:
        ids: token ids with the special tokens around them.
        side: tokens with their words.
        unknown: how many tokens the dictionary lacks.
        certain: whether the words are certainly those of the text (tokens.Spelling).
    """

    ids: Tensor
    side: SentenceSide
    unknown: int
    certain: bool = True


#: An encoded sentence pair, source and target.
EncodedPair = tuple[EncodedSide, EncodedSide]
#: The same; if there is no target, the model translates.
SourceAndTarget = tuple[EncodedSide, EncodedSide | None]


class SideEncoder:
    """Encodes one side of the pairs that a direction reads.

    Args:
        pipeline: makes pieces of it.
        dictionary: fairseq's dictionary.
        frame: the special tokens around it.
        specials: the ids of all special tokens, which no word of the text becomes.
    """

    def __init__(self, pipeline: TextPipeline, dictionary: Any, frame: Frame, specials: Collection[int]) -> None:
        self._pipeline = pipeline
        self._dictionary = dictionary
        self._frame = frame
        self._specials = specials
        self._around = tuple([dictionary[i] for i in part] for part in (frame.before, frame.after))

    def __call__(self, line: Line) -> EncodedSide:
        """Encode a line of the text."""
        pieces = self._pipeline.segment(line)
        ids = list(map(self._id, pieces.tokens))
        whole = np.array([*self._frame.before, *ids, *self._frame.after], dtype=np.int64)
        return EncodedSide(torch.from_numpy(whole), pieces.side(*self._around), ids.count(self._dictionary.unk()))

    def _id(self, piece: str) -> int:
        """The id of a piece; unknown also for a word of the text that looks like ``</s>``, ``<pad>`` or a tag."""
        id_: int = self._dictionary.index(piece)
        ordinary = id_ >= self._dictionary.nspecial and id_ not in self._specials
        return id_ if ordinary else int(self._dictionary.unk())


def lengths_of(pairs: Mapping[int, EncodedPair | SourceAndTarget]) -> dict[int, list[int]]:
    """The number of tokens of the sides of each pair."""
    return {id_: [len(side.ids) for side in pair if side is not None] for id_, pair in pairs.items()}


def count_tokens(pairs: Mapping[int, EncodedPair | SourceAndTarget]) -> int:
    """The tokens of all sides of a batch."""
    return sum(map(sum, lengths_of(pairs).values()))
