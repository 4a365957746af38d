"""Writes word alignments as a Parquet table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

#: The ending of a file that is written as a table.
ENDING = ".parquet"
#: Rows that are written together, as a row group.
GROUP_ROWS = 100_000


def row_numbers(size: int) -> Iterator[pa.Array]:
    """The numbers from 0 to ``size``, batch by batch: ids of pairs that have none."""
    for start in range(0, size, GROUP_ROWS):
        yield pa.array(range(start, min(start + GROUP_ROWS, size)), pa.int64())


def write_table(path: Path, rows: Iterator[tuple[str, str]], ids: Iterable[pa.Array], confidences: bool) -> None:
    """Write the columns ``id``, ``links`` (``i-j i-j …``), ``confidences`` (one for each link) and ``status``.

    Memory does not grow with the table.

    Args:
        path: a file that is replaced.
        rows: the status and the links of each pair, in order; the links are ``i-j:p i-j:p …`` if they have confidences.
        ids: the id of each pair, batch by batch; int64 or string.
        confidences: whether the links have confidences; else that column is null.
    """
    writer = None
    for batch in ids:
        table = _table(batch, list(itertools.islice(rows, len(batch))), confidences)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _table(ids: pa.Array, rows: Sequence[tuple[str, str]], confidences: bool) -> pa.Table:
    links = [[word.partition(":") for word in line.split()] for _, line in rows]
    values = [[float(confidence) for *_, confidence in words] if confidences else None for words in links]
    columns = {
        "links": pa.array([" ".join(link for link, *_ in words) for words in links], pa.string()),
        "confidences": pa.array(values, pa.list_(pa.float64())),
        "status": pa.array([status for status, _ in rows], pa.string()),
    }
    return pa.table({"id": ids, **columns})
