"""Writes word alignments of norm-align: parts of lines, which are merged into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alignment_eval.errors import InputError
from alignment_eval.files import check_new
from alignment_eval.records.manifest import Part, read_parts
from alignment_eval.records.merge import COLUMNS, AlignmentRun
from fairseq_norm_plugin.output.alignments import AlignmentFile, parts_directory
from fairseq_norm_plugin.output.shard_parts import IfExists


def check_not_begun(alignments: Path, existing: IfExists) -> None:
    """Check, before the work, that no run of ``alignments`` was stopped, unless ``existing`` says what to do with it.

    Raises:
        InputError: one was, or its parts cannot be read.
    """
    check_new(alignments, overwrite=True, parents=True)
    directory = parts_directory(alignments)
    if read_parts(directory, AlignmentRun) and not (existing.resume or existing.overwrite):
        raise InputError(
            f"{directory}: this run is already begun; give {existing.options[0]} to continue it, {existing.options[1]} "
            f"to start again, or name another place with -o"
        )


@dataclass(frozen=True)
class AlignmentLine:
    """The line of a sentence in an alignments file; if it is not aligned, the line is blank and ``status`` says why."""

    id: int
    line: str
    status: str = "ok"

    @property
    def ok(self) -> bool:
        """Whether the sentence is aligned."""
        return self.status == "ok"


def write_pharaoh(path: Path, lines: Iterator[str]) -> None:
    """Write the lines of a Pharaoh file."""
    with path.open("wb") as file:
        file.writelines(f"{line}\n".encode() for line in lines)


class AlignmentParts(AlignmentFile):
    """The alignments file of norm-align; ``write_file`` writes all lines, in corpus order, to a path."""

    def __init__(
        self,
        file: Path,
        manifest: AlignmentRun,
        existing: IfExists,
        write_file: Callable[[Path, Iterator[str]], object] = write_pharaoh,
    ) -> None:
        super().__init__(file, manifest, existing)
        self._write_file = write_file
        tables = [pq.read_table(part.path, columns=["status"]) for part in self._parts()]
        self.skipped_before = sum(pc.sum(pc.not_equal(table["status"], "ok")).as_py() or 0 for table in tables)

    @property
    def sentences(self) -> int:
        """The number of sentences in the parts."""
        return sum(len(part.ids()) for part in self._parts())

    def _parts(self) -> list[Part[AlignmentRun]]:
        return read_parts(self.directory, AlignmentRun)

    def write_lines(self, lines: Sequence[AlignmentLine]) -> None:
        """Add sentences."""
        columns = [[line.id for line in lines], [line.status for line in lines], [line.line for line in lines]]
        self.write(pa.table(columns, schema=pa.schema(COLUMNS)))

    def _write_merged(self, path: Path, lines: Iterator[str]) -> None:
        self._write_file(path, lines)
