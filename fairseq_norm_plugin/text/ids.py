"""From the words of one side of a sentence pair to the tokens and ids that a model reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Optional

import numpy as np
import torch
from torch import Tensor

from alignment_eval.maps.sentence import SentenceSide
from fairseq_norm_plugin.text.tokenise import TextPipeline
from fairseq_norm_plugin.text.tokens import Frame, Frames


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


class SideEncoder:
    """Encodes one side of the pairs that a direction reads.

    Args:
        pipeline: makes its words and their pieces.
        dictionary: fairseq's dictionary.
        frame: the special tokens around it.
        specials: the ids of all special tokens, which no word of the text becomes.
    """

    def __init__(self, pipeline: TextPipeline, dictionary: Any, frame: Frame, specials: Collection[int]) -> None:
        self._pipeline = pipeline
        self._dictionary = dictionary
        self._frame = frame
        self._specials = specials
        self._ids = _TokenIds(dictionary, specials)
        self._around = tuple([dictionary[i] for i in part] for part in (frame.before, frame.after))

    def side(self, words: Sequence[str]) -> SentenceSide:
        """The tokens of words of the text."""
        return self._pipeline.segment(words).side(*self._around)

    def cuts_as(self, other: SideEncoder) -> bool:
        """Whether :meth:`side` of both is the same for any words."""
        return self._pipeline.cuts_as(other._pipeline) and self._around == other._around

    def encoded(self, side: SentenceSide) -> EncodedSide:
        """A :meth:`side` with its ids."""
        known, (before, after) = self._ids, self._around
        ids = [known[token] for token in side.tokens[len(before) : len(side.tokens) - len(after)]]
        whole = np.array([*self._frame.before, *ids, *self._frame.after], dtype=np.int64)
        return EncodedSide(torch.from_numpy(whole), side, ids.count(self._dictionary.unk()))

    def forget(self) -> None:
        """Free the memory that caches of words and pieces take."""
        self._pipeline.forget()
        self._ids = _TokenIds(self._dictionary, self._specials)


def side_encoders(
    pipelines: tuple[TextPipeline, TextPipeline], dictionaries: tuple[Any, Any], frames: Frames
) -> tuple[SideEncoder, SideEncoder]:
    """The encoders of source and target."""
    source = SideEncoder(pipelines[0], dictionaries[0], frames.source, frames.ids)
    return source, SideEncoder(pipelines[1], dictionaries[1], frames.target, frames.ids)


class _TokenIds(dict[str, int]):
    """The id of each piece so far; unknown for what the dictionary lacks, and for what only looks like a symbol.

    A word of the text that looks like ``</s>``, ``<pad>`` or a tag is not that symbol.
    """

    def __init__(self, dictionary: Any, specials: Collection[int]) -> None:
        super().__init__()
        self._dictionary = dictionary
        self._specials = specials

    def __missing__(self, piece: str) -> int:
        found = self._dictionary.index(piece)
        ordinary = found >= self._dictionary.nspecial and found not in self._specials
        id_: int = found if ordinary else self._dictionary.unk()
        self[piece] = id_
        return id_


def count_tokens(pairs: Mapping[int, tuple[EncodedSide, Optional[EncodedSide]]]) -> int:
    """The tokens of all sides of a batch."""
    return sum(len(side.ids) for sides in pairs.values() for side in sides if side is not None)
