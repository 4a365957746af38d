"""Progress bars, for loops that may take more than a second: on stderr, where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")
#: Seconds before a bar appears: what is done sooner shows none.
_DELAY = 1.0


class Progress(Protocol):
    """Goes through ``items``, ``total`` of them, each a ``unit``, and says how far it has come."""

    def __call__(self, items: Iterable[T], total: int, unit: str) -> Iterable[T]:
        """The same items."""


def no_progress(items: Iterable[T], total: int, unit: str) -> Iterable[T]:
    """Say nothing; the default of functions that are not commands."""
    return items


def progress_bar(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """Draw a bar."""
    from tqdm import tqdm

    # not the bar itself: list() would allocate memory for ``total`` items, a number that a damaged file may give
    yield from tqdm(items, total=total, unit=f" {unit}", disable=None, file=sys.stderr, delay=_DELAY)
