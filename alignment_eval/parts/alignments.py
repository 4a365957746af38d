"""Alignments in parts: tables with a row for each sentence pair, and the file that they join to."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from alignment_eval.alignment import Alignment, column_types
from alignment_eval.errors import InputError
from alignment_eval.extraction.pair_scores import PAIR_SCORES, WORD_SCORES
from alignment_eval.files import check_new, json_line, new_file
from alignment_eval.links.files import table_of, write_signed, write_table
from alignment_eval.parts.manifest import RunInfo, finished_run, part_file
from alignment_eval.signature import Value, fields_of, signature

#: The columns that may lack a value, and those that may be below 0.
_OPTIONAL = {"confidences", "score", *PAIR_SCORES, *WORD_SCORES}
#: Rows that are objects of Python at once: all of a window would take tens of MB.
_ROWS = 500
_SIGNED = ("score", "log_prob", "reverse_log_prob")


@dataclass(frozen=True)
class Form:
    """What the rows of a run hold, and how a text file shows them.

    Attributes:
        confidences: Pharaoh lines have confidences.
        scored: pairs have scores.
        marked: targets have the markup of their sources, and are the lines of a text file.
        text_ids: the ids of pairs are text.
    """

    confidences: bool = False
    scored: bool = False
    marked: bool = False
    text_ids: bool = False

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns."""
        id_type = pa.string() if self.text_ids else pa.int64()
        return {"id": id_type, **column_types(self.scored, self.marked)}

    def table(self, ids: Sequence[int | str], alignments: Iterable[Alignment]) -> pa.Table:
        """A row for each pair, with its id."""
        rows = ({"id": id_, **alignment.to_row()} for id_, alignment in zip(ids, alignments))
        groups = [table_of(group, self.types) for group in iter(lambda: list(islice(rows, _ROWS)), [])]
        return pa.concat_tables(groups or [table_of([], self.types)]).combine_chunks()

    def line(self, alignment: Alignment) -> str:
        """The line of a pair in a text file."""
        return alignment.to_pharaoh(self.confidences) if alignment.marked is None else alignment.marked


def write_alignments(
    path: str | Path, tables: Iterable[pa.Table], form: Form, signature: str, resumed: bool = False
) -> None:
    """Write tables of alignments to a file: of JSON lines or Parquet by its ending, else of lines of text.

    ``resumed`` as for :func:`alignment_eval.files.new_file`.
    """
    if str(path).endswith(".parquet"):
        with new_file(path, resumed) as temporary:
            write_table(temporary, tables, signature)
    elif str(path).endswith(".jsonl"):
        batches = (batch for table in tables for batch in table.drop_columns(["id"]).to_batches(max_chunksize=_ROWS))
        rows = (row for batch in batches for row in batch.to_pylist())
        write_signed(path, map(json_line, rows), signature, resumed)
    else:
        names = ["marked"] if form.marked else ["links", "confidences"]
        lines = (form.line(alignment) for table in tables for alignment in alignments_in(table, names))
        write_signed(path, lines, signature, resumed)


def alignments_in(table: pa.Table, names: Sequence[str]) -> Iterator[Alignment]:
    """The alignments in a table, as far as the columns ``names`` say."""
    batches = table.select(names).to_batches(max_chunksize=_ROWS)
    return (Alignment.of_row(row) for batch in batches for row in batch.to_pylist())


# ---- files in parts


def run_info(
    signature: str, form: Form, more: Mapping[str, Value], size: int, windows: int, shard: int, shards: int
) -> RunInfo:
    """The manifest of a run of ``windows``, which has a signature and depends on ``more``."""
    fields = {**fields_of(signature), "form": {**asdict(form), **more}}
    return RunInfo("alignments", fields, size, shard, shards, windows=windows)


def form_of(info: RunInfo) -> Form:
    """The form of a run's alignments."""
    named = info.signature.get("form")
    stated = named if isinstance(named, Mapping) else {}
    return Form(**{field.name: bool(stated.get(field.name)) for field in fields(Form)})


def signature_of(info: RunInfo, directory: str | Path) -> str:
    """The signature of a run's alignments."""
    if info.windows:
        return "|".join(f"{name}:{value}" for name, value in info.signature.items() if name != "form")
    if not isinstance(extraction := info.signature.get("extraction"), dict):
        raise InputError(f"{directory}: the signature does not say how links were made; run the shards again")
    run: dict[str, Value] = {"run": info.signature_hash, "sentences": info.size}
    return signature(**{**run, **extraction, **run})


def parts_directory(file: str | Path) -> Path:
    """The directory with the parts of a file of alignments, until it is complete; a link is followed."""
    check_new(file, overwrite=True, parents=True)
    real = Path(os.path.realpath(file))
    return real.with_name(f"{real.name}.parts")


def read_alignments(directory: str | Path) -> tuple[RunInfo, Iterator[pa.Table]]:
    """The manifest of a finished run of alignments, and its tables, whose rows are in the order of the text.

    Tables of windows are read one by one, others all at once: their sentences are in the order of their lengths.
    """
    parts = finished_run(directory, "alignments")
    info = parts[0].info
    paths = [part.path for part in sorted(parts, key=lambda part: part.number)]
    if info.windows:
        return info, map(_read, paths)
    return info, iter([pa.concat_tables(map(_read, paths)).sort_by("id")])


def _read(path: Path) -> pa.Table:
    """The table of a part, checked."""
    file = part_file(path)
    with file.parquet() as opened:
        schema = opened.schema_arrow
    known = Form(
        scored="unsupported" in schema.names,
        marked="marked" in schema.names,
        text_ids="id" in schema.names and schema.field("id").type == pa.string(),
    )
    expected = pa.schema([pa.field(name, type_, name in _OPTIONAL) for name, type_ in known.types.items()])
    table = file.table(expected, _SIGNED)
    links = table["links"].combine_chunks()
    pairs = links.flatten()
    words = pairs.flatten().to_numpy(zero_copy_only=False)
    if (np.diff(pairs.offsets.to_numpy()) != 2).any() or not (words >= 0).all():
        raise file.error("column links has a link that is no pair of words")
    linked = np.diff(links.offsets.to_numpy()) > 0
    if (linked & (table["status"].to_numpy() != "ok")).any():
        raise file.error("a sentence has links, but its status says why it has none")
    return table
