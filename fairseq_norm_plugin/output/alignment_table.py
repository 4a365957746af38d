"""Writes word alignments as a Parquet table."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

#: The ending of a file that is written as a table.
ENDING = ".parquet"
#: Rows that are written together, as a row group.
GROUP_ROWS = 100_000


def row_numbers(size: int) -> Iterator[pa.Array]:
    """The numbers from 0 to ``size``, batch by batch: ids of pairs that have none."""
    for start in range(0, size, GROUP_ROWS):
        yield pa.array(range(start, min(start + GROUP_ROWS, size)), pa.int64())


def write_table(path: Path, lines: Iterator[str], ids: Iterable[pa.Array], confidences: bool) -> None:
    """Write the columns ``id``, ``links`` (``i-j i-j …``) and ``confidences`` (one for each link, in their order).

    Memory does not grow with the table.

    Args:
        path: a file that is replaced.
        lines: the links of each pair, in order, ``i-j:p i-j:p …`` if they have confidences.
        ids: the id of each pair, batch by batch; int64 or string.
        confidences: whether the lines have confidences; else that column is null.
    """
    writer = None
    for batch in ids:
        table = _table(batch, pa.array(list(itertools.islice(lines, len(batch))), pa.string()), confidences)
        if writer is None:
            writer = pq.ParquetWriter(path, table.schema, compression="zstd", write_page_checksum=True)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _table(ids: pa.Array, lines: pa.Array, confidences: bool) -> pa.Table:
    type_ = pa.list_(pa.float64())
    links, values = lines, pa.nulls(len(lines), type_)
    if confidences:
        links = pc.replace_substring_regex(lines, ":[^ ]*", "")
        values = _numbers(pc.replace_substring_regex(lines, "[0-9]+-[0-9]+:", ""))
    return pa.table({"id": ids, "links": links, "confidences": values})


def _numbers(lines: pa.Array) -> pa.ListArray:
    """The numbers of each line, which blanks separate."""
    split = pc.split_pattern(lines, " ")
    lengths = pc.if_else(pc.equal(lines, ""), 0, pc.list_value_length(split))
    values = pc.cast(pc.filter(pc.list_flatten(split), pc.not_equal(pc.list_flatten(split), "")), pa.float64())
    offsets = pa.array([0, *itertools.accumulate(lengths.to_pylist())], pa.int32())
    return pa.ListArray.from_arrays(offsets, values)
