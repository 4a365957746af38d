"""Writes alignments with their text as rows: JSON lines and Parquet tables (docs/formats.md)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

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


def json_line(row: Mapping[str, Any]) -> str:
    """A row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


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
