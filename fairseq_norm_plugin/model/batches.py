"""Encode sentences for a model, and make batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Optional

import numpy as np
import torch

from alignment_eval.errors import InputError, UsageError, shown
from fairseq_norm_plugin.aligner.aligner import length_batches
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.capture.layers import DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.model.sentences import GivenPair, Sentence, empty_sentence
from fairseq_norm_plugin.text.ids import EncodedSide
from fairseq_norm_plugin.text.tokens import Vocabulary

#: Tokens that go through a model together; of a list of maps, those that are held together.
MAX_TOKENS = 4000
#: A window of pairs goes through the model in about this many parts of similar lengths.
_PARTS = 4
#: The types of token ids; others would be cut to whole numbers.
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def check_max_tokens(max_tokens: int) -> None:
    """Check the size of batches.

    Raises:
        UsageError: it is below 1.
    """
    if max_tokens < 1:
        raise UsageError(f"max_tokens {max_tokens}: expected a number of tokens, 1 or more")


class NumberedPair(NamedTuple):
    """An encoded pair and its place in a list; if there is no target, the model translates."""

    number: int
    source: EncodedSide
    target: Optional[EncodedSide]

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each side."""
        return [len(side.ids) for side in (self.source, self.target) if side is not None]

    def axes(self, block: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tokens of rows and columns of a block's maps; the decoder's tokens are its inputs."""
        source = self.source.side.tokens
        inputs = () if self.target is None else (*self.target.side.tokens[-1:], *self.target.side.tokens[:-1])
        return source if block == ENCODER_SELF else inputs, inputs if block == DECODER_SELF else source


class SentenceEncoder:
    """Encodes the sentences of a caller for a model.

    Args:
        direction: the model, which segments text into subwords.
        vocabularies: of source and target, for token ids.
    """

    def __init__(self, direction: Direction, vocabularies: tuple[Vocabulary, Vocabulary]) -> None:
        self._direction = direction
        self._vocabularies = vocabularies

    def pair(self, pair: GivenPair, number: int = 0) -> NumberedPair:
        """Encode both sides of a pair.

        Raises:
            InputError: a sentence is empty, longer than the model takes, or has ids outside the dictionary.
        """
        source = self.side(pair.source, 0, pair.names[0])
        return NumberedPair(number, source, None if pair.target is None else self.side(pair.target, 1, pair.names[1]))

    def side(self, sentence: Sentence, which: int, name: str) -> EncodedSide:
        """Encode a source (``which`` 0) or a target (1), called ``name`` in messages; errors as for :meth:`pair`."""
        if isinstance(sentence, str):
            side = self._direction.encode_side(self._direction.read(sentence, which), which)
        else:
            side = self._of_ids(sentence, which, name)
        if not side.side.word_count:
            raise empty_sentence(name)
        limit = self._direction.limits[which]
        if len(side.ids) > limit:
            raise InputError(f"{name}: {len(side.ids)} tokens with </s>: the model takes at most {limit}")
        return side

    def _of_ids(self, sentence: Iterable[int], which: int, name: str) -> EncodedSide:
        vocabulary = self._vocabularies[which]
        dictionary = vocabulary.dictionary
        try:
            given = torch.as_tensor(list(sentence))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids ({error})") from error
        if len(given) and (given.dim() != 1 or given.dtype not in _WHOLE):
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids, which are whole numbers")
        ids = given.to(torch.long)
        if len(ids) and ids[-1] == dictionary.eos():
            ids = ids[:-1]
        frame = self._direction.frames.target if which else self._direction.frames.source
        ids = torch.cat([ids.new_tensor(frame.before), ids, ids.new_tensor(frame.after)])
        if int(ids.min()) < 0 or int(ids.max()) >= len(dictionary):
            raise InputError(
                f"{name}: token ids {int(ids.min())} to {int(ids.max())}: expected 0 to {len(dictionary) - 1}"
            )
        spelling = vocabulary.spell(ids)
        return EncodedSide(ids, spelling.side, spelling.unknown, spelling.certain)


def windows(pairs: Iterable[NumberedPair], max_tokens: int) -> Iterator[list[NumberedPair]]:
    """Split pairs, in order, into windows whose longer sides have up to ``max_tokens`` tokens; one pair at least."""
    window: list[NumberedPair] = []
    tokens = 0
    for pair in pairs:
        if window and tokens + max(pair.lengths) > max_tokens:
            yield window
            window, tokens = [], 0
        window.append(pair)
        tokens += max(pair.lengths)
    if window:
        yield window


def parts_of(window: list[NumberedPair], max_tokens: int) -> Iterator[list[NumberedPair]]:
    """Split a window into batches of pairs of similar length."""
    lengths = np.array([pair.lengths for pair in window], dtype=np.int64)
    for rows in length_batches(lengths, max(1, max_tokens // _PARTS)):
        yield [window[row] for row in rows]
