"""Writes word alignments of norm-align: parts of lines, which are merged into a file."""

from __future__ import annotations

<<<<<<< HEAD
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
=======
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
>>>>>>> h4
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from alignment_eval.errors import InputError
<<<<<<< HEAD
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
=======
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.files import already_exists, check_new, file_hash, is_stream, new_file
from alignment_eval.formats.writing import format_pharaoh_line
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records import merge
from alignment_eval.records.manifest import CONTENTS, Manifest, finished_run, read_manifest, read_manifests
from fairseq_norm_plugin.output.shard_parts import IfExists, ShardParts, check_same_run, written_ids


def parts_directory(alignments: Path) -> Path:
    """The directory with the parts of the alignments file ``alignments``.

    Raises:
        InputError: no file can be written there.
    """
    check_new(alignments, overwrite=True, parents=True)
    return alignments.with_name(f"{alignments.name}.parts")


def manifest_file(alignments: Path) -> Path:
    """The manifest of the finished alignments file ``alignments`` of a run with one shard."""
    return alignments.with_name(f"{alignments.name}.manifest.json")


def finished_file(file: Path) -> Optional[Manifest]:
    """The manifest of an alignments file that a run with one shard has finished; None if there is none.

    Raises:
        InputError: the manifest cannot be read.
    """
    path = manifest_file(file)
    if not (file.is_file() and path.is_file()):
        return None
    manifest = read_manifest(path, "alignments")
    return manifest if manifest.details.get("hash") == file_hash(file) else None


def aligned_ids(file: Path, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that a shard has aligned before, in ``file`` or its parts, in any run.

    Raises:
        InputError: the earlier output cannot be read.
    """
    parts = parts_directory(file)
    if shards == 1 and finished_file(file) is not None:
        return np.arange(_lines(file))
    return written_ids(parts, "alignments", shard, shards)


def _lines(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)
>>>>>>> h4


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


<<<<<<< HEAD
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
=======
class AlignmentParts(ShardParts[AlignmentLine]):
    """Word alignments; a run with one shard merges them into its alignments file at the end, with a manifest beside it.

    Args:
        file: the alignments file.
        manifest: as for :class:`ShardParts`.
        existing: likewise.

    Raises:
        InputError: see :class:`ShardParts`; or the file of a run with one shard already exists.
    """

    def __init__(self, file: Path, manifest: Manifest, existing: IfExists) -> None:
        self.file = file
        self._lines: dict[int, str] = {}
        super().__init__(parts_directory(file), manifest, existing)
>>>>>>> h4

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

<<<<<<< HEAD
    def _write_merged(self, path: Path, lines: Iterator[str]) -> None:
        self._write_file(path, lines)
=======
        Raises:
            InputError: the file exists and belongs to another run, or no file can be written there.
        """
        if is_stream(self.file):
            raise InputError(f"{self.file}: this is not a regular file; give the name of a file")
        if self._existing.overwrite or not os.path.lexists(self.file):
            return None
        finished = finished_file(self.file) if self._existing.resume else None
        if finished is None:
            raise already_exists(self.file, self._existing.options[1])
        option = self._existing.output_option or CONTENTS["alignments"]
        check_same_run(manifest_file(self.file), finished, manifest, option)
        return finished

    def _begun_ids(self) -> NDArray[np.bool_]:
        return super()._begun_ids() if self._finished is None else np.ones(self.manifest.size, dtype=np.bool_)

    def _complete(self) -> None:
        """In a run with one shard, write the manifest and the alignments file, then remove the parts."""
        if self.manifest.shards > 1:
            return
        if self._finished is None:
            with new_file(self.file) as temporary:
                with temporary.open("wb") as file:
                    lines = merge.merged_lines(self.directory, finished_run(self.directory, "alignments"))
                    file.writelines(f"{line}\n".encode() for line in lines)
                finished = replace(self.manifest, parts=(), details={"hash": file_hash(temporary)})
                finished.write(self.file.parent, manifest_file(self.file).name)
        for listed in read_manifests(self.directory, "alignments"):
            self._remove(listed)
        self._transient = True

    def _add(self, sentences: Sequence[AlignmentLine]) -> None:
        self._lines.update((sentence.id, sentence.line) for sentence in sentences)

    def _close(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as part:
            part.writelines(f"{line}\n" for line in merge.part_lines(self._lines))
        self._lines = {}

    def _drop(self) -> None:
        self._lines = {}


class ExtractedAlignments:
    """A :class:`SentenceWriter` of word alignments, the links of the best hypotheses."""

    def __init__(self, parts: AlignmentParts, options: ExtractionOptions) -> None:
        self._parts = parts
        self._options = options
        self.path = parts.path
        self.commit = parts.commit
        self.finish = parts.finish
        self.abandon = parts.abandon

    @property
    def manifest(self) -> Manifest:
        """The manifest of what is written so far."""
        return self._parts.manifest

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        best = [sentence for sentence in sentences if sentence.rank == 0]
        self._parts.write([AlignmentLine(one.id, self._line(one), one.status) for one in best])

    def _line(self, sentence: SentenceMaps) -> str:
        return format_pharaoh_line(extract(sentence, self._options)) if sentence.ok else ""
>>>>>>> h4
