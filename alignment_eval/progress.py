"""Progress of loops that may take more than a second, on stderr: a bar on a terminal, else a line every 30 seconds.

A loop over items uses :func:`progress_bar`.  Work that comes in steps uses :func:`progress_meter`::

    with progress_meter(len(pairs), "pairs") as done:
        for batch in batches:
            ...
            done(len(batch))
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
#: Seconds before a bar appears: what is done sooner shows none.
_DELAY = 1.0
#: Seconds from one line to the next, where stderr is not a terminal.
_INTERVAL = 30.0


class Progress(Protocol):
    """Goes through ``items``, ``total`` of them, each a ``unit`` (a plural noun), and shows how far it is."""

    def __call__(self, items: Iterable[T], total: int, unit: str) -> Iterable[T]:
        """The same items."""


def no_progress(items: Iterable[T], total: int, unit: str) -> Iterable[T]:
    """Show nothing; the default of functions that are not commands."""
    return items


def progress_bar(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """Show how many of the items are done."""
    with progress_meter(total, unit) as done:
        for item in items:
            yield item
            done(1)


@contextlib.contextmanager
def progress_meter(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Show how much of some work is done.

    Args:
        total: the number of units of the whole work.
        unit: what is counted, a plural noun.

    Yields:
        A function that takes the number of units done since its last call.
    """
    if not sys.stderr.isatty():
        yield _Lines(total, unit).done
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", file=sys.stderr, delay=_DELAY) as bar:
        yield bar.update


class _Lines:
    """Prints a line like ``1,200 of 5,000 sentences (24 %), 60 s`` every :data:`_INTERVAL` seconds."""

    def __init__(self, total: int, unit: str) -> None:
        self._total, self._unit = total, unit
        self._count = 0
        self._start = time.monotonic()
        self._next = self._start + _INTERVAL

    def done(self, count: int) -> None:
        """Add ``count`` units."""
        self._count += count
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _INTERVAL
        share = f" ({100 * self._count // self._total} %)" if self._total else ""
        print(
            f"{self._count:,} of {self._total:,} {self._unit}{share}, {now - self._start:.0f} s",
            file=sys.stderr,
            flush=True,
        )
