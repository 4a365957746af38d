"""Writes records as Parquet parts in the background, while the next batches are computed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.store import RunInfo, arrow_schema, parquet_writer, to_table
from fairseq_norm_plugin.output.shard_parts import IfExists, ShardParts
from fairseq_norm_plugin.output.writer_thread import BackgroundThread

# Size of a row group, and how many row groups may wait to be compressed and written.
_BUFFER_BYTES = 8 * 2**20
_WAITING = 2


class RecordParts(ShardParts[SentenceMaps]):
    """Records of all hypotheses, as Parquet; a background thread compresses and writes them.

    Errors of the thread re-raise in the next :meth:`write` or in :meth:`commit`, so a failed part never counts.
    """

    def __init__(self, directory: Path, info: RunInfo, quantities: Sequence[str], existing: IfExists) -> None:
        self._schema = arrow_schema(info, quantities)
        self._writer: Any = None
        self._thread: Any = None
        self._buffer: list[SentenceMaps] = []
        self._buffered = 0
        super().__init__(directory, info.manifest, existing)

    def _open(self, path: Path) -> None:
        self._writer = parquet_writer(path, self._schema)
        self._thread = BackgroundThread(_WAITING)

    def _add(self, sentences: Sequence[SentenceMaps]) -> None:
        for sentence in sentences:
            self._buffer.append(sentence)
            self._buffered += sum(array.nbytes for array in sentence.arrays.values())
            if self._buffered > _BUFFER_BYTES:
                self._flush()

    def _close(self, path: Path) -> None:
        self._flush()
        self._thread.finish()
        self._writer.close()

    def _drop(self) -> None:
        if self._thread is not None:
            self._thread.abandon()
        with suppress(OSError, pa.ArrowException):  # the part is removed even if the disk is full
            if self._writer is not None:
                self._writer.close()
        self._buffer, self._buffered = [], 0

    def _flush(self) -> None:
        if self._buffer:
            self._thread.put(partial(_write, self._writer, self._buffer, self._schema))
        self._buffer, self._buffered = [], 0


def _write(writer: Any, sentences: Sequence[SentenceMaps], schema: Any) -> None:
    writer.write_table(to_table(sentences, schema))
