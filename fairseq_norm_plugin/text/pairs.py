"""Sentence pairs read from files."""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa

from alignment_eval.errors import InputError
from alignment_eval.files import STANDARD
from alignment_eval.links.table import row_numbers
from alignment_eval.links.text import TextFile, split_joined
from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import Line, SentencePair, TextPipeline


class SentencePairs(ABC):
    """The sentence pairs of some files.  Each iteration reads them again, so memory does not grow with the text.

    Their words are what blanks separate, or what the pipelines of a model read (:meth:`through`).

    Attributes:
        name: the file of the source.
        size: the number of pairs.
        hashes: hashes of the files' content.
    """

    name: str
    size: int
    hashes: tuple[str, ...]

    def __init__(self) -> None:
        self._pipelines = (TextPipeline(MarkedPieces("none")),) * 2
        self._states: dict[str, tuple[int, ...] | None] = {}
        self._segmentations: tuple[str | None, str | None] = (None, None)
        self._plain: Callable[[str], str] | None = None

    def segmented(self, files: tuple[str | None, str | None]) -> SentencePairs:
        """The same pairs, whose words are given in files, of source and target; None: by the pipeline."""
        text = copy.copy(self)
        text._segmentations = files
        for name in filter(None, files):
            self._note(name)
            file = TextFile(name)
            lines = sum(chunk.count(b"\n") for chunk in file)
            if lines != self.size:
                raise InputError(f"{name}: {lines} lines, but the text has {self.size}: expected the words of each")
            text.hashes = (*text.hashes, file.hash.short)
        return text

    def marked_up(self, plain: Callable[[str], str]) -> SentencePairs:
        """The same pairs, whose source lines have markup; ``plain`` takes it out.  ``Line.given`` still has it."""
        text = copy.copy(self)
        text._plain = plain
        return text

    def scores(self) -> Iterator[float | None]:
        """The score of each target, if the model translated the source; else None."""
        return itertools.repeat(None, self.size)

    def through(self, pipelines: tuple[TextPipeline, TextPipeline]) -> SentencePairs:
        """The same pairs, whose lines are read by the pipelines of source and target."""
        text = copy.copy(self)
        text._pipelines = pipelines
        return text

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say."""
        for path, state in self._states.items():
            if _file_state(path) != state:
                raise InputError(f"{path}: the text was changed while it was read; leave it, and start again")

    def ids(self) -> Iterator[pa.Array]:
        """The id of each pair, batch by batch: its number, from 0."""
        return row_numbers(self.size)

    def __iter__(self) -> Iterator[SentencePair]:
        words = [_words_of(name) for name in self._segmentations]
        for number, (lines, *given) in enumerate(zip(self._lines(), *words), 1):
            source, target = map(_read, self._pipelines, self._without_markup(lines, number), given)
            yield SentencePair(source if self._plain is None else replace(source, given=lines[0]), target)

    def _without_markup(self, lines: tuple[str, str], number: int) -> tuple[str, str]:
        if self._plain is None:
            return lines
        try:
            return self._plain(lines[0]), lines[1]
        except InputError as error:
            raise InputError(f"{self.name}:{number}: {error}") from error

    def _note(self, path: str) -> None:
        """Note the state of a file before it is read for the first time."""
        self._states[path] = _file_state(path)

    @abstractmethod
    def _lines(self) -> Iterator[tuple[str, str]]:
        """Source and target of each pair."""


class ParallelText(SentencePairs):
    """Sentence pairs of two files, or of one file of ``source ||| target`` lines; ``-`` is standard input.

    The files are read once at the beginning: line counts, encoding, hashes.  Standard input and pipes are copied to a
    temporary file.
    """

    def __init__(self, paths: Sequence[str], joined: bool | None = None) -> None:
        super().__init__()
        self._paths: list[str] = []
        self._copies: list[Any] = []
        names, sizes, hashes = [], [], []
        for path in paths:
            file = TextFile(path)
            self._note(path)
            sizes.append(self._read_once(file, path, joined=len(paths) == 1 if joined is None else joined))
            names.append(file.name)
            hashes.append(file.hash.short)
        if len(set(sizes)) > 1:
            raise InputError(
                f"{names[1]}: {sizes[1]} lines, but {names[0]} has {sizes[0]}: expected the same number, each line the "
                f"translation of the same line of the other file; check that both are complete"
            )
        self.name, self.size = names[0], sizes[0]
        self.hashes = tuple(hashes)

    def _read_once(self, file: TextFile, path: str, joined: bool) -> int:
        copied: Any = None
        if path == STANDARD or Path(path).is_fifo():  # which can be read only once
            copied = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # deleted with this object
            self._copies.append(copied)
        self._paths.append(path if copied is None else copied.name)
        lines = 0
        for chunk in file:
            for number, line in enumerate(chunk.split(b"\n")[:-1], lines + 1) if joined else ():
                split_joined(line, f"{file.name}:{number}")
            lines += chunk.count(b"\n")
            if copied is not None:
                copied.write(chunk)
        if copied is not None:
            copied.flush()
        return lines

    def _lines(self) -> Iterator[tuple[str, str]]:
        texts = [_lines_of(path) for path in self._paths]
        pairs = zip(*texts) if len(texts) == 2 else (split_joined(line, self.name) for line in texts[0])
        return ((source.decode(), target.decode()) for source, target in pairs)


class TranslatedText(ParallelText):
    """The lines of a source file, with the translations that a model gives; ``-`` is standard input.

    Attributes:
        translations: gives each line's score and translation; assigned once the model has translated.
    """

    translations: Callable[[], Iterator[Sequence[Any]]]

    def __init__(self, path: str) -> None:
        super().__init__([path], joined=False)

    def sources(self) -> Iterator[str]:
        """The lines to translate, without markup."""
        for number, line in enumerate(_lines_of(self._paths[0]), 1):
            yield self._without_markup((line.decode(), ""), number)[0]

    def scores(self) -> Iterator[float | None]:
        """The score of each translation."""
        return (score for score, _ in self.translations())

    def _lines(self) -> Iterator[tuple[str, str]]:
        sources = (line.decode() for line in _lines_of(self._paths[0]))
        return zip(sources, (line for _, line in self.translations()))


def _file_state(path: str) -> tuple[int, ...] | None:
    """What changes when a regular file does; None for anything else."""
    if not Path(path).is_file():
        return None
    status = Path(path).stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _lines_of(path: str) -> Iterator[bytes]:
    for chunk in TextFile(path):
        yield from chunk.split(b"\n")[:-1]


#: Where the words of a line are given: the file, the number of the line, its words.
_GivenWords = tuple[str, int, list[str]]


def _words_of(name: str | None) -> Iterator[_GivenWords | None]:
    """The given words of each line of a file; endless None without a file."""
    if name is None:
        yield from itertools.repeat(None)
    else:
        yield from ((name, number, line.decode().split()) for number, line in enumerate(_lines_of(name), 1))


def _read(pipeline: TextPipeline, line: str, given: _GivenWords | None) -> Line:
    if given is None:
        return pipeline.read(line)
    name, number, words = given
    try:
        return pipeline.read(line, words)
    except InputError as error:
        raise InputError(f"{name}:{number}: {error}") from error
