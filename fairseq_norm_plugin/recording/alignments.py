"""Writes the word alignments of a run of fairseq-generate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.alignment import align_pairs
from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.files import check_new, is_stream, new_file, write_lines
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.records.manifest import RunInfo, parts_in, read_manifest
from alignment_eval.records.merge import COLUMNS, merged
from alignment_eval.schema import ForeignFile
from fairseq_norm_plugin.recording.shard_parts import OVERWRITE, ShardParts, check_same_run, written_ids


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
    return written_ids(parts_directory(file), "alignments", shard, shards)


def _finished_run(file: Path) -> RunInfo | None:
    """The run that has finished ``file``; None: no run has."""
    path = manifest_file(file)
    if not (file.is_file() and path.is_file()):
        return None
    foreign = ForeignFile(str(path), "the manifest of alignments", "remove it and the alignments, and run again")
    return read_manifest(foreign, path.read_bytes(), "alignments")


class AlignmentParts(ShardParts):
    """The links of a shard in parts, which a run with one shard merges into its file at the end.

    Args:
        file: the alignments file; the parts are in FILE.parts.
        info: the run and the shard.
        resume: continue the shard's earlier output.
        overwrite: replace it.
    """

    def __init__(self, file: Path, info: RunInfo, resume: bool = False, overwrite: bool = False) -> None:
        self.file = file
        finished = None  # the same run, which has finished the file before
        if info.shards == 1:
            if is_stream(file):
                raise InputError(f"{file}: this is not a regular file; give the name of a file")
            finished = _finished_run(file) if resume else None
            if finished is None:
                check_new(file, overwrite, OVERWRITE, parents=True)
            else:
                check_same_run(manifest_file(file), finished, info)
        self._finished = finished is not None
        super().__init__(parts_directory(file), info, info.schema(COLUMNS), resume, overwrite)
        self.written |= self._finished

    def finish(self) -> None:
        """Make the last part; a run with one shard then writes its manifest and file, and removes the parts."""
        super().finish()
        if self.info.shards > 1:
            return
        if not self._finished:
            with new_file(self.file) as temporary:
                with temporary.open("w", encoding="utf-8", newline="\n") as opened:
                    opened.writelines(f"{line}\n" for line in merged(self.directory))
                # a replaced file goes first, so that the manifest never describes another file
                Path(os.path.realpath(self.file)).unlink(missing_ok=True)
                write_lines(manifest_file(self.file), [self.info.to_json()])
        for part in parts_in(self.directory, "alignments"):
            part.path.unlink()
        with suppress(OSError):  # it does not exist, or holds something else
            self.directory.rmdir()


def links_table(sentences: Sequence[SentenceMaps], chosen: ChosenMethod) -> pa.Table:
    """The rows of the best hypotheses: their links, or why there are none."""
    best = ((read_word_map(sentence, chosen.method.forward), None) for sentence in sentences if sentence.rank == 0)
    aligned = align_pairs(best, chosen.method, chosen.table, check=False)
    columns = zip(*rows) if (rows := [(pair.id, pair.status, pair.to_pharaoh()) for pair in aligned]) else ((), (), ())
    return pa.table(list(map(list, columns)), schema=pa.schema(COLUMNS))
