"""The record format: a directory of Parquet parts with one row per sentence pair (docs/records.md).

The plugin writes it and ``align-eval`` reads it; both use the schema of this module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from alignment_eval.errors import shown
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide, axes_of, quantities
from alignment_eval.parts import RunInfo, finished_run, part_file
from alignment_eval.reading import ForeignFile, Size, check_columns, check_values

#: The columns of every part.
_FIELDS = [
    pa.field("id", pa.int64(), nullable=False),
    pa.field("rank", pa.int32(), nullable=False),
    pa.field("status", pa.string(), nullable=False),
    pa.field("score", pa.float64()),
    *(
        pa.field(f"{side}_{name}", pa.list_(type_), nullable=False)
        for side in ("source", "target")
        for name, type_ in (("tokens", pa.string()), ("words", pa.int32()), ("special", pa.bool_()))
    ),
    pa.field("shape", pa.list_(pa.int32()), nullable=False),
]


def arrow_schema(info: RunInfo, quantities: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a part that records ``quantities``."""
    return info.schema([*_FIELDS, *(pa.field(name, pa.list_(pa.float32()), nullable=False) for name in quantities)])


def to_table(sentences: Sequence[SentenceMaps], schema: pa.Schema) -> pa.Table:
    """Rows of ``schema`` for ``sentences``; a sentence without maps becomes a stub with its status."""
    columns: dict[str, Any] = {
        "id": [s.id for s in sentences],
        "rank": [s.rank for s in sentences],
        "status": [s.status for s in sentences],
        "score": [s.score for s in sentences],
        "shape": [
            [len(s.layers), s.heads, len(s.target.tokens), len(s.source.tokens)] if s.arrays else [] for s in sentences
        ],
    }
    for name in ("source", "target"):
        sides: list[SentenceSide] = [getattr(s, name) for s in sentences]
        columns[f"{name}_tokens"] = [list(side.tokens) for side in sides]
        columns[f"{name}_words"] = [side.words for side in sides]
        columns[f"{name}_special"] = [side.special for side in sides]
    arrays = []
    for field in schema:
        if field.name in columns:
            arrays.append(pa.array(columns[field.name], type=field.type))
        else:
            flat = [s.arrays[field.name].ravel() if s.arrays else np.empty(0, np.float32) for s in sentences]
            values = np.concatenate([*flat, np.empty(0, np.float32)], dtype=np.float32)
            offsets = np.cumsum([0, *map(len, flat)], dtype=np.int32)
            arrays.append(pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), type=field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


class Records:
    """The records of one run.  Opening checks that all parts belong to it and hold each sentence once.

    Iterating reads part by part in bounded memory; ids come in the order in which they were computed (by length), not
    in corpus order.

    Raises:
        InputError: the directory does not exist, has no parts or parts of several runs, or a sentence is missing; while
            iterating, if a part is damaged.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._parts = finished_run(self.directory, "records")
        self.info = self._parts[0].info

    @property
    def size(self) -> Size:
        """How many sentences it has."""
        return Size(str(self.directory), self.info.size)

    def __iter__(self) -> Iterator[SentenceMaps]:
        for part in self._parts:
            yield from _read_part(part.path, self.info)

    def best(self) -> Iterator[SentenceMaps]:
        """The best hypothesis (rank 0) of each sentence, stubs included."""
        return (sentence for sentence in self if sentence.rank == 0)


def _read_part(part: Path, info: RunInfo) -> Iterator[SentenceMaps]:
    file = part_file(part)
    with file.parquet() as opened:
        recorded = [name for name in opened.schema_arrow.names if name in quantities()]
        schema = arrow_schema(info, recorded)
        check_columns(opened.schema_arrow, schema, file)
        for batch in opened.iter_batches(batch_size=64):
            check_values(batch, schema, file, signed=("score",))
            if "head_attn_w" in recorded:
                largest = batch["head_attn_w"].values.to_numpy(zero_copy_only=False).max(initial=0)
                if largest > 1.001:  # with what rounding adds
                    raise file.error(f"column head_attn_w has the value {largest}: expected a weight, from 0 to 1")
            for side in ("source", "target"):
                _check_words(batch, side, file)
            yield from _sentences(batch, info, recorded, file)


def _check_words(batch: pa.RecordBatch, side: str, file: ForeignFile) -> None:
    """Check that each token of one side has a word, which is -1 if the token is special."""
    tokens, words, special = (batch.column(f"{side}_{name}") for name in ("tokens", "words", "special"))
    lengths = np.diff(tokens.offsets.to_numpy())
    for name, column in (("words", words), ("special", special)):
        if (wrong := np.flatnonzero(np.diff(column.offsets.to_numpy()) != lengths)).size:
            has = f"sentence {batch['id'][wrong[0]]} has {lengths[wrong[0]]} {side} tokens"
            raise file.error(f"{has}, but {side}_{name} is another number of values")
    numbers = words.flatten().to_numpy()
    if (numbers >= np.repeat(lengths, lengths)).any() or (numbers < -1).any():
        raise file.error(f"{side}_words has a number that is not -1 or a word of its sentence")
    if ((numbers < 0) != special.flatten().to_numpy(zero_copy_only=False)).any():
        raise file.error(f"{side}_special contradicts {side}_words")


def _sentences(
    batch: pa.RecordBatch, info: RunInfo, recorded: Sequence[str], file: ForeignFile
) -> Iterator[SentenceMaps]:
    flat = {}  # numpy views of the rows
    for name in recorded:
        values = batch.column(name).values.to_numpy(zero_copy_only=False)
        flat[name] = [values[a:b] for a, b in itertools.pairwise(batch.column(name).offsets.to_numpy())]
    light = batch.drop_columns([*recorded, "source_special", "target_special"]).to_pylist()
    heads = info.heads if any("H" in axes_of(name) for name in recorded) else 0  # as SentenceMaps.heads
    for i, row in enumerate(light):
        arrays = {}
        if row["shape"] or row["status"] == "ok":
            expected = [len(info.layers), heads, len(row["target_tokens"]), len(row["source_tokens"])]
            if row["shape"] != expected:
                raise file.error(
                    f"sentence {row['id']} has shape {shown(row['shape'])}, but layers, heads, tokens give {expected}"
                )
            sizes = dict(zip("LHTS", row["shape"]))
            for name in recorded:
                shape = tuple(sizes[axis] for axis in axes_of(name))
                if flat[name][i].size != np.prod(shape):
                    raise file.error(
                        f"{name} of sentence {row['id']} has {flat[name][i].size} values: expected {shape}"
                    )
                arrays[name] = flat[name][i].reshape(shape)
        yield SentenceMaps(
            id=row["id"],
            rank=row["rank"],
            status=row["status"],
            score=row["score"],
            source=SentenceSide(tuple(row["source_tokens"]), np.array(row["source_words"], dtype=np.int32)),
            target=SentenceSide(tuple(row["target_tokens"]), np.array(row["target_words"], dtype=np.int32)),
            layers=info.layers,
            arrays=arrays,
        )
