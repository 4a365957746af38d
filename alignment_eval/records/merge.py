"""Word alignments of a run: parts with the links of each sentence, which merge into one file in corpus order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from alignment_eval.records.manifest import RunInfo, finished_run, open_part, read_columns

#: Columns of a part: the links are a Pharaoh line; it is empty if ``status`` says why there are none.
COLUMNS = [pa.field(name, pa.string(), nullable=False) for name in ("status", "links")]
COLUMNS.insert(0, pa.field("id", pa.int64(), nullable=False))
_LINE = r"^(\d+-\d+(:[\d.e-]+)?( \d+-\d+(:[\d.e-]+)?)*)?$"


@dataclass(frozen=True)
class MergedAlignments:
    """The word alignments of a finished run: its manifest, the number of sentences that cannot be aligned, and lines.

    ``lines`` has the Pharaoh line of each sentence, in corpus order.
    """

    info: RunInfo
    skipped: int
    lines: pa.ChunkedArray

    def __iter__(self) -> Iterator[str]:
        for chunk in self.lines.chunks:
            yield from (line.as_py() for line in chunk)


def merged(directory: str | Path) -> MergedAlignments:
    """The alignments of a finished run; they are all in memory."""
    parts = finished_run(directory, "alignments")
    tables = []
    for part in parts:
        with open_part(part.path) as (file, opened):
            table = read_columns(opened, pa.schema(COLUMNS), file)
            if not pc.all(pc.match_substring_regex(table["links"], _LINE), min_count=0).as_py():
                raise file.error("column links has a line that is not i-j i-j …")
            if pc.any(pc.and_(pc.not_equal(table["status"], "ok"), pc.not_equal(table["links"], ""))).as_py():
                raise file.error("a sentence has links, but its status says why it has none")
            schema = pa.schema(COLUMNS)  # a copy by another program may have another order and nulls allowed
            tables.append(table.select(schema.names).cast(schema))
    table = pa.concat_tables(tables).sort_by("id")
    skipped = pc.sum(pc.not_equal(table["status"], "ok"), min_count=0).as_py()
    return MergedAlignments(parts[0].info, skipped, table["links"])
