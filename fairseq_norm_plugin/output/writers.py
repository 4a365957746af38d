"""Where the sentences of a shard go: parts of records and parts of word alignments, each whole or not at all."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Generic, Optional, Protocol, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.files import write_lines
from alignment_eval.formats.writing import format_pharaoh_line
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records import merge
from alignment_eval.records import store as records
from alignment_eval.records.manifest import CONTENTS, Manifest, Part, differing, finished_run, read_manifests
from alignment_eval.records.store import RunInfo, arrow_schema, parquet_writer, to_table
from fairseq_norm_plugin.output.writer_thread import BackgroundThread

# What is written at once (a row group), and how many such lots may wait for the disk or for compression.
_BUFFER_BYTES = 8 * 2**20
_WAITING = 2
_PART_IDS = {"records": records.part_ids, "alignments": merge.part_ids}


@dataclass(frozen=True)
class IfExists:
    """What to do with what a shard has written before; refused if neither.  ``options`` are what to ask for it with."""

    resume: bool = False
    overwrite: bool = False
    options: tuple[str, str] = ("--norm-records-resume", "--norm-records-overwrite")
    output_option: Optional[str] = None  # default: that of the content


def parts_directory(alignments: Path) -> Path:
    """Where the parts of the alignments file ``alignments`` are."""
    return alignments.with_name(f"{alignments.name}.parts")


def written_ids(directory: Path, content: str, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences in a shard's parts, of whatever run.

    Raises:
        InputError: the directory holds something else, or a part cannot be read.
    """
    parts = [
        part
        for manifest in read_manifests(directory, content)
        if (manifest.shard, manifest.shards) == (shard, shards)
        for part in manifest.parts
    ]
    ids = [np.array(_PART_IDS[content](directory / part.name), dtype=np.int64) for part in parts]
    return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *ids]))


class Written(Protocol):
    """What parts are made of: something of a sentence."""

    @property
    def id(self) -> int:
        """The sentence's number, from 0."""

    @property
    def ok(self) -> bool:
        """Whether there are maps of it."""


Item = TypeVar("Item", bound=Written)


class ShardParts(ABC, Generic[Item]):
    """The output of one shard in a directory of parts (alignment_eval/records/manifest.py).

    :meth:`write` adds sentences, :meth:`commit` makes a part of what was added, :meth:`finish` declares the shard
    finished.  Sentences that its parts hold already are not taken again.

    Raises:
        InputError: the directory is a file or holds shards of another run; or this shard was begun before, and
            ``existing`` does not say what is to become of it.
    """

    def __init__(self, directory: Path, manifest: Manifest, existing: IfExists) -> None:
        self.directory = directory
        begun = _begun(directory, manifest, existing)
        self._stale = begun if existing.overwrite else None
        self.manifest = manifest if begun is None or existing.overwrite else begun
        self._written = np.zeros(manifest.size, dtype=np.bool_)
        if self.manifest.parts:
            self._written[written_ids(directory, manifest.content, manifest.shard, manifest.shards)] = True
        self._ids = 0
        self._skipped = 0
        self._temporary: Optional[Path] = None

    @property
    def path(self) -> Path:
        """Where the output is, for messages."""
        return self.directory

    @property
    def written(self) -> NDArray[np.bool_]:
        """Of which ids the sentences were there at the beginning, [size]."""
        return self._written

    def write(self, sentences: Sequence[Item]) -> None:
        """Add sentences, all hypotheses of each."""
        new = [sentence for sentence in sentences if not self._written[sentence.id]]
        if new:
            if self._temporary is None:
                self._begin_part()
            self._ids += len({sentence.id for sentence in new})
            self._skipped += sum(not sentence.ok for sentence in new)
            self._add(new)

    def commit(self) -> None:
        """Make a part of what was added since the last one."""
        if self._temporary is not None:
            self._close(self._temporary)
            path = self.directory / self.manifest.part_name(len(self.manifest.parts))
            self._temporary.replace(path)
            parts = (*self.manifest.parts, Part.of(path, self._ids))
            self._temporary = None
            atexit.unregister(self.abandon)
            self._declare(parts=parts, skipped=self.manifest.skipped + self._skipped)
            self._ids = self._skipped = 0

    def finish(self) -> None:
        """Make the last part and declare the shard finished."""
        self.commit()
        if not self.manifest.finished:
            self._clear()
            self._declare(finished=True)

    def abandon(self) -> None:
        """Remove the unfinished part (also when the interpreter ends before :meth:`finish`)."""
        if self._temporary is not None:
            try:
                self._drop()
            finally:
                self._temporary.unlink(missing_ok=True)
                self._temporary = None

    def _begin_part(self) -> None:
        self._clear()
        self._temporary = self.directory / f".{self.manifest.part_name(len(self.manifest.parts))}.tmp"
        self._open(self._temporary)
        atexit.register(self.abandon)

    def _clear(self) -> None:
        """Make the directory, without what is to be overwritten in it."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if self._stale is not None:
            _remove(self.directory, self._stale)
            self._stale = None

    def _declare(self, **changes: Any) -> None:
        self.manifest = replace(self.manifest, **changes)
        self.manifest.write(self.directory)

    def _open(self, path: Path) -> None:  # not all parts are written bit by bit
        """Begin a part at ``path``."""

    @abstractmethod
    def _add(self, sentences: Sequence[Item]) -> None:
        """Add sentences to the part."""

    @abstractmethod
    def _close(self, path: Path) -> None:
        """Have the whole part at ``path``."""

    def _drop(self) -> None:
        """Let go of the part, which will not be ended."""


def _remove(directory: Path, manifest: Manifest) -> None:
    for name in (manifest.name, *(part.name for part in manifest.parts)):
        (directory / name).unlink(missing_ok=True)


def _begun(directory: Path, manifest: Manifest, existing: IfExists) -> Optional[Manifest]:
    begun = None
    for other in read_manifests(directory, manifest.content):
        where, option = directory / other.name, existing.output_option or CONTENTS[manifest.content]
        if other.signature_hash != manifest.signature_hash:
            raise InputError(
                f"{where}: is of another run (its {differing(other.signature, manifest.signature)} differ): expected "
                f"an empty directory or one with shards of this run; name another with {option}, or remove that one"
            )
        if other.shard == manifest.shard:
            begun = other
            if not (existing.resume or existing.overwrite):
                state = "finished" if other.finished else f"begun ({len(other.parts)} parts)"
                raise InputError(
                    f"{where}: this shard of the same run is {state} already: give {existing.options[0]} to keep what "
                    f"is there, {existing.options[1]} to begin anew, or name another place with {option}"
                )
    return begun


class RecordParts(ShardParts[SentenceMaps]):
    """Records of all hypotheses, as Parquet, compressed and written by a thread while the next batches are computed.

    What goes wrong there is raised by the next :meth:`write`, or by :meth:`commit`: a part that failed never counts.
    """

    def __init__(self, directory: Path, info: RunInfo, quantities: Sequence[str], existing: IfExists) -> None:
        super().__init__(directory, info.manifest, existing)
        self._schema = arrow_schema(info, quantities)
        self._writer: Any = None
        self._thread: Any = None
        self._buffer: list[SentenceMaps] = []
        self._buffered = 0

    def _open(self, path: Path) -> None:
        self._writer = parquet_writer(path, self._schema)
        self._thread = BackgroundThread(_WAITING)

    def _add(self, sentences: Sequence[SentenceMaps]) -> None:
        self._buffer += sentences
        self._buffered += sum(array.nbytes for s in sentences for array in s.arrays.values())
        if self._buffered > _BUFFER_BYTES:
            self._flush()

    def _close(self, path: Path) -> None:
        self._flush()
        self._thread.finish()
        self._writer.close()

    def _drop(self) -> None:
        self._thread.abandon()
        with suppress(OSError, pa.ArrowException):  # a full disk is no reason to keep half a part on it
            self._writer.close()
        self._buffer, self._buffered = [], 0

    def _flush(self) -> None:
        if self._buffer:
            self._thread.put(partial(_write, self._writer, self._buffer, self._schema))
        self._buffer, self._buffered = [], 0


def _write(writer: Any, sentences: Sequence[SentenceMaps], schema: Any) -> None:
    writer.write_table(to_table(sentences, schema))


@dataclass(frozen=True)
class AlignmentLine:
    """The line of a sentence in an alignments file; blank, with the reason as status, if it is not aligned."""

    id: int
    line: str
    status: str = "ok"

    @property
    def ok(self) -> bool:
        """Whether the sentence is aligned."""
        return self.status == "ok"


class AlignmentParts(ShardParts[AlignmentLine]):
    """Word alignments; a run of one shard makes its alignments file of them at the end.

    Raises:
        InputError: see :class:`ShardParts`; or a run of one shard has its file already.
    """

    def __init__(self, file: Path, manifest: Manifest, existing: IfExists) -> None:
        if manifest.shards == 1 and file.exists() and not existing.overwrite:
            raise InputError(
                f"{file}: there is a file already, which does not say what run it is of: expected a new one for "
                f"{existing.output_option or CONTENTS['alignments']}; name another, remove that one, or give "
                f"{existing.options[1]}"
            )
        super().__init__(parts_directory(file), manifest, existing)
        self.file = file
        self._lines: dict[int, str] = {}

    @property
    def path(self) -> Path:
        """Where the output is, for messages."""
        return self.file if self.manifest.shards == 1 else self.directory

    def finish(self) -> None:
        """Finish the shard; of a run of one shard, make the alignments file and remove the parts."""
        super().finish()
        if self.manifest.shards == 1:
            write_lines(self.file, merge.merged_lines(self.directory, finished_run(self.directory, "alignments")))
            _remove(self.directory, self.manifest)
            for left in self.directory.glob(".*.tmp"):  # of killed runs
                left.unlink()
            if not any(self.directory.iterdir()):
                self.directory.rmdir()

    def _add(self, sentences: Sequence[AlignmentLine]) -> None:
        self._lines.update((sentence.id, sentence.line) for sentence in sentences)

    def _close(self, path: Path) -> None:
        with path.open("w", encoding="utf-8") as part:
            part.writelines(f"{line}\n" for line in merge.part_lines(self._lines))
        self._lines = {}


class SentenceWriter(Protocol):
    """Takes the recorded sentences of a shard."""

    @property
    def manifest(self) -> Manifest:
        """What is written, and how far."""

    @property
    def path(self) -> Path:
        """Where the output is, for messages."""

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""

    def commit(self) -> None:
        """Make a part of what was added since the last one."""

    def finish(self) -> None:
        """Make the last part and declare the shard finished."""


class ExtractedAlignments:
    """A :class:`SentenceWriter` of word alignments: the links of the best hypotheses."""

    def __init__(self, parts: AlignmentParts, options: ExtractionOptions) -> None:
        self._parts = parts
        self._options = options
        self.path = parts.path
        self.commit = parts.commit
        self.finish = parts.finish

    @property
    def manifest(self) -> Manifest:
        """What is written, and how far."""
        return self._parts.manifest

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        best = [sentence for sentence in sentences if sentence.rank == 0]
        self._parts.write([AlignmentLine(one.id, self._line(one), one.status) for one in best])

    def _line(self, sentence: SentenceMaps) -> str:
        return format_pharaoh_line(extract(sentence, self._options)) if sentence.ok else ""
