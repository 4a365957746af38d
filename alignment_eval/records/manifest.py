"""The output of a run: part files, and for each shard a manifest that lists its parts.

A shard writes its sentences in parts and replaces its manifest after each part.  A part that is not in a manifest does
not count.  So a killed run loses only its unfinished part, and no part is ever incomplete.  Records (maps) and
alignments (links) are both stored this way.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError, printable, shown
from alignment_eval.files import ContentHash, file_hash, write_lines
from alignment_eval.schema.foreign import Count, ForeignFile

SCHEMA_VERSION = 2
#: What a directory of parts may hold -> the option of fairseq-generate that writes it.
CONTENTS = {"records": "--norm-records", "alignments": "--norm-alignments"}
#: The options to continue a shard and to start it again, of fairseq-generate and of fairseq_norm_plugin.align.
RESUME = "--norm-records-resume (align: --resume)"
OVERWRITE = "--norm-records-overwrite (align: --overwrite)"
_AGAIN = "remove the file and run its shard again with this version of the plugin"
# Readers of Parquet directories (pandas) ignore names that start with an underscore.
_MANIFEST_NAME = re.compile(r"_shard-(\d{5})-of-(\d{5})\.json")


@dataclass(frozen=True)
class Part:
    """A part: its file name, the number of sentences (ids) in it, and the hash of its content."""

    name: str
    sentences: Count
    hash: str

    @classmethod
    def of(cls, path: Path, sentences: int) -> Part:
        """The complete part at ``path``."""
        return cls(path.name, sentences, file_hash(path))


@dataclass(frozen=True)
class Manifest:
    """The manifest of a shard's output.

    Attributes:
        content: what the parts hold, one of :data:`CONTENTS`.
        signature: every option that changes the content, with the hashes of model and data.
        size: number of sentences of the data set, over all shards; their ids are 0 … size - 1.
        shard: number of the shard, from 0.
        shards: number of shards.
        details: what else readers of this content need to know.
        skipped: number of sentences in the parts whose words cannot be aligned.
        finished: whether the parts hold all sentences of the shard.
        parts: the parts in the order of writing.
    """

    content: str
    signature: Mapping[str, Any]
    size: Count
    shard: Count
    shards: Count
    details: Mapping[str, Any] = field(default_factory=dict)
    skipped: Count = 0
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
        """A regular expression for the names of the shard's files."""
        return rf"{re.escape(self.name)}|part-{self.shard:05d}-of-{self.shards:05d}-\d{{5,}}\.(parquet|tsv)"

    def write(self, directory: Path, name: str | None = None) -> None:
        """Write or replace the manifest atomically, with the hashes of its signature and of itself."""
        content = {**asdict(self), "signature_hash": self.signature_hash}
        write_lines(directory / (name or self.name), [json.dumps({**content, "hash": json_hash(content)}, indent=1)])


def read_manifests(directory: str | Path, content: str) -> list[Manifest]:
    """The manifests in a directory, by shard; empty if the directory does not exist.

    Raises:
        InputError: the path is a file, or a manifest cannot be read or has another schema version or content.
    """
    directory = Path(directory)
    if directory.exists() and not directory.is_dir():
        raise InputError(f"{directory}: this is a file, but {CONTENTS[content]} needs a directory")
    if not directory.exists():
        return []
    manifests = []
    for path in sorted(directory.iterdir()):
        if _MANIFEST_NAME.fullmatch(path.name):
            manifests.append(read_manifest(path, content))
            if manifests[-1].name != path.name:
                raise InputError(f"{path}: the content is that of {manifests[-1].name}; rename the file")
    return manifests


def read_manifest(path: Path, content: str) -> Manifest:
    """Read a manifest, whatever its name.

    Raises:
        InputError: as :func:`read_manifests`.
    """
    file = ForeignFile(str(path), "the manifest of a shard", _AGAIN)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise file.error(str(error.strerror)) from error
    found = file.decode(text, dict[str, Any], schema_version=SCHEMA_VERSION)
    # Manifests of earlier versions have no hash of themselves.
    if "hash" in found and found.pop("hash") != json_hash(found):
        raise file.error("hash does not match the content")
    signed = found.pop("signature_hash", None)
    for name in sorted({*found} ^ {known.name for known in fields(Manifest)}):
        raise file.error(f"{shown(name)} is {'unknown' if name in found else 'missing'}")
    manifest = file.convert(found, Manifest)
    if signed != manifest.signature_hash:
        raise file.error("signature_hash does not match signature")
    if not (manifest.shard < manifest.shards and manifest.content in CONTENTS):
        raise file.error("content, shard or shards out of range")
    # Parts are read and deleted by name, so only our own names are allowed.
    for number, part in enumerate(manifest.parts):
        if part.name != manifest.part_name(number):
            raise file.error(f"parts[{number}].name is {shown(part.name)}: expected {manifest.part_name(number)}")
    if manifest.content != content:
        raise InputError(
            f"{path.parent}: the directory holds {manifest.content}, not {content}; give the {CONTENTS[content]} "
            f"directory of a run"
        )
    return manifest


def finished_run(directory: str | Path, content: str) -> list[Manifest]:
    """The manifests of a finished run, one per shard, in order of shards.

    Raises:
        InputError: the directory does not exist, has no manifests, or holds several runs; or a shard or part is missing
            or unfinished.
    """
    directory, option = Path(directory), CONTENTS[content]
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory; give the {option} directory of a run")
    manifests = read_manifests(directory, content)
    if not manifests:
        raise InputError(
            f"{directory}: the directory has no manifests (_shard-NNNNN-of-NNNNN.json); give the {option} directory of "
            f"a finished run; if this run was killed early, or made by a version without manifests, run it again"
        )
    first = manifests[0]
    for manifest in manifests:
        if manifest.signature_hash != first.signature_hash:
            raise InputError(
                f"{directory / manifest.name}: this is run {manifest.signature_hash}, but {first.name} is run "
                f"{first.signature_hash}, with another {differing(manifest.signature, first.signature)}; keep each run "
                f"in its own directory"
            )
        if (manifest.size, manifest.shards, manifest.details) != (first.size, first.shards, first.details):
            raise InputError(
                f"{directory / manifest.name}: size, shards or details differ from those of {first.name}; run the "
                f"shard again with {OVERWRITE}"
            )
    there = {manifest.shard for manifest in manifests}
    if len(there) < first.shards:
        missing = abbreviate((n for n in range(first.shards) if n not in there), first.shards - len(there))
        raise InputError(f"{directory}: shards {missing} of {first.shards} are missing; run them (--distributed-rank)")
    unfinished = [manifest.shard for manifest in manifests if not manifest.finished]
    if unfinished:
        raise InputError(
            f"{directory}: shards {abbreviate(unfinished, len(unfinished))} of {first.shards} are unfinished; run them "
            f"again with {RESUME}"
        )
    for manifest in manifests:
        for part in manifest.parts:
            if not (directory / part.name).is_file():
                raise InputError(
                    f"{directory / part.name}: no such file, but {manifest.name} lists it; run the shard again with "
                    f"{OVERWRITE}"
                )
    return manifests


def check_part(directory: Path, part: Part) -> None:
    """Check the content of a part against the hash in its manifest.

    Raises:
        InputError: they differ.
    """
    found = file_hash(directory / part.name)
    if found != part.hash:
        raise InputError(
            f"{directory / part.name}: the part is damaged (checksum {found}, but {shown(part.hash)} in the manifest); "
            f"run its shard again with {OVERWRITE}"
        )


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The keys whose values differ, for a message; ``outer.inner`` in nested mappings."""
    return printable(", ".join(_differing(one, other)), 300)


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
    """The first five of ``count`` ids, for a message; only these are read from ``ids``."""
    first = ", ".join(map(str, itertools.islice(ids, 5)))
    return first if count <= 5 else f"{first}, … ({count} in total)"


def json_hash(value: Any) -> str:
    """Hash of a value's JSON form; the order of keys does not matter."""
    content = ContentHash(size=8)
    content.update(json.dumps(value, sort_keys=True).encode())
    return content.whole
