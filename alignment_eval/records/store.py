"""The record format: a directory of Parquet parts with one row per sentence pair (docs/formats.md).

The plugin writes it and ``align-eval`` reads it; both use the schema of this module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import QUANTITIES, SentenceMaps, SentenceSide
from alignment_eval.records.manifest import Manifest, abbreviate, abbreviated, check_part, finished_run, json_hash

DTYPES = {"float32": pa.float32(), "float16": pa.float16()}
_HALF = np.finfo(np.float16)


@dataclass(frozen=True)
class RunInfo:
    """The run that records come from.

    ``signature`` holds every option that changes the numbers, with the hashes of model and data.  ``size`` is the
    number of sentences of the data set, over all shards; their ids are 0 … size - 1.
    """

    signature: Mapping[str, Any]
    kinds: tuple[str, ...]
    layers: tuple[int, ...]
    heads: int
    dtype: str
    size: int
    nbest: int
    shard: int
    shards: int
    profile: str | None = None  # content of the profile beside the model's checkpoint

    @property
    def signature_hash(self) -> str:
        """Hash of the signature; identifies the run."""
        return json_hash(self.signature)

    @property
    def forced(self) -> bool:
        """Whether the targets are the references of the data set (forced scoring), not the model's translations."""
        return bool(self.signature.get("generation", {}).get("score_reference", True))

    @property
    def manifest(self) -> Manifest:
        """The manifest of a shard that has no part yet."""
        details = {"kinds": self.kinds, "layers": self.layers, "heads": self.heads, "dtype": self.dtype}
        return Manifest(
            content="records",
            signature=self.signature,
            size=self.size,
            shard=self.shard,
            shards=self.shards,
            details={**details, "nbest": self.nbest, **({} if self.profile is None else {"profile": self.profile})},
        )

    @classmethod
    def of(cls, manifest: Manifest) -> RunInfo:
        """The run information in a manifest.

        Raises:
            InputError: the details are not those of records, or contradict the signature.
        """
        details = manifest.details
        wrong = [name for name, valid in _DETAILS.items() if name not in details or not valid(details[name])]
        wrong += [name for name in _DETAILS if name in manifest.signature and manifest.signature[name] != details[name]]
        if wrong:
            raise InputError(
                f"{manifest.name}: the manifest is damaged ({wrong[0]} in details is "
                f"{abbreviated(details.get(wrong[0]))}); remove it and run its shard again"
            )
        return cls(
            signature=manifest.signature,
            kinds=tuple(details["kinds"]),
            layers=tuple(details["layers"]),
            heads=details["heads"],
            dtype=details["dtype"],
            size=manifest.size,
            nbest=details["nbest"],
            shard=manifest.shard,
            shards=manifest.shards,
            profile=None if details.get("profile") is None else str(details["profile"]),
        )


def _number(value: Any) -> bool:
    return type(value) is int and value >= 0


#: Checks of the details of records.
_DETAILS: dict[str, Callable[[Any], bool]] = {
    "kinds": lambda kinds: isinstance(kinds, list) and all(isinstance(kind, str) for kind in kinds),
    "layers": lambda layers: isinstance(layers, list) and all(map(_number, layers)) and len({*layers}) == len(layers),
    "heads": _number,
    "dtype": lambda dtype: isinstance(dtype, str) and dtype in DTYPES,
    "nbest": _number,
}


def arrow_schema(info: RunInfo, quantities: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a part that records ``quantities``."""
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
    return pa.schema(fields)


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a part.  It stores all first bytes of the values, then all second ones, …, which zstd compresses."""
    values = [f"{field.name}.list.element" for field in schema if field.name in QUANTITIES]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, use_byte_stream_split=values)


def to_table(sentences: Sequence[SentenceMaps], schema: pa.Schema) -> pa.Table:
    """Rows of ``schema`` for ``sentences``; a sentence without maps becomes a stub with its status.

    Raises:
        InputError: float16 cannot hold the largest value of a row in full precision.
    """
    columns: dict[str, Any] = {
        "id": [s.id for s in sentences],
        "rank": [s.rank for s in sentences],
        "status": [s.status for s in sentences],
        "score": [s.score for s in sentences],
        "shape": [_shape(s) if s.arrays else [] for s in sentences],
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
            half = field.type.value_type == pa.float16()
            flat = [_values(s, field.name, half) if s.arrays else np.empty(0, np.float32) for s in sentences]
            arrays.append(_list_array(flat, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _shape(sentence: SentenceMaps) -> list[int]:
    return [len(sentence.layers), sentence.heads, len(sentence.target.tokens), len(sentence.source.tokens)]


def _values(sentence: SentenceMaps, name: str, half: bool) -> np.ndarray[Any, Any]:
    """The flat values of a quantity, in float16 if ``half``; NaN and infinities of the model are kept."""
    array = sentence.arrays[name]
    if not half:
        return array.ravel().astype(np.float32, copy=False)
    finite = np.where(np.isfinite(array), array, 0)
    largest = finite.max(axis=-1, initial=0)  # of each row: alignments are read from the largest values
    for wrong in (largest > float(_HALF.max), (largest > 0) & (largest < float(_HALF.smallest_normal))):
        if wrong.any():
            raise InputError(
                f"sentence {sentence.id}: {name} has a row whose largest value is {largest[wrong][0]:.3g}, but float16 "
                f"has full precision only from {_HALF.smallest_normal:.1e} to {_HALF.max:.0f}; "
                f"record with --norm-records-dtype float32"
            )
    return array.ravel().astype(np.float16)


def _list_array(flat: Sequence[np.ndarray[Any, Any]], type_: pa.DataType) -> pa.ListArray:
    dtype = np.float16 if type_.value_type == pa.float16() else np.float32
    values = np.concatenate([*flat, np.empty(0, dtype)], dtype=dtype)
    offsets = np.zeros(len(flat) + 1, dtype=np.int32)
    np.cumsum([len(f) for f in flat], out=offsets[1:])
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values))


class Records:
    """The records of one run.  Opening checks that all shards belong to one run, are present and are finished.

    Iterating reads part by part in bounded memory; ids come in the order in which they were computed (by length), not
    in corpus order.

    Raises:
        InputError: the directory does not exist, has no manifests, has manifests of another schema version or of
            several runs, or shards or parts are missing or unfinished; while iterating, if a part is damaged or an id
            is missing or duplicate.
    """

    def __init__(self, directory: str | Path) -> None:
        self.directory = Path(directory)
        self._manifests = finished_run(self.directory, "records")
        self.info = RunInfo.of(self._manifests[0])
        held = sum(part.sentences for manifest in self._manifests for part in manifest.parts)
        if held != self.info.size:  # checked before memory for that many sentences is allocated
            raise InputError(
                f"{self.directory}: the parts hold {held} sentences, but the data set has {self.info.size}; run the "
                f"shards again with --norm-records-overwrite"
            )

    def __iter__(self) -> Iterator[SentenceMaps]:
        seen: set[tuple[int, int]] = set()
        for manifest in self._manifests:
            for part in manifest.parts:
                check_part(self.directory, part)
                for sentence in _read_part(self.directory / part.name, self.info):
                    key = (sentence.id, sentence.rank)
                    if key in seen:
                        raise InputError(
                            f"{self.directory / part.name}: duplicate sentence {sentence.id} (rank {sentence.rank}); "
                            f"run the shards again with --norm-records-overwrite"
                        )
                    seen.add(key)
                    yield sentence
        ids = {id_ for id_, _ in seen}
        size = self.info.size
        strange = sorted(id_ for id_ in ids if not 0 <= id_ < size)
        missing = size - len(ids) + len(strange)
        if missing or strange:
            what = f"ids {abbreviate(strange, len(strange))} are unknown"
            if missing:
                what = f"ids {abbreviate((id_ for id_ in range(size) if id_ not in ids), missing)} are missing"
            raise InputError(
                f"{self.directory}: {what}; the records must have every id from 0 to {size - 1}; "
                f"run the shards again with --norm-records-overwrite"
            )

    def best(self) -> Iterator[SentenceMaps]:
        """The best hypothesis (rank 0) of each sentence, stubs included."""
        return (sentence for sentence in self if sentence.rank == 0)


def part_ids(part: Path) -> list[int]:
    """The ids of the sentences in a part; an id occurs once for each of its ranks.

    Raises:
        InputError: the part cannot be read.
    """
    try:
        ids: list[int] = pq.read_table(part, columns=["id"])["id"].to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part, error) from error
    return ids


def _read_part(part: Path, info: RunInfo) -> Iterator[SentenceMaps]:
    try:
        with pq.ParquetFile(part) as file:
            for batch in file.iter_batches(batch_size=64):
                yield from _sentences(batch, info, part)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(part, error) from error


def _unreadable(part: Path, error: Exception) -> InputError:
    text = " ".join(str(error).split())
    return InputError(f"{part}: cannot read the part ({text}); run its shard again with --norm-records-overwrite")


def _sentences(batch: pa.RecordBatch, info: RunInfo, part: Path) -> Iterator[SentenceMaps]:
    quantities = [name for name in batch.schema.names if name in QUANTITIES]
    flat = {name: _split(batch.column(name)) for name in quantities}
    light = batch.drop_columns(quantities).to_pylist()
    heads = info.heads if any("H" in QUANTITIES[name] for name in quantities) else 0  # as SentenceMaps.heads
    for i, row in enumerate(light):
        arrays = {}
        if row["shape"] or row["status"] == "ok":
            expected = [len(info.layers), heads, len(row["target_tokens"]), len(row["source_tokens"])]
            if row["shape"] != expected:
                raise InputError(
                    f"{part}: the part is damaged: sentence {row['id']} has shape {abbreviated(row['shape'])}, but its "
                    f"layers, heads and tokens give {expected}; run its shard again with --norm-records-overwrite"
                )
            sizes = dict(zip("LHTS", row["shape"]))
            for name in quantities:
                shape = tuple(sizes[axis] for axis in QUANTITIES[name])
                if flat[name][i].size != np.prod(shape):
                    raise InputError(
                        f"{part}: the part is damaged: {name} of sentence {row['id']} has {flat[name][i].size} values "
                        f"instead of {'×'.join(map(str, shape))}; run its shard again with --norm-records-overwrite"
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


def _split(column: pa.ListArray) -> list[np.ndarray[Any, Any]]:
    """A list column as numpy views of its rows."""
    offsets = column.offsets.to_numpy()
    values = column.values.to_numpy(zero_copy_only=False)
    return [values[a:b] for a, b in zip(offsets[:-1], offsets[1:])]
