"""Cuts text into the pieces that a model reads, and tracks which characters, and so which word, each piece is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError, shown
from alignment_eval.maps.sentence import SentenceSide
from alignment_eval.maps.subwords import bare_piece, word_indices, word_strings
from fairseq_norm_plugin.text.codes import made_by, read_bpe
from fairseq_norm_plugin.text.offsets import Span, blank_spans

#: Words whose pieces are cached.
_CACHED = 100_000
#: A larger share of a dictionary that codes do not make shows other codes; the model's own leave out next to nothing.
_UNMADE = 0.1


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces of a sentence.

    Attributes:
        tokens: the pieces.
        words: the word of each, from 0; runs of words where pieces span several (SentenceSide).
        spans: how many words each run has; None: one each.
        forms: the words; None: the pieces spell them.
    """

    tokens: list[str]
    words: NDArray[np.int32]
    spans: NDArray[np.int32] | None = None
    forms: tuple[str, ...] | None = None

    def side(self, before: Sequence[str], after: Sequence[str]) -> SentenceSide:
        """The side of a sentence pair, with special tokens ``before`` and ``after`` the pieces."""
        words = np.full(len(before) + len(self.words) + len(after), -1, dtype=np.int32)
        words[len(before) : len(before) + len(self.words)] = self.words
        return SentenceSide((*before, *self.tokens, *after), words, self.spans, self.forms)


@dataclass(frozen=True)
class CutText:
    """A text cut into pieces.

    Attributes:
        tokens: the pieces.
        spans: the characters of the text that each piece is of.
    """

    tokens: list[str]
    spans: list[Span]


class Splitter:
    """Cuts text into pieces; subclasses say how."""

    def cut(self, text: str, given: str) -> CutText:
        """Cut the ``text`` that the model reads; ``given`` is the line that the user gave."""
        raise NotImplementedError

    def plain(self, given: str) -> str:
        """The text of a line that was given."""
        return given

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that pieces spell, as fairseq's decoder of these subwords joins them."""
        raise NotImplementedError


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
        return CutText(tokens, spans)

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


class WordPieces(Splitter):
    """Byte-pair encoding by codes, of each word alone.

    Args:
        codes: file of subword-nmt's or fastBPE's codes.
        kind: whose codes (codes.read_bpe).
        separator: the mark of a piece that another follows.

    Raises:
        InputError: as codes.read_bpe.
    """

    def __init__(self, codes: str | Path, kind: str | None = None, separator: str = "@@") -> None:
        self._bpe = read_bpe(codes, kind, separator)
        self._mark = separator

    def cut(self, text: str, given: str) -> CutText:
        """The pieces of each word."""
        if len(self._bpe.cache) > _CACHED:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
        tokens, spans = list[str](), list[Span]()
        for start, end in blank_spans(text):
            pieces = self._bpe.segment_tokens([text[start:end]])
            tokens += pieces
            for piece in pieces[:-1]:
                spans.append((start, start := start + len(piece) - len(self._mark)))
            spans.append((start, end))
        return CutText(tokens, spans)

    def joined(self, tokens: Sequence[str]) -> str:
        """The words."""
        return (" ".join(tokens) + " ").replace(f"{self._mark} ", "").rstrip()

    def unmade(self, entries: Iterable[str]) -> set[str]:
        """The entries of dictionaries that are longer than a character and that no line of the codes makes."""
        long = {entry for entry in entries if len(entry.removesuffix(self._mark)) > 1 and not _is_filler(entry)}
        return long - made_by(self._bpe, self._mark)


def check_codes(codes: Mapping[str, WordPieces], dictionaries: Iterable[Any]) -> None:
    """Check that codes, by their files, make the entries of a model's dictionaries.

    Raises:
        InputError: they do not make more than :data:`_UNMADE` of the entries.
    """
    entries = {entry for dictionary in dictionaries for entry in dictionary.symbols[dictionary.nspecial :]}
    unmade = set.intersection(*(pieces.unmade(entries) for pieces in codes.values()))
    if len(unmade) > _UNMADE * len(entries):
        raise InputError(
            f"{', '.join(codes)}: no line of the codes makes {len(unmade)} of the {len(entries)} entries of the "
            f"dictionaries, such as {shown(min(unmade))}; give all the codes that the model's text was cut with"
        )


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
        """Cut the words, joined by blanks; the span of a piece is its whole word.

        Raises:
            InputError: the pieces of a part of the line are no part of its pieces.
        """
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
        return CutText(pieces, spans)

    def joined(self, tokens: Sequence[str]) -> str:
        """The text that the encoder's other half gives."""
        return self._decode(" ".join(tokens))


class SentencePieces(Splitter):
    """SentencePiece, which cuts the text itself and knows where its pieces are in it.

    Args:
        model: the SentencePiece model's file.

    Raises:
        InputError: it cannot be read, or sentencepiece is not installed.
    """

    def __init__(self, model: str | Path) -> None:
        self._processor = _read_sentencepiece(model)
        self.name = str(model)

    def cut(self, text: str, given: str) -> CutText:
        """Cut the text."""
        cut = self._processor.EncodeAsOffsetMapping(text)  # in characters
        return CutText(cut["pieces"], cut["offsets"])

    @property
    def pieces(self) -> list[str]:
        """All pieces by id."""
        return [self._processor.IdToPiece(number) for number in range(self._processor.GetPieceSize())]

    def joined(self, tokens: Sequence[str]) -> str:
        """The text, with blanks where pieces have their mark."""
        return "".join(tokens).replace("▁", " ").strip()

    def check(self, dictionary: Any) -> None:
        """Check that a dictionary was made with this model, and perhaps with another of the other language.

        Raises:
            InputError: the model and the dictionary share fewer than half of the pieces of the smaller.
        """
        entries = [entry for entry in dictionary.symbols[dictionary.nspecial :] if not _is_filler(entry)]
        unknown = self._processor.unk_id()
        known = sum(self._processor.PieceToId(entry) != unknown for entry in entries)
        if 2 * known < min(len(entries), self._processor.GetPieceSize()):
            raise InputError(
                f"{self.name}: {len(entries) - known} of {len(entries)} entries of the dictionary are unknown to this "
                f"SentencePiece model; give the one that the translation model was trained with"
            )


def _is_filler(entry: str) -> bool:
    """Whether an entry of a dictionary stands for no text: fairseq fills up with them, and tags name languages."""
    return entry.startswith(("madeupword", "__")) or (entry[:1] + entry[-1:]) in ("[]", "<>", "><")


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


def runs_of(
    starts: Sequence[int], ends: Sequence[int], word_starts: Sequence[int], word_ends: Sequence[int]
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """The runs of words that pieces belong to: the shortest such that no piece has characters of two runs.

    A piece without a character of a word, such as a lone blank, belongs to the next word.  A word without a piece, such
    as one that normalisation removes, belongs to the run of the word before it.

    Args:
        starts: where each piece begins in the text.
        ends: where it ends.
        word_starts: where each word begins.
        word_ends: where it ends.

    Returns:
        The run of each piece, and the number of words of each run (None: one each).
    """
    if not starts or not word_starts:
        return np.zeros(len(starts), dtype=np.int32), None
    last_word = len(word_starts) - 1
    first = np.minimum(np.searchsorted(word_ends, starts, side="right"), last_word)
    last = np.maximum(first, np.searchsorted(word_starts, ends, side="left") - 1)
    reached = np.concatenate([[-1], np.maximum.accumulate(last)[:-1]])
    begins = first > reached
    runs = np.cumsum(begins) - 1
    bounds = first[begins]
    bounds[0] = 0
    spans = np.diff([*bounds, last_word + 1])
    return runs.astype(np.int32), None if (spans == 1).all() else spans.astype(np.int32)
