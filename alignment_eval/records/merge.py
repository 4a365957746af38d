"""Merges the alignment parts of a run's shards into one file in corpus order, in constant memory.

A line of a part is the sentence's id, a tab, and its links (``i-j i-j …``); ids increase within a part.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import OVERWRITE, Manifest, check_part

#: Bytes of a part that are in memory at a time.
_BLOCK_BYTES = 2**16


def part_lines(links: Mapping[int, str]) -> Iterator[str]:
    """The lines of a part, from the Pharaoh line of each id."""
    return (f"{id_}\t{links[id_]}" for id_ in sorted(links))


def part_ids(path: Path) -> list[int]:
    """The ids of the sentences in a part.

    Raises:
        InputError: the part cannot be read or is damaged.
    """
    return [id_ for id_, _, _ in _read(path)]


def merged_lines(directory: Path, manifests: Sequence[Manifest]) -> Iterator[str]:
    """The Pharaoh line of every sentence of a finished run, in corpus order.

    This is an external merge: parts are sorted, about 64 KB of each are in memory, and no file stays open.

    Raises:
        InputError: a part is damaged, or an id is missing, duplicate or unknown.
    """
    parts = [part for manifest in manifests for part in manifest.parts]
    for part in parts:
        check_part(directory, part)
    size, expected = manifests[0].size, 0
    streams: Iterable[Iterator[tuple[int, str, Path]]] = (_read(directory / part.name) for part in parts)
    for id_, line, path in heapq.merge(*streams, key=itemgetter(0)):
        if id_ < expected:
            raise InputError(f"{path}: duplicate sentence {id_}; {_AGAIN}")
        if id_ >= size:
            raise InputError(f"{path}: sentence {id_} is not one of 0 to {size - 1}; {_AGAIN}")
        if id_ > expected:
            break
        yield line
        expected += 1
    if expected < size:
        raise InputError(f"{directory}: sentence {expected} of 0 to {size - 1} is missing; {_AGAIN}")


_AGAIN = f"run the shards again with {OVERWRITE}"


def _read(path: Path) -> Iterator[tuple[int, str, Path]]:
    position, last = 0, -1
    while True:
        try:
            with path.open("rb") as file:
                file.seek(position)
                lines = file.readlines(_BLOCK_BYTES)
        except OSError as error:
            raise InputError(f"{path}: cannot read the part ({error.strerror}); {_AGAIN}") from error
        if not lines:
            return
        for line in lines:
            position += len(line)
            id_, tab, links = line.rstrip(b"\n").partition(b"\t")
            if not (id_.isdigit() and tab and int(id_) > last and links.isascii()):
                raise InputError(
                    f"{path}: the part is damaged: line {line[:40]!r} is not an id above {last}, a tab and links; "
                    f"{_AGAIN}"
                )
            last = int(id_)
            yield last, links.decode(), path
