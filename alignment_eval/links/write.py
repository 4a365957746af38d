"""Writes alignments: lines with their signature beside them, and Parquet tables (docs/formats.md)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.files import check_new, is_stream, json_line, write_lines
from alignment_eval.signature import fields_of, signature_file

_PAIRS = pa.list_(pa.list_(pa.int32()))
#: The types in Arrow of the columns of a table.
TYPES = {
    "source": pa.string(),
    "target": pa.string(),
    "source_spans": _PAIRS,
    "target_spans": _PAIRS,
    "links": _PAIRS,
    "confidences": pa.list_(pa.float64()),
    "status": pa.string(),
    "score": pa.float64(),
}
#: Rows that are written together, as a row group.
GROUP_ROWS = 100_000


def check_signed(path: str | Path, overwrite: bool, parents: bool = False) -> None:
    """Check, before the work, that :func:`write_signed` can write; arguments as for check_new."""
    for file in (path,) if is_stream(path) else (path, signature_file(path)):
        check_new(file, overwrite, parents=parents)


def write_signed(path: str | Path, lines: Iterable[str], signature: str, resumed: bool = False) -> None:
    """Write lines, and beside their file its ``signature``, if it is not empty, as a line of JSON."""
    write_lines(path, lines, resumed)
    if signature and not is_stream(path):
        write_lines(signature_file(path), [json_line(fields_of(signature))], resumed)


def row_numbers(size: int) -> Iterator[pa.Array]:
    """The numbers from 0 to ``size``, batch by batch: ids of pairs that have none."""
    for start in range(0, size, GROUP_ROWS):
        yield pa.array(range(start, min(start + GROUP_ROWS, size)), pa.int64())


def write_table(
    path: Path,
    rows: Iterable[Mapping[str, Any]],
    ids: Iterable[pa.Array],
    types: Mapping[str, pa.DataType] = TYPES,
    signature: str = "",
) -> None:
    """Write the columns of ``types`` of each pair as a Parquet table; memory does not grow with it.

    ``ids`` has the id of each pair, batch by batch, int64 or string.  The file's metadata keep the ``signature``.
    """
    of_pairs = iter(rows)
    writer = None
    for batch in ids:
        group = list(itertools.islice(of_pairs, len(batch)))
        columns = {name: pa.array([row[name] for row in group], type_) for name, type_ in types.items()}
        table = pa.table({"id": batch, **columns}).replace_schema_metadata({"signature": signature})
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()
