"""Sentence pairs read from Parquet files."""

from __future__ import annotations

import copy
import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Optional

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.files import file_hash
from alignment_eval.schema.foreign import ForeignFile
from fairseq_norm_plugin.aligning.ids import duplicate_id
from fairseq_norm_plugin.aligning.spans import RowSpan, row_spans
from fairseq_norm_plugin.aligning.text import TokenPair, check_files, file_state
from fairseq_norm_plugin.output.alignment_table import GROUP_ROWS, row_numbers
from fairseq_norm_plugin.pipeline.pieces import MarkedPieces
from fairseq_norm_plugin.pipeline.text import TextPipeline

_TEXT = ("source", "target")
_ADVICE = "give Parquet files with the columns source and target (text), and id (whole numbers or text) if there is one"
#: Rows that are decoded together.
_ROWS = 10_000


class ParquetText:
    """Sentence pairs in the columns ``source`` and ``target`` of Parquet files, in the order of the files' names.

    The files are read once at the beginning (columns, nulls, ids, hashes), and again batch by batch in each iteration.

    Args:
        place: a file, a directory of such files, or a glob such as ``corpus/*.parquet``.  In a directory, names that
            begin with ``_`` or ``.`` are ignored, as Spark and pandas do.

    Attributes:
        size: the number of pairs.
        hashes: hashes of the files' content.

    Raises:
        InputError: there is no such file; a file in the directory is none of Parquet, is damaged, lacks a column or has
            one of another type, or holds a null; an id occurs twice; or there are no pairs.
    """

    def __init__(self, place: str) -> None:
        self._pipelines = (TextPipeline(MarkedPieces("none")),) * 2
        self._paths = _files(place)
        self._states = [file_state(path) for path in self._paths]
        self._id_type: Optional[pa.DataType] = None
        for path in self._paths:
            self._check_columns(path)
        self._rows = [_check_rows(path) for path in self._paths]
        self.hashes = tuple(file_hash(path) for path in self._paths)
        self.size = sum(self._rows)
        if not self.size:
            raise InputError(f"{place}: no rows: expected a sentence pair in each")
        self._check_ids()

    def through(self, pipelines: tuple[TextPipeline, TextPipeline]) -> ParquetText:
        """The same pairs, whose text is read by the pipelines of source and target."""
        text = copy.copy(self)
        text._pipelines = pipelines
        return text

    def check_unchanged(self) -> None:
        """Check that the files still hold what their hashes say.

        Raises:
            InputError: one was changed since the beginning.
        """
        check_files(self._paths, self._states, self.hashes)

    def spans(self, ends: Sequence[int]) -> list[RowSpan]:
        """The stretches of rows that end before each of ``ends``, for other processes."""
        return row_spans(list(zip(self._paths, self._rows)), ends)

    def ids(self) -> Iterator[pa.Array]:
        """The ids of all pairs, batch by batch: the column ``id``, or the number of each row, from 0."""
        if self._id_type is None:
            yield from row_numbers(self.size)
            return
        for path in self._paths:
            for batch in _batches(path, ["id"], GROUP_ROWS):
                yield batch["id"].cast(pa.string() if _is_text(self._id_type) else pa.int64())

    def __iter__(self) -> Iterator[TokenPair]:
        for path in self._paths:
            for batch in _batches(path, list(_TEXT)):
                for pair in zip(*(batch[name].to_pylist() for name in _TEXT)):
                    source, target = (pipeline.read(line) for pipeline, line in zip(self._pipelines, pair))
                    yield source, target

    def _check_columns(self, path: str) -> None:
        file = _foreign(path)
        try:
            about = pq.ParquetFile(path)
            schema = about.schema_arrow
        except (OSError, pa.ArrowException) as error:
            raise file.error(printable(str(error), 200)) from error
        for name in _TEXT:
            if schema.names.count(name) != 1:
                found = ", ".join(shown(other) for other in schema.names)
                raise InputError(f"{path}: {_counted(schema.names.count(name))} {name} among {found}; {_ADVICE}")
            if not _is_text(schema.field(name).type):
                raise InputError(
                    f"{path}: column {name} has type {schema.field(name).type}, expected text (string); {_ADVICE}"
                )
        id_type = schema.field("id").type if "id" in schema.names else None
        whole = pa.types.is_integer(id_type) and id_type != pa.uint64() if id_type is not None else True
        if not (whole or _is_text(id_type)):
            raise InputError(f"{path}: column id has type {id_type}, expected whole numbers (int64) or text; {_ADVICE}")
        if path != self._paths[0] and id_type != self._id_type:
            raise file.error(
                f"column id has type {id_type}, but {self._id_type} in {self._paths[0]}: expected the same"
            )
        self._id_type = id_type

    def _check_ids(self) -> None:
        if self._id_type is not None and (found := duplicate_id(self.ids)):
            raise InputError(
                f"{self._paths[0]}{' …' if len(self._paths) > 1 else ''}: duplicate id {shown(found[0])} (rows "
                f"{found[1]} and {found[2]} of all files, from 0); give each pair an id of its own, or no column id"
            )


def _files(place: str) -> list[str]:
    path = Path(place)
    if path.is_dir():
        names = sorted(entry.name for entry in path.iterdir() if entry.name[0] not in "_.")
        if foreign := [name for name in names if not name.endswith(".parquet")]:
            raise InputError(
                f"{place}: the directory holds {shown(foreign[0])}, which does not end in .parquet; give a glob of the "
                f"files, such as '{place.rstrip('/')}/*.parquet'"
            )
        found = [str(path / name) for name in names]
    else:
        found = [place] if path.exists() else sorted(glob.glob(place))  # noqa: PTH207  # directory and pattern
    if not found:
        raise InputError(f"{place}: no such Parquet file, and no files of this directory or glob; check the path")
    return found


def _foreign(path: str) -> ForeignFile:
    return ForeignFile(path, "a Parquet file of sentence pairs", _ADVICE)


def _counted(columns: int) -> str:
    return f"{columns} columns" if columns else "no column"


def _batches(path: str, columns: Sequence[str], rows: int = _ROWS) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            yield from file.iter_batches(rows, columns=list(columns))
    except (OSError, pa.ArrowException) as error:
        raise _foreign(path).error(printable(str(error), 200)) from error


def _check_rows(path: str) -> int:
    """Check the rows of a file, and return their number."""
    names = set(pq.ParquetFile(path).schema_arrow.names)
    rows = 0
    for batch in _batches(path, [name for name in (*_TEXT, "id") if name in names]):
        try:
            batch.validate(full=True)
        except pa.ArrowException as error:
            raise _foreign(path).error(f"near row {rows}: {printable(str(error), 200)}") from error
        for name, column in zip(batch.schema.names, batch.columns):
            if column.null_count:
                row = rows + next(i for i, valid in enumerate(column.is_valid().to_pylist()) if not valid)
                raise _foreign(path).error(f"row {row}, from 0, has null as its {name}: expected a value in each row")
        rows += len(batch)
    return rows


def _is_text(type_: Any) -> bool:
    inner = type_.value_type if pa.types.is_dictionary(type_) else type_
    return any(check(inner) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))
