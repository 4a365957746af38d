"""Sentence pairs as they are given, of files or lists, and what a model's pipelines read of them."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, NamedTuple, Union

import pyarrow as pa

from alignment_eval.errors import InputError, printable, shown, warn_user
from alignment_eval.files import STANDARD, writing_errors
from alignment_eval.reading import ForeignFile, TextFile, content_hash, file_hash, file_state, is_tabbed, split_joined
from alignment_eval.transfer.pieces import Strings
from fairseq_norm_plugin.text.pair import SentencePair, TextPipeline, with_copies

_TEXT = ("source", "target")
_ADVICE = "give Parquet files with the columns source and target (text), and perhaps id (whole numbers or text)"
#: Rows that are decoded together.
_BATCH = 10_000
#: The words of each line of one side, if they are given.
GivenWords = Union[Iterable[Sequence[str]], None]


class RawPair(NamedTuple):
    """A sentence pair as it is given.

    Attributes:
        id: its id, or its number, from 0.
        source: the source line, with its markup.
        target: the target line, or its sentences.
        words: of source and target, if they are given.
    """

    id: int | str
    source: str
    target: str | Sequence[str] = ""
    words: tuple[Sequence[str] | None, Sequence[str] | None] = (None, None)


@dataclass(frozen=True, eq=False)
class Text:
    """Sentence pairs that can be read again and again.

    Attributes:
        names: of source and target: files, or lists.
        word_names: where the words of source and target are given; where they are not, as ``names``.
        size: the number of pairs.
        hashes: hashes of the content.
        pairs: reads them, in their order.
        in_files: whether they are lines of files, which count from 1.
        text_ids: whether the ids are text.
        states: what changes when one of the files does.
        copies: temporary files, which are deleted with this object.
    """

    names: tuple[str, str]
    word_names: tuple[str, str]
    size: int
    hashes: tuple[str, ...]
    pairs: Callable[[], Iterable[RawPair]]
    in_files: bool = True
    text_ids: bool = False
    states: Mapping[str, tuple[int, ...] | None] = field(default_factory=dict)
    copies: Sequence[Any] = ()

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say."""
        for path, state in self.states.items():
            if file_state(path) != state:
                raise InputError(f"{path}: the text was changed while it was read; leave it, and start again")

    def some(self, numbers: Sequence[int]) -> list[tuple[int, RawPair]]:
        """The pairs of these numbers, ascending, with them."""
        wanted = {*numbers}
        read = itertools.islice(enumerate(self.pairs()), max(wanted, default=-1) + 1)
        return [(number, pair) for number, pair in read if number in wanted]


class PairReader:
    """Reads the raw pairs of a text as the pipelines of a model, of source and target, do.

    Args:
        text: the text; where only single pairs are read, what messages name of it is enough.
        pipelines: of source and target.
        strings: what is not translated: raw text has its copies (:func:`with_copies`); None: nothing.
        plain: takes the markup out of a source line; ``Line.marked`` still has it; None: there is none.
    """

    def __init__(
        self,
        text: Text,
        pipelines: tuple[TextPipeline, TextPipeline],
        strings: Strings | None = None,
        plain: Callable[[str], str] | None = None,
    ) -> None:
        self.text, self._pipelines, self._plain = text, pipelines, plain
        #: Those of raw text.
        self.strings = strings if all(pipeline.reads_raw for pipeline in pipelines) else None

    def read(self, number: int, raw: RawPair) -> SentencePair:
        """The pair with this number, from 0."""
        sides = []
        for which, line in enumerate((self.source_of(number, raw), raw.target)):
            with self._errors_at(self.text.word_names[which], number):
                sides.append(self._pipelines[which].read(line, raw.words[which]))
        first = sides[0] if self._plain is None else replace(sides[0], marked=raw.source)
        pair = SentencePair(first, sides[1])
        return pair if self.strings is None else with_copies(pair, self.strings)

    def source_of(self, number: int, raw: RawPair) -> str:
        """The source line of a pair, without its markup."""
        if self._plain is None:
            return raw.source
        with self._errors_at(self.text.names[0], number):
            return self._plain(raw.source)

    def read_all(self) -> Iterator[SentencePair]:
        """All pairs of the text."""
        return itertools.starmap(self.read, enumerate(self.text.pairs()))

    @contextmanager
    def _errors_at(self, name: str, number: int) -> Iterator[None]:
        """Let messages of bad input begin with the place of a pair."""
        try:
            yield
        except InputError as error:
            place = f"{name}:{number + 1}" if self.text.in_files else f"{name}[{number}]"
            raise InputError(f"{place}: {error}") from error


def of_lists(
    sources: Sequence[str], targets: Sequence[str | Sequence[str]], words: tuple[GivenWords, GivenWords]
) -> Text:
    """The text of two lists of as many lines, whose words may be given."""
    given = [None if side is None else [list(line) for line in side] for side in words]
    for name, side in zip(_TEXT, given):
        if side is not None and len(side) != len(sources):
            raise InputError(
                f"{name}_words: words of {len(side)} sentences, but {len(sources)} pairs: expected as many"
            )
    own = zip(*(itertools.repeat(None, len(sources)) if side is None else side for side in given))
    pairs = [RawPair(*pair) for pair in zip(range(len(sources)), sources, targets, own)]
    hashed = [map("".join, side) for side in (sources, targets)]
    hashed += [map(" ".join, side) for side in given if side is not None]
    hashes = tuple(content_hash(f"{line}\n".encode() for line in side) for side in hashed)
    names = "source", "target"
    return Text(names, names, len(pairs), hashes, lambda: pairs, in_files=False)


# ---- files of text


def of_files(paths: Sequence[str], has_targets: bool = True) -> Text:
    """The text of two files, or of one whose lines hold both sides (split_joined); ``-`` is standard input.

    Without targets, one file has the sources.  The files are read once at the beginning: line counts, encoding, hashes.
    Standard input and pipes are copied to a temporary file.
    """
    states = {path: file_state(path) for path in paths}
    files = [_FileOfLines(path, joined=has_targets and len(paths) == 1) for path in paths]
    if len({file.size for file in files}) > 1:
        first, second = files
        raise InputError(
            f"{second.name}: {second.size} lines, but {first.name} has {first.size}: expected the translation of each "
            f"line"
        )

    def pairs() -> Iterator[RawPair]:
        for number, lines in enumerate(zip(*(file.lines() for file in files))):
            yield RawPair(number, *(line.decode() for of_file in lines for line in of_file))

    names, hashes = (files[0].name, files[-1].name), tuple(file.hash for file in files)
    return Text(names, names, files[0].size, hashes, pairs, states=states, copies=[file.copy for file in files])


class _FileOfLines:
    """A file that was read once; ``joined``: its lines hold source and target."""

    def __init__(self, path: str, joined: bool) -> None:
        file = TextFile(path)
        self.name, self.size, self._joined, self._tabbed = file.name, 0, joined, False
        self.copy: Any = None
        if path == STANDARD or Path(path).is_fifo():  # which can be read only once
            self.copy = NamedTemporaryFile(prefix="align-")  # noqa: SIM115  # deleted with the text
        self._path = path if self.copy is None else self.copy.name
        longer, example = 0, ""
        for chunk in file:
            if not self.size:
                self._tabbed = joined and is_tabbed(file.name, chunk)
            for number, line in enumerate(chunk.split(b"\n")[:-1], self.size + 1) if joined else ():
                first, second = split_joined(line, f"{file.name}:{number}", self._tabbed)
                if self._tabbed and line.count(b"\t") > 1:
                    longer += 1
                    example = example or f"in line {number} {shown(first.decode())} and {shown(second.decode())}"
            self.size += chunk.count(b"\n")
            if self.copy is not None:
                with writing_errors(self.copy.name):
                    self.copy.write(chunk)
                    self.copy.flush()
        self.hash = file.hash
        if longer:
            warn_user(
                f"{file.name}: lines of more than two columns: {longer}; source and target are in the first two, "
                f"{example}; if these are others, cut them out (cut -f)"
            )

    def lines(self) -> Iterator[tuple[bytes, ...]]:
        """Each line, or its source and target."""
        for _, line in TextFile(self._path).lines():
            yield split_joined(line, self.name, self._tabbed) if self._joined else (line,)


def with_words(text: Text, files: tuple[str | None, str | None]) -> Text:
    """The same text, whose words are given in files, of source and target; None: by the pipeline."""
    states, hashes = {**text.states}, text.hashes
    for name in filter(None, files):
        states[name] = file_state(name)  # before it is read for the first time
        file = TextFile(name)
        lines = sum(chunk.count(b"\n") for chunk in file)
        if lines != text.size:
            raise InputError(f"{name}: {lines} lines, but the text has {text.size}: expected the words of each")
        hashes = (*hashes, file.hash)

    def words_in(name: str | None) -> Iterator[Sequence[str] | None]:
        return itertools.repeat(None) if name is None else (line.decode().split() for _, line in TextFile(name).lines())

    def pairs() -> Iterator[RawPair]:
        return (pair._replace(words=own) for pair, own in zip(text.pairs(), zip(*map(words_in, files))))

    names = files[0] or text.names[0], files[1] or text.names[1]
    return replace(text, word_names=names, hashes=hashes, states=states, pairs=pairs)


# ---- Parquet


def of_parquet(place: str) -> Text:
    """The text of the columns ``source`` and ``target`` of Parquet files, in the order of the files' names.

    The files at ``place`` are read once at the beginning (columns, nulls, hashes), and again as often as needed.
    """
    paths = parquet_files(place)
    states = {path: file_state(path) for path in paths}
    types = [_check_columns(path) for path in paths]
    for path, type_ in zip(paths, types):
        if type_ != types[0]:
            raise _foreign(path).error(
                f"column id has type {type_}, but {types[0]} in {paths[0]}: expected the same in all files"
            )
    columns = [*_TEXT, *(["id"] if types[0] is not None else [])]
    size = sum(_check_rows(path, columns) for path in paths)
    if not size:
        raise InputError(f"{place}: no rows: expected a sentence pair in each")
    hashes = tuple(file_hash(path) for path in paths)
    text_ids = types[0] is not None and _is_text(types[0])
    pairs = partial(_rows, paths, columns)
    return Text((place, place), (place, place), size, hashes, pairs, text_ids=text_ids, states=states)


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


def _rows(paths: Sequence[str], columns: Sequence[str]) -> Iterator[RawPair]:
    numbers = itertools.count()
    for path in paths:
        for batch in _batches(path, columns):
            sides = [batch[name].to_pylist() for name in _TEXT]
            ids = batch["id"].to_pylist() if "id" in columns else itertools.islice(numbers, len(batch))
            yield from map(RawPair, ids, *sides)


def _check_columns(path: str) -> pa.DataType | None:
    """Check the columns of a file; the type of the column ``id``, None without such a column."""
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


def _batches(path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with _foreign(path).parquet() as file:
        yield from file.iter_batches(_BATCH, columns=list(columns))


def _check_rows(path: str, columns: Sequence[str]) -> int:
    """Check the rows of a file, and return their number."""
    rows = 0
    for batch in _batches(path, columns):
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
