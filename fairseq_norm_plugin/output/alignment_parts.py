"""Writes word alignments: parts of lines, which a run with one shard merges into a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Optional

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
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

    @property
    def path(self) -> Path:
        """The output, for messages."""
        return self.file if self.manifest.shards == 1 else self.directory

    def _begun(self, manifest: Manifest) -> Optional[Manifest]:
        self._finished = self._finished_before(manifest) if manifest.shards == 1 else None
        return self._finished or super()._begun(manifest)

    def _finished_before(self, manifest: Manifest) -> Optional[Manifest]:
        """The manifest of the file, if the same run has finished it before.

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
