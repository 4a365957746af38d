"""Work in parts: a directory of Parquet files, each with the manifest of its run, and the file that they join to.

Every shard writes its sentences in parts, under a temporary name that is changed when a part is complete.  So a killed
run loses only its unfinished part.  A run is finished when its parts hold all sentences.  Records (maps) and alignments
are both stored this way.  A part of norm-align is a window of its text, whose number it has.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.alignment import Form
from alignment_eval.errors import InputError, printable, shown
from alignment_eval.extraction.pair_scores import PAIR_SCORES, WORD_SCORES
from alignment_eval.files import NewFile, Value, check_new, fields_of, signature, writing_errors
from alignment_eval.maps.sentence import KINDS, quantities
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


# ---- the parts of a shard are written

#: Bytes of a row group.
_BUFFER_BYTES = 8 * 2**20


class Names(NamedTuple):
    """What a command calls the options that continue a run, replace it, and name another place."""

    resume: str
    overwrite: str
    place: str


def own_parts(directory: Path, content: str, shard: int, shards: int) -> Iterator[Part]:
    """The parts of a shard in a directory, of any run."""
    return (part for part in parts_in(directory, content) if (part.info.shard, part.info.shards) == (shard, shards))


def check_not_begun(own: Sequence[Part], directory: Path, shards: int, names: Names, allowed: bool) -> None:
    """Check that a shard has no parts of its ``own``, unless an option says what to do with them."""
    if own and not allowed:
        raise InputError(
            f"{directory}: holds parts of this {'run' if shards == 1 else 'shard'} already: it was stopped, or is "
            f"running; give {names.resume}, {names.overwrite}, or another place with {names.place}"
        )


class PartsWriter:
    """The output of one shard in a directory of parts.

    :meth:`add` takes rows, :meth:`commit` makes a part of them.  The shard's earlier parts are continued (``resume``),
    replaced (``overwrite``) or refused.

    Attributes:
        kept: the earlier parts that are continued.
    """

    def __init__(
        self,
        directory: Path,
        info: RunInfo,
        schema: pa.Schema,
        names: Names,
        resume: bool = False,
        overwrite: bool = False,
    ) -> None:
        self.directory, self.info, self.schema = directory, info, schema
        parts = parts_in(directory, info.content)
        own = [part for part in parts if part.info.shard == info.shard]
        self._stale, self.kept = (own, []) if overwrite else ([], own)
        for part in parts:
            if not (info.windows and part in self._stale) and (different := part.info.differing(info)):
                raise InputError(
                    f"{part.path}: this is output of another run (different: {different}); name another place with "
                    f"{names.place}, or remove it"
                )
        check_not_begun(self.kept, directory, info.shards, names, resume)
        self._number = max((part.number + 1 for part in self.kept), default=0)
        self._transient = not directory.exists()
        with writing_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._file: NewFile | None = None
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[pa.Table] = []
        self._bytes = 0
        atexit.register(self.abandon)  # fairseq-generate has no hook for the end of a run

    def add(self, rows: pa.Table) -> None:
        """Add rows to the next part."""
        if rows.num_rows:
            self._rows.append(rows)
            self._bytes += rows.nbytes
        if self._bytes > _BUFFER_BYTES and not self.info.windows:  # the number of a window comes with its end
            with writing_errors(self.directory):
                self._flush()

    def commit(self, number: int | None = None) -> None:
        """Make a part of the rows added since the last one; ``number``: its own, default: the next."""
        self._number = self._number if number is None else number
        with writing_errors(self.directory):
            self._flush()
            if self._file is not None and self._writer is not None:
                self._writer.close()
                if self.info.windows == 0 and (path := self.directory / self.info.part_name(self._number)).exists():
                    raise InputError(f"{path}: another process has written this part; run each shard once")
                self._file.keep()
                self._number += 1
                self._file = self._writer = None

    def finish(self) -> None:
        """Make the last part, and remove what killed processes of this shard have left."""
        self.commit()
        with writing_errors(self.directory):
            self._remove_stale()  # nothing was left to write
            for path in self.directory.glob(f".{self.info.part_names}.*.tmp"):
                path.unlink()
        self.abandon()

    def abandon(self) -> None:
        """Remove the unfinished part (also at the end of the interpreter); the complete ones stay."""
        atexit.unregister(self.abandon)
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):  # the part is removed even if the disk is full
                self._writer.close()
        if self._file is not None:
            self._file.drop()
        self._file = self._writer = None
        if self._transient:
            with suppress(OSError):  # the directory is not empty
                self.directory.rmdir()

    def remove(self) -> None:
        """Remove all parts of the run, and the directory if nothing else is in it."""
        for part in parts_in(self.directory, self.info.content):
            part.path.unlink()
        with suppress(OSError):  # it does not exist, or holds something else
            self.directory.rmdir()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._remove_stale()
            self._file = NewFile(self.directory / self.info.part_name(self._number))
            # of maps all first bytes are stored, then all second ones, …, which zstd compresses
            values = [f"{field.name}.list.element" for field in self.schema if field.name in quantities()]
            options = {"use_dictionary": False, "use_byte_stream_split": values} if values else {}
            options |= {"compression": "zstd", "write_page_checksum": True}
            self._writer = pq.ParquetWriter(self._file.path, self.schema, **options)
        self._writer.write_table(pa.concat_tables(self._rows).cast(self.schema))
        self._rows, self._bytes = [], 0

    def _remove_stale(self) -> None:
        """Remove the parts that are overwritten."""
        for part in self._stale:
            part.path.unlink()
        self._stale = []


# ---- alignments in parts

#: The columns that may lack a value, and those that may be below 0.
_OPTIONAL = {"confidences", "score", *PAIR_SCORES, *WORD_SCORES}
_SIGNED = ("score", "log_prob", "reverse_log_prob")


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
