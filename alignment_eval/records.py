"""The record format: a directory of Parquet parts, one row a sentence pair (docs/formats.md).

The plugin writes it, ``align-eval`` reads it; both take the schema from here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError
from alignment_eval.maps import QUANTITIES, SentenceMaps, Side

SCHEMA_VERSION = 1
METADATA_KEY = b"norm_records"
DTYPES = {"float32": pa.float32(), "float16": pa.float16()}
_PART_NAME = re.compile(r"part-(\d{5})-of-(\d{5})\.parquet")


@dataclass(frozen=True)
class RunInfo:
    """What all parts of a run share, and what one part says of itself.

    ``signature`` holds every option that changes the numbers, with the hashes of model and data;
    ``signature_hash`` identifies the run.  ``size`` is the number of sentences of the data set,
    over all shards; their ids are 0 … size - 1.
    """

    signature: Mapping[str, Any]
    signature_hash: str
    kinds: tuple[str, ...]
    layers: tuple[int, ...]
    heads: int
    dtype: str
    size: int
    nbest: int
    shard: int
    shards: int
    schema_version: int = SCHEMA_VERSION

    @property
    def forced(self) -> bool:
        """Whether the targets are the data set's references (forced scoring), not the model's own translations."""
        return bool(self.signature.get("generation", {}).get("score_reference", True))


def part_name(shard: int, shards: int) -> str:
    """File name of a shard's part."""
    return f"part-{shard:05d}-of-{shards:05d}.parquet"


def arrow_schema(info: RunInfo, quantities: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a part that records ``quantities``, with ``info`` in its metadata."""
    fields = [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("rank", pa.int32(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("source_tokens", pa.list_(pa.string()), nullable=False),
        pa.field("source_words", pa.list_(pa.int32()), nullable=False),
        pa.field("source_special", pa.list_(pa.bool_()), nullable=False),
        pa.field("target_tokens", pa.list_(pa.string()), nullable=False),
        pa.field("target_words", pa.list_(pa.int32()), nullable=False),
        pa.field("target_special", pa.list_(pa.bool_()), nullable=False),
        pa.field("shape", pa.list_(pa.int32()), nullable=False),
    ]
    value = DTYPES[info.dtype]
    fields += [pa.field(name, pa.list_(value), nullable=False) for name in quantities]
    return pa.schema(fields, metadata={METADATA_KEY: json.dumps(asdict(info)).encode()})


def to_table(sentences: Sequence[SentenceMaps], schema: pa.Schema) -> pa.Table:
    """Rows of ``schema`` for ``sentences``; one without maps becomes a stub with its status."""
    columns: dict[str, Any] = {
        "id": [s.id for s in sentences],
        "rank": [s.rank for s in sentences],
        "status": [s.status for s in sentences],
        "score": [s.score for s in sentences],
        "shape": [_shape(s) if s.ok else [] for s in sentences],
    }
    for name in ("source", "target"):
        sides: list[Side] = [getattr(s, name) for s in sentences]
        columns[f"{name}_tokens"] = [list(side.tokens) for side in sides]
        columns[f"{name}_words"] = [side.words for side in sides]
        columns[f"{name}_special"] = [side.special for side in sides]
    arrays = []
    for field in schema:
        if field.name in columns:
            arrays.append(pa.array(columns[field.name], type=field.type))
        else:
            flat = [s.arrays[field.name].ravel() if s.ok else np.empty(0) for s in sentences]
            arrays.append(_list_array(flat, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _shape(sentence: SentenceMaps) -> list[int]:
    return [len(sentence.layers), sentence.heads, len(sentence.target.tokens), len(sentence.source.tokens)]


def _list_array(flat: Sequence[np.ndarray[Any, Any]], type_: pa.DataType) -> pa.ListArray:
    dtype = np.float16 if type_.value_type == pa.float16() else np.float32
    values = np.concatenate(flat).astype(dtype) if flat else np.empty(0, dtype)
    offsets = np.zeros(len(flat) + 1, dtype=np.int32)
    np.cumsum([len(f) for f in flat], out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


class Records:
    """The records of one run, checked on opening: parts of one signature, every shard there.

    Iterating reads part by part in bounded memory; ids come in the order in which they were
    computed (by length), not in corpus order.

    Raises:
        InputError: no such directory, no or unreadable parts, parts of another schema version or of
            different runs, shards missing; and, at the end of an iteration, ids missing or doubled.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self.parts = _find_parts(self.directory)
        infos = [read_info(part) for part in self.parts]
        self.info = infos[0]
        for part, info in zip(self.parts, infos):
            if info.signature_hash != self.info.signature_hash:
                raise InputError(
                    f"{part}: part of run {info.signature_hash}, but {self.parts[0].name} is of run "
                    f"{self.info.signature_hash}: expected the parts of one run; keep one run a directory"
                )
        missing = sorted(set(range(self.info.shards)) - {info.shard for info in infos})
        if missing:
            raise InputError(
                f"{self.directory}: shards {_some(missing)} of {self.info.shards} are missing: expected a part "
                f"of each; run them (--distributed-rank) or finish the killed ones"
            )

    def __iter__(self) -> Iterator[SentenceMaps]:
        seen: set[tuple[int, int]] = set()
        for part in self.parts:
            for sentence in _read_part(part, self.info):
                key = (sentence.id, sentence.rank)
                if key in seen:
                    raise InputError(
                        f"{part}: sentence {sentence.id} (rank {sentence.rank}) is there twice: "
                        f"expected each id once; run the shards again with --norm-records-overwrite"
                    )
                seen.add(key)
                yield sentence
        ids = {id_ for id_, _ in seen}
        missing = sorted(set(range(self.info.size)) - ids)
        strange = sorted(ids - set(range(self.info.size)))
        if missing or strange:
            what = f"ids {_some(missing)} are missing" if missing else f"ids {_some(strange)} are unknown"
            raise InputError(
                f"{self.directory}: {what}: expected every id from 0 to {self.info.size - 1}; "
                f"run again with --norm-records-overwrite"
            )

    def best(self) -> Iterator[SentenceMaps]:
        """The best hypothesis (rank 0) of each sentence, stubs included."""
        return (sentence for sentence in self if sentence.rank == 0)


def read_info(part: Path) -> RunInfo:
    """The :class:`RunInfo` of a part.

    Raises:
        InputError: the file is no whole Parquet file, no record part, or of another schema version.
    """
    try:
        metadata = pq.read_schema(part).metadata or {}
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{part}: not a whole Parquet file ({text}): remove it and run its shard again") from error
    if METADATA_KEY not in metadata:
        raise InputError(f"{part}: a Parquet file without norm_records metadata: expected a part that the plugin wrote")
    fields = json.loads(metadata[METADATA_KEY])
    version = fields.get("schema_version")
    if version != SCHEMA_VERSION:
        raise InputError(
            f"{part}: records of schema version {version}: expected {SCHEMA_VERSION}; record again with this version"
        )
    return RunInfo(**{**fields, "kinds": tuple(fields["kinds"]), "layers": tuple(fields["layers"])})


def _find_parts(directory: Path) -> list[Path]:
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory: expected the --norm-records directory of a run")
    parts = sorted(p for p in directory.iterdir() if _PART_NAME.fullmatch(p.name))
    if not parts:
        raise InputError(
            f"{directory}: no record parts (part-NNNNN-of-NNNNN.parquet) in it: "
            f"expected those of a finished run; was it killed?"
        )
    return parts


def _read_part(part: Path, info: RunInfo) -> Iterator[SentenceMaps]:
    try:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=64):
                yield from _sentences(batch, info, part)
    except (pa.ArrowException, OSError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{part}: cannot be read ({text}): remove it and run its shard again") from error


def _sentences(batch: pa.RecordBatch, info: RunInfo, part: Path) -> Iterator[SentenceMaps]:
    quantities = [name for name in batch.schema.names if name in QUANTITIES]
    flat = {name: _split(batch.column(name)) for name in quantities}
    light = batch.drop_columns(quantities).to_pylist()
    for i, row in enumerate(light):
        arrays = {}
        if row["status"] == "ok":
            sizes = dict(zip("LHTS", row["shape"]))
            for name in quantities:
                shape = tuple(sizes[axis] for axis in QUANTITIES[name])
                if flat[name][i].size != np.prod(shape):
                    raise InputError(
                        f"{part}: sentence {row['id']}: {name} holds {flat[name][i].size} values: expected "
                        f"{'×'.join(map(str, shape))}; the part is damaged, run its shard again"
                    )
                arrays[name] = flat[name][i].reshape(shape)
        yield SentenceMaps(
            id=row["id"],
            rank=row["rank"],
            status=row["status"],
            score=row["score"],
            source=Side(tuple(row["source_tokens"]), np.array(row["source_words"], dtype=np.int32)),
            target=Side(tuple(row["target_tokens"]), np.array(row["target_words"], dtype=np.int32)),
            layers=info.layers,
            arrays=arrays,
        )


def _split(column: pa.ListArray) -> list[np.ndarray[Any, Any]]:
    """A list column as numpy views of its rows."""
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy(zero_copy_only=False)
    return [values[a:b] for a, b in zip(offsets[:-1], offsets[1:])]


def _some(ids: Sequence[int]) -> str:
    """The first few of ``ids``, for an error text."""
    shown = ", ".join(map(str, ids[:5]))
    return shown if len(ids) <= 5 else f"{shown}, … ({len(ids)} in all)"
