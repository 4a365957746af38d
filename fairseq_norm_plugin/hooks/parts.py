"""The output of one shard of fairseq-generate in parts: records, and word alignments that become one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.align_pairs import align_pairs
from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.lexical_table import EMPTY
from alignment_eval.files import check_new, is_stream, new_file, write_lines
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.parts.alignments import Form, alignments_in, parts_directory, read_alignments
from alignment_eval.parts.manifest import Part, RunInfo, read_manifest
from alignment_eval.parts.writer import Names, PartsWriter, own_parts
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.reading import ForeignFile

_NAMES = Names("--norm-records-resume", "--norm-records-overwrite", "--norm-records")


def _ids(parts: Iterable[Part]) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, dtype=np.int64), *(part.ids() for part in parts)])


def recorded_ids(directory: Path, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that a shard has recorded before, in any run."""
    return _ids(own_parts(directory, "records", shard, shards))


class SentenceParts(PartsWriter):
    """Sentences in parts: ``table`` makes rows of them, and those that a part has already are passed by."""

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: pa.Schema,
        table: Callable[[Sequence[SentenceMaps]], pa.Table],
        resume: bool = False,
        overwrite: bool = False,
        names: Names = _NAMES,
    ) -> None:
        super().__init__(directory, info, schema, names, resume, overwrite)
        self._table = table
        self.written = np.zeros(info.size, dtype=np.bool_)  #: which sentences were written before, [size]
        self.written[_ids(self.kept)] = True

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        self.add(self._table([sentence for sentence in sentences if not self.written[sentence.id]]))


# ---- word alignments


def manifest_file(file: Path) -> Path:
    """The manifest of the finished alignments file ``file`` of a run with one shard."""
    return file.with_name(f"{file.name}.manifest.json")


def aligned_ids(file: Path, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that a shard has aligned before, in ``file`` or its parts, in any run."""
    if shards == 1 and (finished := _finished_run(file)):
        return np.arange(finished.size)
    return _ids(own_parts(parts_directory(file), "alignments", shard, shards))


def _finished_run(file: Path) -> RunInfo | None:
    """The run that has finished ``file``; None: no run has."""
    path = manifest_file(file)
    if not (file.is_file() and path.is_file()):
        return None
    foreign = ForeignFile(str(path), "the manifest of alignments", "remove it and the alignments, and run again")
    return read_manifest(foreign, path.read_bytes(), "alignments")


class AlignmentParts(SentenceParts):
    """The links of a shard, in parts in FILE.parts, which a run with one shard joins to its file at the end."""

    def __init__(
        self, file: Path, info: RunInfo, chosen: ChosenMethod, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.file, self._chosen, self._form = file, chosen, Form()
        names = _NAMES._replace(place="--norm-alignments")
        finished = None  # the same run, which has finished the file before
        if info.shards == 1:
            if is_stream(file):
                raise InputError(f"{file}: this is not a regular file; give the name of a file")
            if finished := _finished_run(file) if resume else None:
                finished.check_same(info, manifest_file(file), names.place)
            else:
                check_new(file, overwrite, names.overwrite, parents=True)
        self._finished = finished is not None
        schema = info.schema(self._form.table([], []).schema)
        super().__init__(parts_directory(file), info, schema, self._links, resume, overwrite, names)
        self.written |= self._finished

    def finish(self) -> None:
        """Make the last part; a run with one shard then writes its manifest and file, and removes the parts."""
        super().finish()
        if self.info.shards > 1:
            return
        if not self._finished:
            _, tables = read_alignments(self.directory)
            with new_file(self.file) as temporary:
                write_lines(
                    temporary, (pair.to_pharaoh() for table in tables for pair in alignments_in(table, ["links"]))
                )
                # a replaced file goes first, so that the manifest never describes another file
                Path(os.path.realpath(self.file)).unlink(missing_ok=True)
                write_lines(manifest_file(self.file), [self.info.to_json()])
        self.remove()

    def _links(self, sentences: Sequence[SentenceMaps]) -> pa.Table:
        """The rows of the best hypotheses."""
        method = self._chosen.method
        best = ((read_word_map(sentence, method.forward), None) for sentence in sentences if sentence.rank == 0)
        aligned = list(align_pairs(best, method, self._chosen.table or EMPTY))
        return self._form.table([pair.id for pair in aligned], aligned)
