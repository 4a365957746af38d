"""Word alignments of a run: parts with the links of each sentence, which merge into one file in corpus order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from alignment_eval.records.manifest import Manifest, finished_run, open_part
from alignment_eval.schema import check_columns, check_values

#: Columns of a part: the links are a Pharaoh line; it is empty if ``status`` says why there are none.
COLUMNS = [pa.field(name, pa.string(), nullable=False) for name in ("status", "links")]
COLUMNS.insert(0, pa.field("id", pa.int64(), nullable=False))
_LINE = r"^(\d+-\d+(:[\d.e-]+)?( \d+-\d+(:[\d.e-]+)?)*)?$"


class AlignmentRun(Manifest):
    """The run and the shard of a part of word alignments."""

    content: ClassVar[str] = "alignments"


@dataclass(frozen=True)
class MergedAlignments:
    """The word alignments of a finished run.

    Attributes:
        manifest: the manifest of the first part.
        skipped: the number of sentences that cannot be aligned.
        lines: the Pharaoh line of each sentence, in corpus order.
    """

    manifest: AlignmentRun
    skipped: int
    lines: pa.ChunkedArray

    def __iter__(self) -> Iterator[str]:
        for chunk in self.lines.chunks:
            yield from (line.as_py() for line in chunk)


def merged(directory: str | Path) -> MergedAlignments:
    """The alignments of a finished run; they are all in memory."""
    parts = finished_run(directory, AlignmentRun)
    tables = []
    for part in parts:
        with open_part(part.path) as (file, opened):
            check_columns(opened.schema_arrow, pa.schema(COLUMNS), file)
            table = opened.read(columns=[column.name for column in COLUMNS])
            for batch in table.to_batches():
                check_values(batch, pa.schema(COLUMNS), file)
            if not pc.all(pc.match_substring_regex(table["links"], _LINE), min_count=0).as_py():
                raise file.error("column links has a line that is not i-j i-j …")
            tables.append(table.replace_schema_metadata(None))
    table = pa.concat_tables(tables).sort_by("id")
    skipped = pc.sum(pc.not_equal(table["status"], "ok"), min_count=0).as_py()
    return MergedAlignments(parts[0].manifest, skipped, table["links"])
