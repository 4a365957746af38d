"""The output of a run in parts: a directory of Parquet files, each with the manifest of the run.

Every shard writes its sentences in parts, under a temporary name that is changed when a part is complete.  So a killed
run loses only its unfinished part.  A run is finished when its parts hold all sentences.  Records (maps) and alignments
are both stored this way.  A part of norm-align is a window of its text, whose number it has.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.maps.kinds import KINDS
from alignment_eval.reading import Count, ForeignFile, json_hash

SCHEMA_VERSION = 3
_KEY = b"alignment_eval"
_PART_NAME = re.compile(r"part-(\d{5,})-of-(\d{5,})-(\d{5,})\.parquet")
#: The columns that identify a row; alignments have no rank.
_IDS = [pa.field("id", pa.int64(), nullable=False), pa.field("rank", pa.int32(), nullable=False)]
#: What the manifests of alignments have.
_OF_ALL = ("content", "signature", "size", "shard", "shards")


@dataclass(frozen=True)
class RunInfo:
    """The manifest of a part: the run and the shard that it belongs to."""

    content: str  #: what the parts hold, ``records`` or ``alignments``
    signature: Mapping[str, Any]  #: every option that changes the content, with the hashes of model and data
    size: Count  #: number of sentences of the data set, over all shards; their ids are 0 … size - 1
    shard: Count  #: number of the shard, from 0
    shards: Count  #: number of shards
    kinds: tuple[str, ...] = ()  #: the kinds of maps; this and what follows is of records only
    layers: tuple[Count, ...] = ()  #: the numbers of the decoder layers, from 0
    heads: Count = 0  #: the number of heads of a layer
    nbest: Count = 1  #: the most hypotheses of a sentence
    profile: Optional[str] = None  #: content of the model's profile, which lies next to its checkpoint
    windows: Count = 0  #: how many parts the run has, each a window of its text; 0: not known, or of records

    @property
    def signature_hash(self) -> str:
        """Hash of the signature; identifies the run."""
        return json_hash(self.signature)

    @property
    def forced(self) -> bool:
        """Whether the targets are the references of the data set (forced scoring), not the model's translations."""
        generation = self.signature.get("generation")
        return bool(generation.get("score_reference", True)) if isinstance(generation, Mapping) else True

    def differing(self, other: RunInfo) -> str:
        """What differs if ``other`` is of another run, for a message; empty if it is of the same."""
        manifests: list[dict[str, Any]] = [json.loads(info.to_json()) for info in (self, other)]  # JSON has no tuples
        run, other_run = ({**known, "signature": None, "shard": None, **known["signature"]} for known in manifests)
        return differing(run, other_run)

    def check_same(self, other: RunInfo, where: Path, option: str) -> None:
        """Check that the output at ``where`` is of this run, as ``other`` is; ``option`` names another place."""
        if different := self.differing(other):
            raise InputError(
                f"{where}: this is output of another run (different: {different}); name another place with {option}, "
                f"or remove it"
            )

    @property
    def part_names(self) -> str:
        """The names of all parts of the shard, with ``*`` for their number."""
        return f"part-{self.shard:05d}-of-{self.shards:05d}-*.parquet"

    def part_name(self, number: int) -> str:
        """File name of part ``number`` of the shard, from 0."""
        return self.part_names.replace("*", f"{number:05d}")

    def to_json(self) -> str:
        """The manifest as JSON."""
        names = [field.name for field in fields(self)][:-1] if self.content == "records" else [*_OF_ALL]
        names += ["windows"] if self.windows else []
        return json.dumps({"schema_version": SCHEMA_VERSION, **{name: getattr(self, name) for name in names}})

    def schema(self, columns: Iterable[pa.Field], **more: str) -> pa.Schema:
        """The schema of a part with these columns, whose metadata hold this manifest and ``more``."""
        return pa.schema(columns, metadata={_KEY.decode(): self.to_json(), **more})


@dataclass(frozen=True)
class Part:
    """A part: its file, the manifest that it holds, and its number in the shard."""

    path: Path
    info: RunInfo
    number: int

    def ids(self) -> NDArray[np.int64]:
        """The ids of the sentences in the part, all of which its run has."""
        has_ranks = self.info.content == "records"
        table = part_file(self.path).table(pa.schema(_IDS if has_ranks else _IDS[:1]))
        ids: NDArray[np.int64] = table["id"].to_numpy()
        if len(strange := ids[(ids < 0) | (ids >= self.info.size)]):
            raise InputError(
                f"{self.path}: ids {abbreviate(strange.tolist(), len(strange))} are unknown: expected 0 to "
                f"{self.info.size - 1}; run its shard again"
            )
        return ids[table["rank"].to_numpy() == 0] if has_ranks else ids


def part_file(path: Path) -> ForeignFile:
    """The file of a part."""
    return ForeignFile(str(path), "a part of records or alignments", "run its shard again")


def read_manifest(file: ForeignFile, text: bytes | str, content: str | None = None) -> RunInfo:
    """The manifest that the JSON ``text`` of a file holds; it must be of ``content``, if that is given."""
    info = file.decode(text, RunInfo, schema_version=SCHEMA_VERSION)
    if info.content != (content or info.content):
        raise InputError(f"{file.name}: the file is a part of {shown(info.content)}; give a directory of {content}")
    if info.shard >= info.shards:
        raise file.error(f"shard is {info.shard} of {info.shards}")
    if len(set(info.layers)) < len(info.layers):
        raise file.error(f"layers are {shown(list(info.layers))}: expected each once")
    if info.content == "records" and not (info.kinds and set(info.kinds) <= KINDS.keys()):
        raise file.error(f"kinds are {shown(list(info.kinds))}: expected some of {', '.join(KINDS)}")
    return info


def parts_in(directory: str | Path, content: str | None = None) -> list[Part]:
    """The parts of ``content`` in a directory, by shard and number; empty if the directory does not exist."""
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: this is a file; give a directory of {content or 'parts'}")
    parts = []
    for path in sorted(directory.iterdir()) if directory.exists() else ():
        if name := _PART_NAME.fullmatch(path.name):
            file = part_file(path)
            with file.parquet() as opened:
                text = (opened.schema_arrow.metadata or {}).get(_KEY)
            if text is None:
                raise file.error("it holds no manifest of a run")
            parts.append(Part(path, read_manifest(file, text, content), int(name[3])))
    return parts


def finished_run(directory: str | Path, content: str) -> list[Part]:
    """The parts of a finished run, by shard and number."""
    directory = Path(directory)
    parts = parts_in(directory, content)
    if not parts:
        raise InputError(f"{directory}: no parts (part-NNNNN-of-NNNNN-NNNNN.parquet): give a directory of {content}")
    for part in parts[1:]:
        if different := parts[0].info.differing(part.info):
            raise InputError(
                f"{part.path}: of another run than {parts[0].path.name} (different: {different}); give each a directory"
            )
    _check_ids(directory, parts)
    return parts


def _check_ids(directory: Path, parts: Sequence[Part]) -> None:
    """Check that the parts of a run hold each of its sentences once."""
    info = parts[0].info
    unit, size = ("parts", info.windows) if info.windows else ("sentences", info.size)
    seen: set[int] = set()
    for part in parts:
        own = [part.number] if info.windows else part.ids().tolist()
        expected = len(seen) + len(own)
        seen.update(own)
        if len(seen) < expected:
            raise InputError(f"{part.path}: the part repeats sentences of itself or another part; run its shard again")
    if missing := size - len(seen):
        ids_missing = abbreviate((id_ for id_ in range(size) if id_ not in seen), missing)
        present = {part.info.shard for part in parts}
        absent = info.shards - len(present)
        shards = abbreviate((n for n in range(info.shards) if n not in present), absent)
        without = f" (shards without any part: {shards} of {info.shards})" if absent else ""
        raise InputError(f"{directory}: {unit} {ids_missing} are missing{without}: wait for the run, or resume it")


def differing(first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """The keys whose values differ, for a message; ``outer.inner`` in nested mappings."""
    one, other = _flat(first), _flat(second)
    keys = [key for key in sorted({*one, *other}) if one.get(key) != other.get(key)]
    return printable(", ".join(keys), 300)


def _flat(nested_fields: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The fields of nested mappings by their paths."""
    flat: dict[str, Any] = {}
    for key, value in nested_fields.items():
        nested = isinstance(value, Mapping) and value
        flat |= _flat(value, f"{prefix}{key}.") if nested else {f"{prefix}{key}": value}
    return flat


def abbreviate(ids: Iterable[int], count: int) -> str:
    """The first five of ``count`` ids, for a message; only these are read from ``ids``."""
    first = ", ".join(map(str, itertools.islice(ids, 5)))
    return first if count <= 5 else f"{first}, … ({count} in total)"
