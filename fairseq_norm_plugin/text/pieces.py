"""Text that is in pieces, or that SentencePiece or an encoder of fairseq cuts, with the characters of each piece."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.maps.subwords import bare_piece, word_indices, word_strings
from fairseq_norm_plugin.text.offsets import Span, blank_spans
from fairseq_norm_plugin.text.tokenise import CutText, Splitter, is_filler


@dataclass(frozen=True)
class MarkedPieces(Splitter):
    """Text that is in pieces already: their ``mark``, one of alignment_eval.maps.subwords.MARKS, shows the words."""

    mark: str

    def cut(self, text: str, given: str) -> CutText:
        """The pieces as they are given."""
        tokens, numbers, words = self._read(given)
        spans: list[Span] = []
        end, word = -1, -1
        for token, number in zip(tokens, numbers.tolist()):
            if number > word:
                word, start = number, end + 1
                end = start + len(words[word])
            spans.append((start, start := min(end, start + len(self._bare(token)))))
        return tokens, spans

    def plain(self, given: str) -> str:
        """The words that the pieces spell, with blanks between."""
        return " ".join(self._read(given)[2])

    def joined(self, tokens: Sequence[str]) -> str:
        """The pieces as they are."""
        return " ".join(tokens)

    def _read(self, given: str) -> tuple[list[str], NDArray[np.int32], list[str]]:
        """The pieces, the word of each, and the words that they spell."""
        tokens = [given[start:end] for start, end in blank_spans(given)]
        numbers = word_indices(tokens, self.mark)
        return tokens, numbers, tokens if self.mark == "none" else word_strings(tokens, numbers)

    def _bare(self, token: str) -> str:
        return token if self.mark == "none" else bare_piece(token)


class LinePieces(Splitter):
    """Any encoder of fairseq's registry, which cuts a whole line.

    A piece belongs to the word with which it appears first, as the line grows word by word.

    Args:
        encode: from a line to its pieces, separated by blanks.
        decode: the other way.
        name: of the encoder, for messages.
    """

    def __init__(self, encode: Callable[[str], str], decode: Callable[[str], str], name: str) -> None:
        self._encode = encode
        self._decode = decode
        self._name = name

    def cut(self, text: str, given: str) -> CutText:
        """Cut the words, joined by blanks; the span of a piece is its whole word."""
        places = blank_spans(text)
        words = [text[start:end] for start, end in places]
        grown = [self._encode(" ".join(words[: count + 1])).split() for count in range(len(words))]
        pieces = grown[-1] if grown else []
        spans: list[Span] = []
        for place, word, part in zip(places, words, grown):
            if part != pieces[: len(part)]:
                raise InputError(
                    f"--bpe {self._name} cuts {word!r} differently before the next word, so its pieces belong "
                    f"to no single word; give text in pieces and --bpe none"
                )
            spans += [place] * (len(part) - len(spans))
        return pieces, spans

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that the encoder's other half gives."""
        return self._decode(" ".join(tokens))


class SentencePieces(Splitter):
    """SentencePiece, which cuts the text itself and knows where its pieces are in it.

    Args:
        model: the SentencePiece model's file.
    """

    def __init__(self, model: str | Path) -> None:
        self._processor = _read_sentencepiece(model)
        self.name = str(model)

    def cut(self, text: str, given: str) -> CutText:
        """Cut the text."""
        cut = self._processor.EncodeAsOffsetMapping(text)  # in characters
        return cut["pieces"], cut["offsets"]

    @property
    def pieces(self) -> list[str]:
        """All pieces by id."""
        return [self._processor.IdToPiece(number) for number in range(self._processor.GetPieceSize())]

    def joined(self, tokens: Sequence[str]) -> str:
        """The text, with blanks where pieces have their mark."""
        return "".join(tokens).replace("▁", " ").strip()

    def check(self, dictionary: Any) -> None:
        """Check that a dictionary was made with this model, and perhaps with another of the other language."""
        entries = [entry for entry in dictionary.symbols[dictionary.nspecial :] if not is_filler(entry)]
        unknown = self._processor.unk_id()
        known = sum(self._processor.PieceToId(entry) != unknown for entry in entries)
        if 2 * known < min(len(entries), self._processor.GetPieceSize()):
            raise InputError(
                f"{self.name}: {len(entries) - known} of {len(entries)} entries of the dictionary are unknown to this "
                f"SentencePiece model; give the one that the translation model was trained with"
            )


def _read_sentencepiece(model: str | Path) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError as error:
        raise InputError("--bpe sentencepiece needs sentencepiece, which is not installed; pip install it") from error
    try:
        return SentencePieceProcessor(model_file=str(model))
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"{model}: cannot be read as a SentencePiece model; give the file that spm_train wrote"
        ) from error
