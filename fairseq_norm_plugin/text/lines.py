"""Sentence pairs read from text files and from Parquet files."""

from __future__ import annotations

import copy
import glob
import itertools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pyarrow as pa

from alignment_eval.errors import InputError, printable, shown, warn_user
from alignment_eval.files import STANDARD, writing_errors
from alignment_eval.links.files import GROUP_ROWS, row_numbers
from alignment_eval.reading import ForeignFile, TextFile, file_hash, file_state, is_tabbed, split_joined
from fairseq_norm_plugin.text.pair import SentencePair, with_copies
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from fairseq_norm_plugin.text.tokenise import TextPipeline
from fairseq_norm_plugin.text.tokens import at

_TEXT = ("source", "target")
_ADVICE = "give Parquet files with the columns source and target (text), and perhaps id (whole numbers or text)"
#: Rows that are decoded together.
_BATCH = 10_000


class SentencePairs(ABC):
    """The sentence pairs of some files.  Each iteration reads them again, so memory does not grow with the text.

    Their words are what whitespace separates, or what the pipelines of a model read (:meth:`through`).

    Attributes:
        name: the file of the source.
        size: the number of pairs.
        hashes: hashes of the files' content.
        strings: strings that are not translated, whose copies are linked; None: there are none.
    """

    name: str
    size: int
    hashes: tuple[str, ...]

    def __init__(self) -> None:
        self._pipelines = (TextPipeline(MarkedSubwords("none")),) * 2
        self._states: dict[str, tuple[int, ...] | None] = {}
        self._segmentations: tuple[str | None, str | None] = (None, None)
        self._plain: Callable[[str], str] | None = None
        self.strings: re.Pattern[str] | None = None

    def segmented(self, files: tuple[str | None, str | None]) -> SentencePairs:
        """The same pairs, whose words are given in files, of source and target; None: by the pipeline."""
        text = copy.copy(self)
        text._segmentations = files
        for name in filter(None, files):
            self._states[name] = file_state(name)  # before it is read for the first time
            file = TextFile(name)
            lines = sum(chunk.count(b"\n") for chunk in file)
            if lines != self.size:
                raise InputError(f"{name}: {lines} lines, but the text has {self.size}: expected the words of each")
            text.hashes = (*text.hashes, file.hash)
        return text

    def through(
        self,
        pipelines: tuple[TextPipeline, TextPipeline],
        strings: re.Pattern[str] | None = None,
        plain: Callable[[str], str] | None = None,
    ) -> SentencePairs:
        """The same pairs, whose lines are read by the pipelines of source and target.

        Args:
            pipelines: of source and target.
            strings: what is not translated; raw text then has its copies (:func:`with_copies`).
            plain: takes the markup out of a source line; ``Line.marked`` still has it.
        """
        text = copy.copy(self)
        text._pipelines, text._plain = pipelines, plain
        text.strings = strings if all(pipeline.reads_raw for pipeline in pipelines) else None
        return text

    def scores(self) -> Iterator[float | None]:
        """The score of each target, if the model translated the source; else None."""
        return itertools.repeat(None, self.size)

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say."""
        for path, state in self._states.items():
            if file_state(path) != state:
                raise InputError(f"{path}: the text was changed while it was read; leave it, and start again")

    def ids(self) -> Iterator[pa.Array]:
        """The id of each pair, batch by batch: its number, from 0."""
        return row_numbers(self.size)

    def __iter__(self) -> Iterator[SentencePair]:
        return (pair for _, pair in self.numbered())

    def numbered(self, wanted: Collection[int] | None = None) -> Iterator[tuple[int, SentencePair]]:
        """The pairs with their numbers, from 0: those that are wanted, or all."""
        words = [
            itertools.repeat(None) if name is None else (line for _, line in TextFile(name).lines())
            for name in self._segmentations
        ]
        end = None if wanted is None else max(wanted, default=-1) + 1
        for number, (lines, *given) in itertools.islice(enumerate(zip(self._lines(), *words)), end):
            if wanted is not None and number not in wanted:
                continue
            sides = []
            raw = self._without_markup(lines[0], number + 1), lines[1]
            for pipeline, line, name, own in zip(self._pipelines, raw, self._segmentations, given):
                if own is None:
                    sides.append(pipeline.read(line))
                else:
                    with at(f"{name}:{number + 1}"):
                        sides.append(pipeline.read(line, own.decode().split()))
            pair = SentencePair(sides[0] if self._plain is None else replace(sides[0], marked=lines[0]), sides[1])
            yield number, pair if self.strings is None else with_copies(pair, self.strings)

    def _without_markup(self, source: str, number: int) -> str:
        if self._plain is None:
            return source
        with at(f"{self.name}:{number}"):
            return self._plain(source)

    @abstractmethod
    def _lines(self) -> Iterator[tuple[str, str]]:
        """Source and target of each pair."""


class ParallelText(SentencePairs):
    """Sentence pairs of two files, or of one whose lines hold both (split_joined); ``-`` is standard input.

    The files are read once at the beginning: line counts, encoding, hashes.  Standard input and pipes are copied to a
    temporary file.
    """

    def __init__(self, paths: Sequence[str], joined: bool | None = None) -> None:
        super().__init__()
        self._paths: list[str] = []
        self._tabbed = False
        self._copies: list[Any] = []
        names, sizes, hashes = [], [], []
        for path in paths:
            file = TextFile(path)
            self._states[path] = file_state(path)
            sizes.append(self._read_once(file, path, joined=len(paths) == 1 if joined is None else joined))
            names.append(file.name)
            hashes.append(file.hash)
        if len(set(sizes)) > 1:
            raise InputError(
                f"{names[1]}: {sizes[1]} lines, but {names[0]} has {sizes[0]}: expected the translation of each line"
            )
        self.name, self.size = names[0], sizes[0]
        self.hashes = tuple(hashes)

    def _read_once(self, file: TextFile, path: str, joined: bool) -> int:
        copied: Any = None
        if path == STANDARD or Path(path).is_fifo():  # which can be read only once
            copied = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # deleted with this object
            self._copies.append(copied)
        self._paths.append(path if copied is None else copied.name)
        lines, longer, example = 0, 0, ""
        for chunk in file:
            if not lines:
                self._tabbed = joined and is_tabbed(file.name, chunk)
            for number, line in enumerate(chunk.split(b"\n")[:-1], lines + 1) if joined else ():
                first, second = split_joined(line, f"{file.name}:{number}", self._tabbed)
                if self._tabbed and line.count(b"\t") > 1:
                    longer += 1
                    example = example or f"in line {number} {shown(first.decode())} and {shown(second.decode())}"
            lines += chunk.count(b"\n")
            if copied is not None:
                with writing_errors(copied.name):
                    copied.write(chunk)
                    copied.flush()
        if longer:
            warn_user(
                f"{file.name}: lines of more than two columns: {longer}; source and target are in the first two, "
                f"{example}; if these are others, cut them out (cut -f)"
            )
        return lines

    def _lines(self) -> Iterator[tuple[str, str]]:
        texts = [(line for _, line in TextFile(path).lines()) for path in self._paths]
        pairs = zip(*texts) if len(texts) == 2 else (split_joined(line, self.name, self._tabbed) for line in texts[0])
        return ((source.decode(), target.decode()) for source, target in pairs)


class TranslatedText(ParallelText):
    """The lines of a source file, with the translations that a model gives; ``-`` is standard input.

    Attributes:
        translations: gives each line's score and translation, or the sentences of the translation; assigned once the
            model has translated.
    """

    translations: Callable[[], Iterator[Sequence[Any]]]

    def __init__(self, path: str) -> None:
        super().__init__([path], joined=False)

    def sources(self) -> Iterator[str]:
        """The lines to translate, without markup."""
        for number, line in TextFile(self._paths[0]).lines():
            yield self._without_markup(line.decode(), number)

    def scores(self) -> Iterator[float | None]:
        """The score of each translation."""
        return (score for score, _ in self.translations())

    def _lines(self) -> Iterator[tuple[str, str]]:
        sources = (line.decode() for _, line in TextFile(self._paths[0]).lines())
        return zip(sources, (line for _, line in self.translations()))


class ParquetText(SentencePairs):
    """Sentence pairs in the columns ``source`` and ``target`` of Parquet files, in the order of the files' names.

    The files at ``place`` are read once at the beginning (columns, nulls, hashes), and again in each iteration.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self.name, self._paths = place, parquet_files(place)
        for path in self._paths:
            self._states[path] = file_state(path)
        self._id_type = type_of_ids(self._paths)
        self.size = sum(_check_rows(path, self._id_type is not None) for path in self._paths)
        self.hashes = tuple(file_hash(path) for path in self._paths)
        if not self.size:
            raise InputError(f"{place}: no rows: expected a sentence pair in each")

    def ids(self) -> Iterator[pa.Array]:
        """The ids of all pairs, batch by batch: the column ``id``, or the number of each row, from 0."""
        if self._id_type is None:
            yield from row_numbers(self.size)
            return
        for path in self._paths:
            for batch in _batches(path, ["id"], GROUP_ROWS):
                yield batch["id"].cast(pa.string() if _is_text(self._id_type) else pa.int64())

    def _lines(self) -> Iterator[tuple[str, str]]:
        return _rows(self._paths)


def parquet_files(place: str) -> list[str]:
    """The Parquet files at a place, a file, a directory or a glob, in the order of their names.

    In a directory, names that begin with ``_`` or ``.`` are ignored, as Spark and pandas do.
    """
    path = Path(place)
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.name[0] not in "_.")
        if foreign := [name for name in names if not name.endswith(".parquet")]:
            raise InputError(
                f"{place}: holds {shown(foreign[0])}, not .parquet; give a glob, '{place.rstrip('/')}/*.parquet'"
            )
        paths = [str(path / name) for name in names]
    else:
        paths = [place] if path.exists() else sorted(glob.glob(place))  # noqa: PTH207  # directory and pattern
    if not paths:
        raise InputError(f"{place}: no such Parquet file, and no files of this directory or glob; check the path")
    return paths


def type_of_ids(paths: Sequence[str]) -> pa.DataType | None:
    """Check the columns of files of sentence pairs; the type of the column ``id``, None without such a column."""
    types = [_check_columns(path) for path in paths]
    for path, type_ in zip(paths, types):
        if type_ != types[0]:
            raise _foreign(path).error(
                f"column id has type {type_}, but {types[0]} in {paths[0]}: expected the same in all files"
            )
    return types[0]


def first_pairs(paths: Sequence[str], count: int) -> list[tuple[str, str]]:
    """The first source-target pairs of files, without those that have a null."""
    return list(itertools.islice((row for row in _rows(paths) if None not in row), count))


def _rows(paths: Sequence[str]) -> Iterator[Any]:
    for path in paths:
        for batch in _batches(path, _TEXT):
            yield from zip(*(batch[name].to_pylist() for name in _TEXT))


def _check_columns(path: str) -> pa.DataType | None:
    with _foreign(path).parquet() as file:
        schema = file.schema_arrow
    for name in _TEXT:
        if (count := schema.names.count(name)) != 1:
            columns = ", ".join(shown(other) for other in schema.names)
            number = f"{count} columns" if count else "no column"
            raise InputError(f"{path}: {number} {name} among {columns}; {_ADVICE}")
        if not _is_text(schema.field(name).type):
            raise InputError(
                f"{path}: column {name} has type {schema.field(name).type}, expected text (string); {_ADVICE}"
            )
    if "id" not in schema.names:
        return None
    type_ = schema.field("id").type
    if not (_is_text(type_) or (pa.types.is_integer(type_) and type_ != pa.uint64())):
        raise InputError(f"{path}: column id has type {type_}, expected whole numbers (int64) or text; {_ADVICE}")
    return type_


def _foreign(path: str) -> ForeignFile:
    return ForeignFile(path, "a Parquet file of sentence pairs", _ADVICE)


def _batches(path: str, columns: Sequence[str], rows: int = _BATCH) -> Iterator[pa.RecordBatch]:
    with _foreign(path).parquet() as file:
        yield from file.iter_batches(rows, columns=list(columns))


def _check_rows(path: str, ids: bool) -> int:
    """Check the rows of a file, and return their number."""
    rows = 0
    for batch in _batches(path, [*_TEXT, "id"] if ids else _TEXT):
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise _foreign(path).error(f"near row {rows}: {printable(str(error), 200)}") from error
        for name, column in zip(batch.schema.names, batch.columns):
            if column.null_count:
                row = rows + column.is_valid().to_pylist().index(False)
                raise _foreign(path).error(f"row {row}, from 0, has null as its {name}: expected a value in each row")
        rows += len(batch)
    return rows


def _is_text(type_: Any) -> bool:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(check(inner) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
