"""Sentence pairs read from files, and the segmentation of their words into subwords."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from tempfile import NamedTemporaryFile
from typing import Any, Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD
from alignment_eval.formats.text import TextFile, token_lines
from alignment_eval.maps.subwords import word_indices, word_strings
from fairseq_norm_plugin.bpe import read_bpe

#: Separates source and target if both are in one file, as in fast_align's input.
SEPARATOR = b"|||"

Tokens = list[str]
#: A sentence pair's words, source and target.
TokenPair = tuple[Tokens, Tokens]


class ParallelText:
    """Tokenised sentence pairs of two files, or of one file of ``source ||| target`` lines; ``-`` is standard input.

    The text is read once at the beginning (line counts, encoding, hashes; standard input is copied to a temporary
    file), and again line by line in each iteration.  Memory does not grow with the text.

    Attributes:
        size: the number of pairs.
        hashes: hashes of the files' content.

    Raises:
        InputError: a file cannot be read, is empty or not UTF-8, the two files differ in their number of lines, or a
            line of a joint file does not have exactly one separator (a blank line is an empty pair).
    """

    def __init__(self, paths: Sequence[str]) -> None:
        self._paths: list[str] = []
        self._copies: list[Any] = []
        names, sizes, hashes = [], [], []
        for path in paths:
            file = TextFile(path)
            sizes.append(self._read_once(file, path, joined=len(paths) == 1))
            names.append(file.name)
            hashes.append(file.hash.short)
        if len(set(sizes)) > 1:
            raise InputError(
                f"{names[1]}: {sizes[1]} lines, but {names[0]} has {sizes[0]}: expected the same number, each line the "
                f"translation of the same line of the other file; check that both are complete"
            )
        self.size: int = sizes[0]
        self.hashes = tuple(hashes)

    def _read_once(self, file: TextFile, path: str, joined: bool) -> int:
        copy: Any = None
        if path == STANDARD:
            copy = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # deleted with this object
            self._copies.append(copy)
        self._paths.append(path if copy is None else copy.name)
        lines = 0
        for chunk in file:
            if joined:
                _check_joined(chunk, file.name, lines)
            lines += chunk.count(b"\n")
            if copy is not None:
                copy.write(chunk)
        if copy is not None:
            copy.flush()
        return lines

    def __iter__(self) -> Iterator[TokenPair]:
        texts = [token_lines(path) for path in self._paths]
        lines = zip(*texts) if len(texts) == 2 else map(_split, texts[0])
        for source, target in lines:
            yield [token.decode() for token in source], [token.decode() for token in target]


def _check_joined(chunk: bytes, name: str, before: int) -> None:
    for number, line in enumerate(chunk.split(b"\n")[:-1], before + 1):
        count = line.split().count(SEPARATOR)
        if count != 1 and line.strip():
            raise InputError(
                f"{name}:{number}: {count} separators |||: expected one, SOURCE ||| TARGET; if ||| is part of the "
                f"text, give source and target as two files (--source-text, --target-text)"
            )


def _split(tokens: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    if not tokens:
        return [], []
    middle = tokens.index(SEPARATOR)
    return tokens[:middle], tokens[middle + 1 :]


class Segmenter:
    """Cuts words into the subwords of a model, and tracks which word each subword is from.

    Args:
        codes: file of subword-nmt codes; None: the text is in subwords already, and ``mark`` shows the words.
        mark: one of alignment_eval.maps.subwords.MARKS.

    Raises:
        InputError: the codes cannot be read, or subword-nmt is not installed.
    """

    def __init__(self, codes: Optional[str], mark: str = "none") -> None:
        self._bpe = None if codes is None else read_bpe(codes)
        self._mark = mark

    def __call__(self, tokens: Tokens) -> tuple[Tokens, NDArray[np.int32]]:
        """The subwords of a sentence, and the index of each subword's word, from 0."""
        if self._bpe is None:
            return tokens, word_indices(tokens, self._mark)
        pieces = [self._bpe.segment_tokens([token]) for token in tokens]
        counts = np.array([len(of_word) for of_word in pieces], dtype=np.int32)
        words = np.repeat(np.arange(len(tokens), dtype=np.int32), counts)
        return list(itertools.chain.from_iterable(pieces)), words

    def words(self, tokens: Tokens) -> Tokens:
        """The words of a sentence that the indices of links refer to."""
        return tokens if self._bpe is not None else word_strings(tokens, word_indices(tokens, self._mark))

    def forget(self) -> None:
        """Clear the cache of subword-nmt, which otherwise keeps all words."""
        if self._bpe is not None:
            self._bpe.cache = {}  # a new one: another thread may be reading the old one
