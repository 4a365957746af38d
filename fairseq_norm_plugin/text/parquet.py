"""Sentence pairs read from Parquet files."""

from __future__ import annotations

import glob
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.files import file_hash
from alignment_eval.links.table import GROUP_ROWS, row_numbers
from alignment_eval.schema import ForeignFile
from fairseq_norm_plugin.text.pairs import SentencePairs

_TEXT = ("source", "target")
_ADVICE = "give Parquet files with the columns source and target (text), and perhaps id (whole numbers or text)"
#: Rows that are decoded together.
_BATCH = 10_000


class ParquetText(SentencePairs):
    """Sentence pairs in the columns ``source`` and ``target`` of Parquet files, in the order of the files' names.

    The files are read once at the beginning (columns, nulls, hashes), and again batch by batch in each iteration.

    Args:
        place: as for :func:`parquet_files`.
    """

    def __init__(self, place: str) -> None:
        super().__init__()
        self.name, self._paths = place, parquet_files(place)
        for path in self._paths:
            self._note(path)
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
    """The Parquet files at a place, in the order of their names.

    Args:
        place: a file, a directory of such files, or a glob such as ``corpus/*.parquet``.  In a directory, names that
            begin with ``_`` or ``.`` are ignored, as Spark and pandas do.
    """
    path = Path(place)
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.name[0] not in "_.")
        if foreign := [name for name in names if not name.endswith(".parquet")]:
            raise InputError(
                f"{place}: the directory holds {shown(foreign[0])}, which does not end in .parquet; give a glob of the "
                f"files, such as '{place.rstrip('/')}/*.parquet'"
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
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as error:
        raise _foreign(path).error(printable(str(error), 200)) from error
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
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield from file.iter_batches(rows, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise _foreign(path).error(printable(str(error), 200)) from error


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
