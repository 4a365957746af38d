"""The output of a run in parts: whole files, and a manifest a shard that says which of them count.

A shard writes its sentences in parts of so many; after each part it replaces its manifest.  A part that no manifest
lists does not count, so a killed run loses what it had not yet finished a part of, and nothing is ever half there.
Records (maps) and alignments (links) are both kept so; what a part holds is their own affair.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError
from alignment_eval.files import ContentHash, file_hash, write_lines

SCHEMA_VERSION = 2
#: What a directory of parts may hold -> the option of fairseq-generate that writes it.
CONTENTS = {"records": "--norm-records", "alignments": "--norm-alignments"}
#: What goes on with a shard, and what begins it anew: options of fairseq-generate, and of fairseq_norm_plugin.align.
RESUME = "--norm-records-resume (align: --resume)"
OVERWRITE = "--norm-records-overwrite (align: --overwrite)"
_TYPES = {
    **{"content": str, "signature": dict, "details": dict, "finished": bool, "parts": list},
    **dict.fromkeys(("size", "shard", "shards", "skipped", "schema_version"), int),
}
_PART_TYPES = {"name": str, "sentences": int, "hash": str}
# Readers of Parquet directories (pandas) pass over names that start with an underscore.
_MANIFEST_NAME = re.compile(r"_shard-(\d{5})-of-(\d{5})\.json")


@dataclass(frozen=True)
class Part:
    """A part: its file name, how many sentences (ids) it holds, and the hash of its content."""

    name: str
    sentences: int
    hash: str

    @classmethod
    def of(cls, path: Path, sentences: int) -> Part:
        """The part that lies at ``path``, whole."""
        return cls(path.name, sentences, file_hash(path))


@dataclass(frozen=True)
class Manifest:
    """What a shard says of its output.

    Attributes:
        content: what the parts hold, of :data:`CONTENTS`.
        signature: every option that changes the content, with the hashes of model and data.
        size: sentences of the data set, over all shards; their ids are 0 … size - 1.
        shard: number of the shard, from 0.
        shards: number of shards.
        details: what readers of this content need to know besides.
        skipped: sentences in the parts whose words cannot be aligned.
        finished: whether the parts hold all sentences of the shard.
        parts: in the order of writing.
    """

    content: str
    signature: Mapping[str, Any]
    size: int
    shard: int
    shards: int
    details: Mapping[str, Any] = field(default_factory=dict)
    skipped: int = 0
    finished: bool = False
    parts: tuple[Part, ...] = ()
    schema_version: int = SCHEMA_VERSION

    @property
    def signature_hash(self) -> str:
        """Hash of the signature; identifies the run."""
        return json_hash(self.signature)

    @property
    def name(self) -> str:
        """File name of the manifest."""
        return f"_shard-{self.shard:05d}-of-{self.shards:05d}.json"

    def part_name(self, number: int) -> str:
        """File name of part ``number``, from 0."""
        suffix = "parquet" if self.content == "records" else "tsv"
        return f"part-{self.shard:05d}-of-{self.shards:05d}-{number:05d}.{suffix}"

    @property
    def file_names(self) -> str:
        """A regular expression of what the shard's files are called."""
        return rf"{re.escape(self.name)}|part-{self.shard:05d}-of-{self.shards:05d}-\d{{5,}}\.(parquet|tsv)"

    def write(self, directory: Path, name: str | None = None) -> None:
        """Write or replace the manifest, with the hashes of its signature and of itself; whole or not at all."""
        content = {**asdict(self), "signature_hash": self.signature_hash}
        write_lines(directory / (name or self.name), [json.dumps({**content, "hash": json_hash(content)}, indent=1)])


def read_manifests(directory: str | Path, content: str) -> list[Manifest]:
    """The manifests in a directory, by shard; none if it is not there.

    Raises:
        InputError: it is a file; a manifest cannot be read, is of another schema version or another content.
    """
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: is a file: expected a directory for {CONTENTS[content]}")
    if not directory.exists():
        return []
    manifests = []
    for path in sorted(directory.iterdir()):
        if _MANIFEST_NAME.fullmatch(path.name):
            manifests.append(read_manifest(path, content))
            if manifests[-1].name != path.name:
                raise InputError(f"{path}: is the manifest {manifests[-1].name} by its content; rename it")
    return manifests


def read_manifest(path: Path, content: str) -> Manifest:
    """Read a manifest, whatever its name.

    Raises:
        InputError: as :func:`read_manifests`.
    """
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        version = found["schema_version"]
        manifest = _parsed(found) if version == SCHEMA_VERSION else None
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(
            f"{path}: cannot be read as the manifest of a shard ({error!r}): remove it and run its shard again"
        ) from error
    if manifest is None:
        raise InputError(
            f"{path}: schema version {abbreviated(version)}: expected {SCHEMA_VERSION}; run it again with this version "
            f"of the plugin"
        )
    if manifest.content != content:
        raise InputError(
            f"{path.parent}: holds {manifest.content}: expected {content}, the {CONTENTS[content]} directory of a run"
        )
    return manifest


def _parsed(found: dict[str, Any]) -> Manifest:
    """The manifest of what JSON holds.

    Raises:
        ValueError, TypeError, KeyError: it is damaged, or is no manifest.
    """
    found = dict(found)
    # Manifests of earlier versions have no hash of themselves.
    if "hash" in found and found.pop("hash") != json_hash(found):
        raise ValueError("its hash is not that of its content")
    if found.pop("signature_hash") != json_hash(found["signature"]):
        raise ValueError("signature_hash is not the hash of signature")
    _check_types(found, _TYPES)
    for part in found["parts"]:
        _check_types(part, _PART_TYPES)
    manifest = Manifest(**{**found, "parts": tuple(Part(**part) for part in found["parts"])})
    if not (0 <= manifest.shard < manifest.shards and manifest.size >= 0 and manifest.content in CONTENTS):
        raise ValueError("content, size, shard or shards out of range")
    # Parts are read and deleted by their names: no name but our own.
    strange = [part.name for number, part in enumerate(manifest.parts) if part.name != manifest.part_name(number)]
    if strange:
        raise ValueError(f"a part is called {abbreviated(strange[0])}")
    return manifest


def _check_types(found: Mapping[str, Any], types: Mapping[str, type]) -> None:
    for name, expected in types.items():
        if type(found[name]) is not expected:
            raise TypeError(f"{name} is {abbreviated(found[name])}")


def finished_run(directory: str | Path, content: str) -> list[Manifest]:
    """The manifests of a run, one a shard, all finished, all of one signature, all parts there; by shard.

    Raises:
        InputError: this is not what ``directory`` holds.
    """
    directory, option = Path(directory), CONTENTS[content]
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory: expected the {option} directory of a run")
    manifests = read_manifests(directory, content)
    if not manifests:
        raise InputError(
            f"{directory}: no manifests (_shard-NNNNN-of-NNNNN.json) in it: expected those of a finished run with "
            f"{option}; was it killed, or made by an earlier version?"
        )
    first = manifests[0]
    for manifest in manifests:
        if manifest.signature_hash != first.signature_hash:
            raise InputError(
                f"{directory / manifest.name}: of run {manifest.signature_hash}, but {first.name} is of run "
                f"{first.signature_hash} (their {differing(manifest.signature, first.signature)} differ): expected the "
                f"shards of one run; keep one run a directory"
            )
        if (manifest.size, manifest.shards, manifest.details) != (first.size, first.shards, first.details):
            raise InputError(
                f"{directory / manifest.name}: its size, shards or details differ from those of {first.name}: expected "
                f"the shards of one run; run it again with {OVERWRITE}"
            )
    there = {manifest.shard for manifest in manifests}
    if len(there) < first.shards:
        missing = abbreviate((n for n in range(first.shards) if n not in there), first.shards - len(there))
        raise InputError(
            f"{directory}: shards {missing} of {first.shards} are missing: expected the output of each; "
            f"run them (--distributed-rank)"
        )
    unfinished = [manifest.shard for manifest in manifests if not manifest.finished]
    if unfinished:
        raise InputError(
            f"{directory}: shards {abbreviate(unfinished, len(unfinished))} of {first.shards} are unfinished: expected "
            f"all sentences of each; run them again with {RESUME}"
        )
    for manifest in manifests:
        for part in manifest.parts:
            if not (directory / part.name).is_file():
                raise InputError(
                    f"{directory / part.name}: no such file, but {manifest.name} lists it: expected every part; "
                    f"run the shard again with {OVERWRITE}"
                )
    return manifests


def check_part(directory: Path, part: Part) -> None:
    """Check that a part's content is what the manifest says.

    Raises:
        InputError: it is not.
    """
    found = file_hash(directory / part.name)
    if found != part.hash:
        raise InputError(
            f"{directory / part.name}: checksum {found}: expected {part.hash}, as the manifest says; the part is "
            f"damaged, run its shard again with {OVERWRITE}"
        )


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The keys whose values differ, for an error text; ``outer.inner`` in nested mappings."""
    return ", ".join(_differing(one, other))


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    names: list[str] = []
    for key in sorted({*one, *other}):
        mine, its = one.get(key), other.get(key)
        if isinstance(mine, Mapping) and isinstance(its, Mapping):
            names += [f"{key}.{inner}" for inner in _differing(mine, its)]
        elif mine != its:
            names.append(key)
    return names


def abbreviate(ids: Iterable[int], count: int) -> str:
    """The first few of ``count`` ids, for an error text; no more of them are taken."""
    shown = ", ".join(map(str, itertools.islice(ids, 5)))
    return shown if count <= 5 else f"{shown}, … ({count} in all)"


def abbreviated(value: Any) -> str:
    """A foreign value for an error text: escaped, and 80 characters of it."""
    text = ascii(value)
    return text if len(text) <= 80 else f"{text[:79]}…"


def json_hash(value: Any) -> str:
    """Hash of a value as JSON has it, whatever the order of its keys."""
    content = ContentHash(size=8)
    content.update(json.dumps(value, sort_keys=True).encode())
    return content.whole
