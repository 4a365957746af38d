"""Writes the output of one shard in parts, and continues or replaces what an earlier run of the shard has written."""

from __future__ import annotations

import atexit
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import NewFile, writing_errors
from alignment_eval.records.manifest import Part, RunInfo, parts_in
from alignment_eval.records.store import parquet_writer

#: Bytes of a row group.
_BUFFER_BYTES = 8 * 2**20
OVERWRITE = "--norm-records-overwrite"
#: What a directory of parts may hold -> the option that writes it.
_OPTIONS = {"records": "--norm-records", "alignments": "--norm-alignments"}


def written_ids(directory: Path, content: str, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences in a shard's parts, of any run."""
    return _ids([p for p in parts_in(directory, content) if (p.info.shard, p.info.shards) == (shard, shards)])


def _ids(parts: Sequence[Part]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *(part.ids() for part in parts)])


class ShardParts:
    """The output of one shard in a directory of parts (alignment_eval/records/manifest.py).

    :meth:`write` adds rows, :meth:`commit` makes a part of them.  Rows of sentences that are already in a part are
    ignored.

    Args:
        directory: the directory of the parts.
        info: the run and the shard.
        schema: of the parts, with the info.
        resume: continue after the shard's earlier parts.
        overwrite: replace them.
    """

    def __init__(
        self, directory: Path, info: RunInfo, schema: pa.Schema, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.directory = directory
        self.info = info
        self.schema = schema
        own = _own_parts(directory, info)
        if own and not (resume or overwrite):
            raise InputError(
                f"{directory}: this {'run' if info.shards == 1 else 'shard'} has {len(own)} parts already; give "
                f"--norm-records-resume to continue it, {OVERWRITE} to start again, or name another place with "
                f"{_OPTIONS[info.content]}"
            )
        self._stale, kept = (own, []) if overwrite else ([], own)
        self.written = np.zeros(info.size, dtype=np.bool_)  #: which sentences were written before, [size]
        self.written[_ids(kept)] = True
        self._number = max((part.number + 1 for part in kept), default=0)
        self._transient = not directory.exists()
        with writing_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[pa.Table] = []
        self._bytes = 0
        atexit.register(self.abandon)  # fairseq-generate has no hook for the end of a run

    def write(self, rows: pa.Table) -> None:
        """Add rows, all of each sentence."""
        written = self.written[rows["id"].to_numpy()]
        if written.any():
            rows = rows.filter(pa.array(~written))
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


def _own_parts(directory: Path, info: RunInfo) -> list[Part]:
    """The earlier parts of the shard; all parts in the directory must belong to its run."""
    parts = parts_in(directory, info.content)
    for part in parts:
        check_same_run(part.path, part.info, info)
    return [part for part in parts if part.info.shard == info.shard]


def check_same_run(where: Path, earlier: RunInfo, info: RunInfo) -> None:
    """Check that earlier output at ``where`` belongs to the run of ``info``."""
    if different := earlier.differing(info):
        raise InputError(
            f"{where}: this is output of another run (different: {different}); name another place with "
            f"{_OPTIONS[info.content]}, or remove it"
        )
