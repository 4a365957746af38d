"""Progress of loops that may take more than a second, on stderr: a bar on a terminal, else a line every 30 seconds.

A loop over items uses :func:`progress_bar`, work that comes in steps :func:`progress_meter`.
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
    """Show how much of ``total`` units is done; yields a function that takes the number done since its last call."""
    if not sys.stderr.isatty():
        yield _lines(total, unit)
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", file=sys.stderr, delay=_DELAY) as bar:
        yield bar.update


def _lines(total: int, unit: str) -> Callable[[int], None]:
    """Print a line like ``1,200 of 5,000 sentences (24 %), 60 s`` every :data:`_INTERVAL` seconds."""
    count = 0
    start = time.monotonic()
    following = start + _INTERVAL

    def done(more: int) -> None:
        nonlocal count, following
        count += more
        if (now := time.monotonic()) >= following:
            following = now + _INTERVAL
            share = f" ({100 * count // total} %)" if total else ""
            print(f"{count:,} of {total:,} {unit}{share}, {now - start:.0f} s", file=sys.stderr, flush=True)

    return done
