"""The output of one shard of fairseq-generate in parts: records, and word alignments that become one file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.align_pairs import align_pairs
from alignment_eval.alignment import Form, write_alignments
from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.lexical_table import EMPTY
from alignment_eval.files import check_new, is_stream
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.parts import Names, PartsWriter, RunInfo, own_parts, parts_directory, read_alignments, signature_of
from alignment_eval.profiles.chosen import ChosenMethod

_NAMES = Names("--norm-records-resume", "--norm-records-overwrite", "--norm-records")


def ids_in(directory: Path, content: str, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences that are in a shard's parts of ``content``, of any run."""
    ids = (part.ids() for part in own_parts(directory, content, shard, shards))
    return np.concatenate([np.empty(0, dtype=np.int64), *ids])


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
        for part in self.kept:
            self.written[part.ids()] = True

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""
        self.add(self._table([sentence for sentence in sentences if not self.written[sentence.id]]))


class AlignmentParts(SentenceParts):
    """The alignments of a shard, in parts in FILE.parts, which a run with one shard joins to its file at the end."""

    def __init__(
        self, file: Path, info: RunInfo, chosen: ChosenMethod, resume: bool = False, overwrite: bool = False
    ) -> None:
        self.file, self._chosen, self._form, self._resumed = file, chosen, Form(), resume
        names, directory = _NAMES._replace(place="--norm-alignments"), parts_directory(file)
        if info.shards == 1:
            if is_stream(file):
                raise InputError(f"{file}: this is not a regular file; give the name of a file")
            begun = resume and any(own_parts(directory, "alignments", 0, 1))
            check_new(file, overwrite or begun, names.overwrite, parents=True)
        schema = info.schema(self._form.table([], []).schema)
        super().__init__(directory, info, schema, self._links, resume, overwrite, names)

    def finish(self) -> None:
        """Make the last part; a run with one shard then writes its file, and removes the parts."""
        super().finish()
        if self.info.shards == 1:
            _, tables = read_alignments(self.directory)
            write_alignments(self.file, tables, self._form, signature_of(self.info, self.file), self._resumed)
            self.remove()

    def _links(self, sentences: Sequence[SentenceMaps]) -> pa.Table:
        """The rows of the best hypotheses."""
        method = self._chosen.method
        best = ((read_word_map(sentence, method.forward), None) for sentence in sentences if sentence.rank == 0)
        aligned = list(align_pairs(best, method, self._chosen.table or EMPTY))
        return self._form.table([pair.id for pair in aligned], aligned)
