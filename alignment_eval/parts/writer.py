"""Writes the output of one shard in parts, and continues or replaces those of an earlier run."""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError
from alignment_eval.files import NewFile, writing_errors
from alignment_eval.maps.kinds import quantities
from alignment_eval.parts.manifest import Part, RunInfo, parts_in

#: Bytes of a row group.
_BUFFER_BYTES = 8 * 2**20


class Names(NamedTuple):
    """What a command calls the options that continue a run, replace it, and name another place."""

    resume: str
    overwrite: str
    place: str


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a part.  It stores all first bytes of maps, then all second ones, …, which zstd compresses."""
    values = [f"{field.name}.list.element" for field in schema if field.name in quantities()]
    options = {"use_dictionary": False, "use_byte_stream_split": values} if values else {}
    return pq.ParquetWriter(path, schema, compression="zstd", write_page_checksum=True, **options)


def own_parts(directory: Path, content: str, shard: int, shards: int) -> Iterator[Part]:
    """The parts of a shard in a directory, of any run."""
    return (part for part in parts_in(directory, content) if (part.info.shard, part.info.shards) == (shard, shards))


def check_not_begun(own: Sequence[Part], directory: Path, shards: int, names: Names, allowed: bool) -> None:
    """Check that a shard has no parts of its ``own``, unless an option says what to do with them."""
    if own and not allowed:
        raise InputError(
            f"{directory}: this {'run' if shards == 1 else 'shard'} has {len(own)} parts already: it was stopped, or "
            f"is running; give {names.resume}, {names.overwrite}, or another place with {names.place}"
        )


class PartsWriter:
    """The output of one shard in a directory of parts (alignment_eval.parts.manifest).

    :meth:`add` takes rows, :meth:`commit` makes a part of them.  The shard's earlier parts are continued (``resume``),
    replaced (``overwrite``) or refused.

    Attributes:
        kept: the earlier parts that are continued.
    """

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: pa.Schema,
        names: Names,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.directory, self.info, self.schema = directory, info, schema
        parts = parts_in(directory, info.content)
        own = [part for part in parts if part.info.shard == info.shard]
        self._stale, self.kept = (own, []) if overwrite else ([], own)
        for part in parts:
            if not (info.windows and part in self._stale):
                part.info.check_same(info, part.path, names.place)
        check_not_begun(self.kept, directory, info.shards, names, resume)
        self._number = max((part.number + 1 for part in self.kept), default=0)
        self._transient = not directory.exists()
        with writing_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[pa.Table] = []
        self._bytes = 0
        atexit.register(self.abandon)  # fairseq-generate has no hook for the end of a run

    def add(self, rows: pa.Table) -> None:
        """Add rows to the next part."""
        if rows.num_rows:
            self._rows.append(rows)
            self._bytes += rows.nbytes
        if self._bytes > _BUFFER_BYTES:
            with writing_errors(self.directory):
                self._flush()

    def commit(self, number: int | None = None) -> None:
        """Make a part of the rows added since the last one; ``number``: its own, default: the next."""
        number = self._number if number is None else number
        with writing_errors(self.directory):
            self._flush(number)
            if self._file is not None and self._writer is not None:
                self._writer.close()
                if self.info.windows == 0 and (path := self.directory / self.info.part_name(number)).exists():
                    raise InputError(f"{path}: another process has written this part; run each shard once")
                self._file.keep()
                self._number = number + 1
                self._file = self._writer = None

    def finish(self) -> None:
        """Make the last part, and remove what killed processes of this shard have left."""
        self.commit()
        with writing_errors(self.directory):
            self._remove_stale()  # nothing was left to write
            for path in self.directory.glob(f".{self.info.part_names}.*.tmp"):
                path.unlink()
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

    def remove(self) -> None:
        """Remove all parts of the run, and the directory if nothing else is in it."""
        for part in parts_in(self.directory, self.info.content):
            part.path.unlink()
        with suppress(OSError):  # it does not exist, or holds something else
            self.directory.rmdir()

    def _flush(self, number: int | None = None) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._remove_stale()
            name = self.info.part_name(self._number if number is None else number)
            self._file = NewFile(self.directory / name)
            self._writer = parquet_writer(self._file.path, self.schema)
        self._writer.write_table(pa.concat_tables(self._rows).cast(self.schema))
        self._rows, self._bytes = [], 0

    def _remove_stale(self) -> None:
        """Remove the parts that are overwritten."""
        for part in self._stale:
            part.path.unlink()
        self._stale = []
