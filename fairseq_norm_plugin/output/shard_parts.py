"""Writes the output of one shard in atomic parts; subclasses define the content of a part."""

from __future__ import annotations

import atexit
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, Optional, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import NewFile, WriterLock, remove_left_over_files, writing_errors
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records import merge
from alignment_eval.records import store as records
from alignment_eval.records.manifest import CONTENTS, Manifest, Part, abbreviate, differing, read_manifests

_PART_IDS = {"records": records.part_ids, "alignments": merge.part_ids}


@dataclass(frozen=True)
class IfExists:
    """What to do with earlier output of a shard: resume, overwrite or, by default, refuse.

    ``options`` are the names of the two options, for messages; ``output_option`` is the option that names the output.
    """

    resume: bool = False
    overwrite: bool = False
    options: tuple[str, str] = ("--norm-records-resume", "--norm-records-overwrite")
    output_option: Optional[str] = None  # default: the option of the content


def written_ids(directory: Path, content: str, shard: int, shards: int) -> NDArray[np.int64]:
    """The ids of the sentences in a shard's parts, of any run.

    Raises:
        InputError: the directory holds something else, or a part cannot be read.
    """
    ids = [
        part_ids(directory, manifest)
        for manifest in read_manifests(directory, content)
        if (manifest.shard, manifest.shards) == (shard, shards)
    ]
    return np.concatenate([np.empty(0, dtype=np.int64), *ids])


def part_ids(directory: Path, manifest: Manifest) -> NDArray[np.int64]:
    """The ids of the sentences in the parts that a manifest lists.

    Raises:
        InputError: a part cannot be read, or holds sentences that are not in the data set.
    """
    ids = [np.array(_PART_IDS[manifest.content](directory / part.name), dtype=np.int64) for part in manifest.parts]
    found = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *ids]))
    strange = found[(found < 0) | (found >= manifest.size)]
    if len(strange):
        raise InputError(
            f"{directory / manifest.name}: the parts hold sentences {abbreviate(strange.tolist(), len(strange))}, "
            f"which are not in 0 to {manifest.size - 1}; remove the file and run its shard again"
        )
    return found


class Written(Protocol):
    """An item of a part: the output for one sentence."""

    @property
    def id(self) -> int:
        """The sentence's number, from 0."""

    @property
    def ok(self) -> bool:
        """Whether the sentence has maps."""


Item = TypeVar("Item", bound=Written)


class ShardParts(ABC, Generic[Item]):
    """The output of one shard in a directory of parts (alignment_eval/records/manifest.py).

    :meth:`write` adds sentences, :meth:`commit` makes a part of them, :meth:`finish` declares the shard finished.
    Sentences that are already in its parts are ignored.  From construction until :meth:`finish` or :meth:`abandon` no
    other process can write the same shard.

    Raises:
        InputError: the directory is a file or holds shards of another run; this shard has earlier output, and
            ``existing`` does not say what to do with it; another process is writing it; or it cannot be written (also
            raised while writing).
    """

    def __init__(self, directory: Path, manifest: Manifest, existing: IfExists) -> None:
        self.directory = directory
        self._existing = existing
        self._part: Optional[NewFile] = None
        self._ids = self._skipped = 0
        self._begun(manifest)  # refuses before anything is created
        self._transient = not directory.exists()
        with writing_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)
        self._lock = WriterLock(directory / manifest.name)
        atexit.register(self.abandon)
        try:
            begun = self._begun(manifest)  # again, because another process may have written in between
            self._stale = begun if existing.overwrite else None
            self.manifest = manifest if begun is None or existing.overwrite else begun
            self._written = self._begun_ids()
        except BaseException:
            self.abandon()
            raise

    @property
    def path(self) -> Path:
        """The output, for messages."""
        return self.directory

    @property
    def written(self) -> NDArray[np.bool_]:
        """Which sentences were already written at the beginning, [size]."""
        return self._written

    def write(self, sentences: Sequence[Item]) -> None:
        """Add sentences, all hypotheses of each."""
        new = [sentence for sentence in sentences if not self._written[sentence.id]]
        if new:
            with writing_errors(self.path):
                if self._part is None:
                    self._clear()
                    self._part = NewFile(self.directory / self.manifest.part_name(len(self.manifest.parts)))
                    self._open(self._part.path)
                self._ids += len({sentence.id for sentence in new})
                self._skipped += sum(not sentence.ok for sentence in new)
                self._add(new)

    def commit(self) -> None:
        """Make a part of the sentences added since the last part."""
        if self._part is not None:
            with writing_errors(self.path):
                self._close(self._part.path)
                self._part.keep()
            self._part = None
            path = self.directory / self.manifest.part_name(len(self.manifest.parts))
            parts = (*self.manifest.parts, Part.of(path, self._ids))
            self._declare(parts=parts, skipped=self.manifest.skipped + self._skipped)
            self._ids = self._skipped = 0

    def finish(self) -> None:
        """Make the last part and declare the shard finished."""
        self.commit()
        if not self.manifest.finished:
            self._clear()
            self._declare(finished=True)
        with writing_errors(self.path):
            self._complete()
        self._end()

    def abandon(self) -> None:
        """Remove the unfinished part and release the shard (also at the end of the interpreter)."""
        try:
            if self._part is not None:
                self._drop()
        finally:
            if self._part is not None:
                self._part.drop()
                self._part = None
            self._end()

    def _end(self) -> None:
        self._lock.release()
        atexit.unregister(self.abandon)
        if self._transient:
            with suppress(OSError):  # the directory is not empty
                self.directory.rmdir()

    def _complete(self) -> None:
        """Hook that is called when the shard is finished."""

    def _clear(self) -> None:
        """Remove output that is to be overwritten, and leftovers of killed runs of this shard."""
        remove_left_over_files(self.directory, self.manifest.file_names)
        if self._stale is not None:
            # its manifest first: without it the parts do not count, so a kill in between is no harm
            (self.directory / self._stale.name).unlink(missing_ok=True)
            self._remove(self._stale)
            self._stale = None

    def _remove(self, manifest: Manifest) -> None:
        # the manifest last: it tells the next run which parts are left, if this one is killed in between
        for name in (*(part.name for part in manifest.parts), manifest.name):
            (self.directory / name).unlink(missing_ok=True)

    def _declare(self, **changes: Any) -> None:
        self.manifest = replace(self.manifest, **changes)
        self.manifest.write(self.directory)

    def _begun(self, manifest: Manifest) -> Optional[Manifest]:
        return begun_manifest(self.directory, manifest, self._existing)

    def _begun_ids(self) -> NDArray[np.bool_]:
        written = np.zeros(self.manifest.size, dtype=np.bool_)
        written[part_ids(self.directory, self.manifest)] = True
        return written

    def _open(self, path: Path) -> None:  # optional: some parts are written only when they are closed
        """Begin a part at ``path``."""

    @abstractmethod
    def _add(self, sentences: Sequence[Item]) -> None:
        """Add sentences to the part."""

    @abstractmethod
    def _close(self, path: Path) -> None:
        """Complete the part at ``path``."""

    def _drop(self) -> None:
        """Discard the part, which will not be completed."""


def begun_manifest(directory: Path, manifest: Manifest, existing: IfExists) -> Optional[Manifest]:
    """The manifest of the shard's earlier output, if there is any.

    Raises:
        InputError: there is earlier output that must not be continued or replaced.
    """
    begun = None
    option = existing.output_option or CONTENTS[manifest.content]
    for other in read_manifests(directory, manifest.content):
        where = directory / other.name
        check_same_run(where, other, manifest, option)
        if other.shard == manifest.shard:
            begun = other
            if not (existing.resume or existing.overwrite):
                raise already_begun(where, other, existing)
    return begun


def already_begun(where: Path, begun: Manifest, existing: IfExists) -> InputError:
    """The error for earlier output, whose manifest is at ``where``."""
    what = "run" if begun.shards == 1 else "shard"
    state = "finished" if begun.finished else f"begun ({len(begun.parts)} parts)"
    return InputError(
        f"{where}: this {what} is already {state}; give {existing.options[0]} to continue it, {existing.options[1]} to "
        f"start again, or name another place with {existing.output_option or CONTENTS[begun.content]}"
    )


def check_same_run(where: Path, other: Manifest, manifest: Manifest, option: str) -> None:
    """Check that the earlier output ``other`` at ``where`` belongs to the run of ``manifest``.

    Raises:
        InputError: it belongs to another run; ``option`` is the option that names the output.
    """
    if other.signature_hash != manifest.signature_hash or other.size != manifest.size:
        fields = differing(other.signature, manifest.signature) or "size"
        raise InputError(
            f"{where}: this is output of another run (different: {fields}); name another place with {option}, or "
            f"remove it"
        )


class SentenceWriter(Protocol):
    """Writes the recorded sentences of a shard."""

    @property
    def manifest(self) -> Manifest:
        """The manifest of what is written so far."""

    @property
    def path(self) -> Path:
        """The output, for messages."""

    def write(self, sentences: Sequence[SentenceMaps]) -> None:
        """Add sentences, all hypotheses of each."""

    def commit(self) -> None:
        """Make a part of the sentences added since the last part."""

    def finish(self) -> None:
        """Make the last part and declare the shard finished."""

    def abandon(self) -> None:
        """Release the shard, with the parts that it has."""
