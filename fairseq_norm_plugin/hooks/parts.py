"""Writes the records and word alignments of one shard in parts, and continues or replaces those of an earlier run."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.align_pairs import align_pairs
from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.files import NewFile, check_new, is_stream, new_file, write_lines, writing_errors
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.reading import ForeignFile
from alignment_eval.records import parquet_writer
from alignment_eval.records.manifest import COLUMNS, RunInfo, merged, parts_in, read_manifest

#: Bytes of a row group.
_BUFFER_BYTES = 8 * 2**20
OVERWRITE = "--norm-records-overwrite"
#: What a directory of parts may hold -> the option that writes it.
_OPTIONS = {"records": "--norm-records", "alignments": "--norm-alignments"}


def recorded_ids(directory: Path, shard: int, shards: int, content: str = "records") -> NDArray[np.int64]:
    """The ids of the sentences in a shard's parts, of any run."""
    parts = (p for p in parts_in(directory, content) if (p.info.shard, p.info.shards) == (shard, shards))
    return np.concatenate([np.empty(0, dtype=np.int64), *(part.ids() for part in parts)])


class ShardParts:
    """The output of one shard in a directory of parts (alignment_eval/records/manifest.py).

    :meth:`write` adds sentences, of which ``table`` makes rows; :meth:`commit` makes a part of them.  Sentences that
    are already in a part are ignored.  The shard's earlier parts are continued (``resume``), replaced (``overwrite``)
    or refused.
    """

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: pa.Schema,
        table: Callable[[Sequence[SentenceMaps]], pa.Table],
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.directory, self.info, self.schema, self.table = directory, info, schema, table
        parts = parts_in(directory, info.content)
        for part in parts:
            _check_same_run(part.path, part.info, info)
        own = [part for part in parts if part.info.shard == info.shard]
        if own and not (resume or overwrite):
            raise InputError(
                f"{directory}: this {'run' if info.shards == 1 else 'shard'} has {len(own)} parts already; give "
                f"--norm-records-resume, {OVERWRITE}, or another place with {_OPTIONS[info.content]}"
            )
        self._stale, kept = (own, []) if overwrite else ([], own)
        self.written = np.zeros(info.size, dtype=np.bool_)  #: which sentences were written before, [size]
        for part in kept:
            self.written[part.ids()] = True
        self._number = max((part.number + 1 for part in kept), default=0)
        self._transient = not directory.exists()
        with writing_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[pa.Table] = []
        self._bytes = 0
        atexit.register(self.abandon)  # fairseq-generate has no hook for the end of a run

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        rows = self.table([sentence for sentence in sentences if not self.written[sentence.id]])
        if rows.num_rows:
            self._rows.append(rows)
            self._bytes += rows.nbytes
        if self._bytes > _BUFFER_BYTES:
            with writing_errors(self.directory):
                self._flush()

    def commit(self) -> None:
        """Make a part of the rows added since the last part."""
        with writing_errors(self.directory):
            self._flush()
            if self._file is not None and self._writer is not None:
                self._writer.close()
                path = self.directory / self.info.part_name(self._number)
                if path.exists():
                    raise InputError(f"{path}: another process has written this part; run each shard once")
                self._file.keep()
                self._number += 1
                self._file = self._writer = None

    def finish(self) -> None:
        """Make the last part."""
        self.commit()
        with writing_errors(self.directory):
            self._clear()  # nothing was left to write
        self.abandon()

    def abandon(self) -> None:
        """Remove the unfinished part (also at the end of the interpreter); the complete ones stay."""
        atexit.unregister(self.abandon)
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):  # the part is removed even if the disk is full
                self._writer.close()
        if self._file is not None:
            self._file.drop()
        self._file = self._writer = None
        if self._transient:
            with suppress(OSError):  # the directory is not empty
                self.directory.rmdir()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._clear()
            self._file = NewFile(self.directory / self.info.part_name(self._number))
            self._writer = parquet_writer(self._file.path, self.schema)
        self._writer.write_table(pa.concat_tables(self._rows))
        self._rows, self._bytes = [], 0

    def _clear(self) -> None:
        """Remove the parts that are overwritten, and what a killed run of this shard left."""
        for part in self._stale:
            part.path.unlink()
        self._stale = []
        for path in self.directory.glob(f".{self.info.part_names}.*.tmp"):
            path.unlink()


def _check_same_run(where: Path, earlier: RunInfo, info: RunInfo) -> None:
    """Check that earlier output at ``where`` belongs to the run of ``info``."""
    if different := earlier.differing(info):
        raise InputError(
            f"{where}: this is output of another run (different: {different}); name another place with "
            f"{_OPTIONS[info.content]}, or remove it"
        )


# ---- word alignments


def parts_directory(file: Path) -> Path:
    """The directory with the parts of the alignments file ``file``."""
    check_new(file, overwrite=True, parents=True)
    return file.with_name(f"{file.name}.parts")


def manifest_file(file: Path) -> Path:
    """The manifest of the finished alignments file ``file`` of a run with one shard."""
    return file.with_name(f"{file.name}.manifest.json")


def aligned_ids(file: Path, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that a shard has aligned before, in ``file`` or its parts, in any run."""
    if shards == 1 and (finished := _finished_run(file)):
        return np.arange(finished.size)
    return recorded_ids(parts_directory(file), shard, shards, "alignments")


def _finished_run(file: Path) -> RunInfo | None:
    """The run that has finished ``file``; None: no run has."""
    path = manifest_file(file)
    if not (file.is_file() and path.is_file()):
        return None
    foreign = ForeignFile(str(path), "the manifest of alignments", "remove it and the alignments, and run again")
    return read_manifest(foreign, path.read_bytes(), "alignments")


class AlignmentParts(ShardParts):
    """The links of a shard, in parts in FILE.parts, which a run with one shard merges into its file at the end."""

    def __init__(
        self, file: Path, info: RunInfo, chosen: ChosenMethod, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.file, self.chosen = file, chosen
        finished = None  # the same run, which has finished the file before
        if info.shards == 1:
            if is_stream(file):
                raise InputError(f"{file}: this is not a regular file; give the name of a file")
            if finished := _finished_run(file) if resume else None:
                _check_same_run(manifest_file(file), finished, info)
            else:
                check_new(file, overwrite, OVERWRITE, parents=True)
        self._finished = finished is not None
        super().__init__(parts_directory(file), info, info.schema(COLUMNS), self.links, resume, overwrite)
        self.written |= self._finished

    def finish(self) -> None:
        """Make the last part; a run with one shard then writes its manifest and file, and removes the parts."""
        super().finish()
        if self.info.shards > 1:
            return
        if not self._finished:
            with new_file(self.file) as temporary:
                with temporary.open("w", encoding="utf-8", newline="\n") as opened:
                    opened.writelines(f"{line}\n" for line in merged(self.directory)[1]["links"])
                # a replaced file goes first, so that the manifest never describes another file
                Path(os.path.realpath(self.file)).unlink(missing_ok=True)
                write_lines(manifest_file(self.file), [self.info.to_json()])
        for part in parts_in(self.directory, "alignments"):
            part.path.unlink()
        with suppress(OSError):  # it does not exist, or holds something else
            self.directory.rmdir()

    def links(self, sentences: Sequence[SentenceMaps]) -> pa.Table:
        """The rows of the best hypotheses: their links, or why there are none."""
        method = self.chosen.method
        best = ((read_word_map(sentence, method.forward), None) for sentence in sentences if sentence.rank == 0)
        aligned = align_pairs(best, method, self.chosen.table, check=False)
        rows = [(pair.id, pair.status, pair.to_pharaoh()) for pair in aligned]
        return pa.table([list(column) for column in zip(*rows)] or [[], [], []], schema=pa.schema(COLUMNS))
