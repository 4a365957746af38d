"""The record format: a directory of Parquet parts with one row per sentence pair (docs/formats.md).

The plugin writes it and ``align-eval`` reads it; both use the schema of this module.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Optional

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.maps.sentence import QUANTITIES, SentenceMaps, SentenceSide
from alignment_eval.records.manifest import Manifest, abbreviate, check_part, finished_run, json_hash
from alignment_eval.schema.foreign import Count, ForeignFile
from alignment_eval.schema.table import (
    MAX_GROUP_BYTES,
    check_columns,
    check_group_size,
    check_group_sizes,
    check_values,
    list_lengths,
)

DTYPES = {"float32": pa.float32(), "float16": pa.float16()}
#: The columns of every part.
_FIELDS = [
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
_HALF = np.finfo(np.float16)
#: The maps of one sentence leave room in it for its texts, and for the sentences before it.
_MAX_SENTENCE_BYTES = MAX_GROUP_BYTES - 2**26
#: Bytes of a value of Parquet's types in memory, if not 8.
_WIDTHS = {"BOOLEAN": 1, "FLOAT": 4, "INT32": 4}
#: Encodings of texts and numbers that are not much smaller than these: no dictionaries, no differences.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "BYTE_STREAM_SPLIT"}


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
        file = ForeignFile(manifest.name, "the manifest of records", "remove it and run its shard again")
        details = file.convert(manifest.details, _Details, "details")
        file.convert(manifest.signature, _Signature, "signature")
        if len({*details.layers}) < len(details.layers):
            raise file.error(f"details.layers is {shown(manifest.details['layers'])}: expected each layer once")
        for name, value in manifest.details.items():
            if manifest.signature.get(name, value) != value:
                raise file.error(f"details.{name} is {shown(value)}, unlike in the signature")
        return cls(
            **msgspec.structs.asdict(details),
            signature=manifest.signature,
            size=manifest.size,
            shard=manifest.shard,
            shards=manifest.shards,
        )


class _Details(msgspec.Struct, forbid_unknown_fields=True):
    """The details of records in a manifest."""

    kinds: tuple[str, ...]
    layers: tuple[Count, ...]
    heads: Count
    dtype: Literal["float32", "float16"]
    nbest: Count
    profile: Optional[str] = None


class _Signature(msgspec.Struct):
    """What is read of the signature of records."""

    model: Optional[str] = None
    generation: dict[str, Any] = {}


def arrow_schema(info: RunInfo, quantities: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a part that records ``quantities``."""
    value = DTYPES[info.dtype]
    return pa.schema([*_FIELDS, *(pa.field(name, pa.list_(value), nullable=False) for name in quantities)])


def parquet_writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer of a part.  It stores all first bytes of the values, then all second ones, …, which zstd compresses."""
    values = [f"{field.name}.list.element" for field in schema if field.name in QUANTITIES]
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False, use_byte_stream_split=values)


def to_table(sentences: Sequence[SentenceMaps], schema: pa.Schema) -> pa.Table:
    """Rows of ``schema`` for ``sentences``; a sentence without maps becomes a stub with its status.

    Raises:
        InputError: float16 cannot hold the largest value of a row in full precision, or the maps of a sentence are too
            large.
    """
    for sentence in sentences:
        size = sum(array.nbytes for array in sentence.arrays.values())
        if size > _MAX_SENTENCE_BYTES:
            raise InputError(
                f"sentence {sentence.id}: its maps take {size} bytes, but records hold at most {_MAX_SENTENCE_BYTES} a "
                f"sentence; record fewer kinds, or exclude long sentences with --max-source-positions and "
                f"--max-target-positions"
            )
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
    with _open_part(part) as (file, opened):
        expected = pa.schema([_FIELDS[0]])
        found = opened.schema_arrow
        check_columns(pa.schema([field for field in found if field.name == "id"]), expected, file)
        table = opened.read(columns=["id"])
        for batch in table.to_batches():
            check_values(batch, expected, file)
        ids: list[int] = table["id"].to_pylist()
    return ids


@contextmanager
def _open_part(part: Path) -> Iterator[tuple[ForeignFile, pq.ParquetFile]]:
    file = ForeignFile(str(part), "a part of records", "run its shard again with --norm-records-overwrite")
    try:
        with pq.ParquetFile(part) as opened:
            check_group_sizes(opened.metadata, file)
            yield file, opened
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise file.error(printable(str(error), 200)) from error


def _check_columns_size(metadata: Any, file: ForeignFile) -> None:
    """Check that no row group is larger than the plugin writes it, all columns together, in encodings that do not grow.

    Only for parts whose hash is right: pyarrow ends the process at some damaged descriptions of columns.
    """
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = [group.column(k) for k in range(group.num_columns)]
        for column in columns:
            if strange := {*column.encodings} - _ENCODINGS:
                raise file.error(f"column {shown(column.path_in_schema)} is encoded as {shown(min(strange))}")
        sizes = (max(c.total_uncompressed_size, _WIDTHS.get(c.physical_type, 8) * c.num_values) for c in columns)
        check_group_size(sum(sizes), file)


def _read_part(part: Path, info: RunInfo) -> Iterator[SentenceMaps]:
    with _open_part(part) as (file, opened):
        quantities = [name for name in opened.schema_arrow.names if name in QUANTITIES]
        schema = arrow_schema(info, quantities)
        check_columns(opened.schema_arrow, schema, file)
        _check_columns_size(opened.metadata, file)
        for batch in opened.iter_batches(batch_size=64):
            check_values(batch, schema, file, signed=("score",))
            for side in ("source", "target"):
                _check_words(batch, side, file)
            yield from _sentences(batch, info, quantities, file)


def _check_words(batch: pa.RecordBatch, side: str, file: ForeignFile) -> None:
    """Check that each token of one side has a word, which is -1 if the token is special."""
    tokens, words, special = (batch.column(f"{side}_{name}") for name in ("tokens", "words", "special"))
    lengths = list_lengths(tokens)
    for name, column in (("words", words), ("special", special)):
        if (wrong := np.flatnonzero(list_lengths(column) != lengths)).size:
            raise file.error(
                f"sentence {batch['id'][wrong[0]]} has {lengths[wrong[0]]} {side} tokens, but {side}_{name} is another "
                f"number of values"
            )
    numbers = words.flatten().to_numpy()
    if (numbers >= np.repeat(lengths, lengths)).any() or (numbers < -1).any():
        raise file.error(f"{side}_words has a number that is not -1 or a word of its sentence")
    if ((numbers < 0) != special.flatten().to_numpy(zero_copy_only=False)).any():
        raise file.error(f"{side}_special contradicts {side}_words")


def _sentences(
    batch: pa.RecordBatch, info: RunInfo, quantities: Sequence[str], file: ForeignFile
) -> Iterator[SentenceMaps]:
    flat = {name: _split(batch.column(name)) for name in quantities}
    light = batch.drop_columns([*quantities, "source_special", "target_special"]).to_pylist()
    heads = info.heads if any("H" in QUANTITIES[name] for name in quantities) else 0  # as SentenceMaps.heads
    for i, row in enumerate(light):
        arrays = {}
        if row["shape"] or row["status"] == "ok":
            expected = [len(info.layers), heads, len(row["target_tokens"]), len(row["source_tokens"])]
            if row["shape"] != expected:
                raise file.error(
                    f"sentence {row['id']} has shape {shown(row['shape'])}, but its layers, heads and tokens give "
                    f"{expected}"
                )
            sizes = dict(zip("LHTS", row["shape"]))
            for name in quantities:
                shape = tuple(sizes[axis] for axis in QUANTITIES[name])
                if flat[name][i].size != np.prod(shape):
                    raise file.error(
                        f"{name} of sentence {row['id']} has {flat[name][i].size} values instead of "
                        f"{'×'.join(map(str, shape))}"
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
