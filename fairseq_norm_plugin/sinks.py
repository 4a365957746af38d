"""Where the sentences of a run go: a part of the records, a file of word alignments; whole or not at all."""

from __future__ import annotations

import atexit
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from alignment_eval.errors import InputError
from alignment_eval.extract import ExtractionOptions, extract
from alignment_eval.formats import format_pharaoh_line
from alignment_eval.maps import SentenceMaps
from alignment_eval.records import RunInfo, arrow_schema, part_name, read_info, to_table
from alignment_eval.textfiles import write_lines

_BUFFER_BYTES = 16 * 2**20


class PartWriter:
    """The part file of one shard.

    Raises:
        InputError: the directory holds parts of another run, or this shard's part and ``overwrite`` is off.
    """

    def __init__(self, directory: Path, info: RunInfo, quantities: Sequence[str], overwrite: bool) -> None:
        self.path = directory / part_name(info.shard, info.shards)
        check_directory(directory, info)
        if self.path.exists() and not overwrite:
            raise InputError(
                f"{self.path}: this shard's part of the same run is there already: give --norm-records-resume to keep "
                f"it, --norm-records-overwrite to replace it, or another --norm-records directory"
            )
        directory.mkdir(parents=True, exist_ok=True)
        self._temporary = directory / f".{self.path.name}.tmp"  # a killed run's is overwritten
        self._schema = arrow_schema(info, quantities)
        self._writer = pq.ParquetWriter(self._temporary, self._schema, compression="zstd", use_dictionary=False)
        self._buffer: list[SentenceMaps] = []
        self._buffered = 0
        atexit.register(self.abandon)

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add rows."""
        self._buffer += sentences
        self._buffered += sum(array.nbytes for s in sentences for array in s.arrays.values())
        if self._buffered > _BUFFER_BYTES:
            self._flush()

    def finish(self) -> None:
        """Write what is left and give the part its name."""
        self._flush()
        self._writer.close()
        self._temporary.replace(self.path)
        atexit.unregister(self.abandon)

    def abandon(self) -> None:
        """Remove the unfinished part (also when the interpreter ends before :meth:`finish`)."""
        self._writer.close()
        self._temporary.unlink(missing_ok=True)
        atexit.unregister(self.abandon)

    def _flush(self) -> None:
        if self._buffer:
            self._writer.write_table(to_table(self._buffer, self._schema))
        self._buffer, self._buffered = [], 0


def check_directory(directory: Path, info: RunInfo) -> None:
    """Raise InputError if ``directory`` is a file or holds a part of another run than ``info``'s."""
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: is a file: expected a directory for --norm-records")
    for part in sorted(directory.glob("part-*.parquet")):
        other = read_info(part)
        if other.signature_hash != info.signature_hash:
            differing = ", ".join(_differing(other.signature, info.signature))
            raise InputError(
                f"{part}: is of another run (its {differing} differ): expected an empty directory or one "
                f"with parts of this run; give another --norm-records directory, or remove that one"
            )


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The keys whose values differ; ``outer.inner`` in nested mappings."""
    names: list[str] = []
    for key in sorted({*one, *other}):
        mine, its = one.get(key), other.get(key)
        if isinstance(mine, Mapping) and isinstance(its, Mapping):
            names += [f"{key}.{inner}" for inner in _differing(mine, its)]
        elif mine != its:
            names.append(key)
    return names


def is_finished(directory: Path, info: RunInfo) -> bool:
    """Whether the part of ``info``'s run and shard lies in ``directory`` (InputError: one of another run does)."""
    check_directory(directory, info)
    return (directory / part_name(info.shard, info.shards)).exists()


class AlignmentFile:
    """Word alignments of the best hypotheses, gathered by id and written in corpus order, whole or not at all."""

    def __init__(self, path: Path, options: ExtractionOptions) -> None:
        self.path = path
        self.options = options
        self._lines: dict[int, str] = {}

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add the sentences of rank 0; a sentence without maps gets a blank line."""
        for sentence in sentences:
            if sentence.rank == 0:
                links = extract(sentence, self.options) if sentence.ok else frozenset()
                self._lines[sentence.id] = format_pharaoh_line(links)

    def finish(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_lines(self.path, (self._lines[id_] for id_ in sorted(self._lines)))
