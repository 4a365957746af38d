"""Word links: a set for each sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Optional

#: Pair (source word, target word), counted from 0.
Link = tuple[int, int]
#: The links of one sentence.
Links = frozenset[Link]


@dataclass(frozen=True)
class GoldSentence:
    """The links of one sentence of an alignment file, sure and possible.

    ``possible`` includes ``sure``; missing links are added on construction.  ``confidence`` has a finite number for
    each possible link, larger means surer; None: the links have none.
    """

    sure: Links
    possible: Links = frozenset()
    confidence: Optional[Mapping[Link, float]] = field(default=None, compare=False)

    def __post_init__(self) -> None:
        sure, possible = frozenset(self.sure), frozenset(self.possible)
        object.__setattr__(self, "sure", sure)
        object.__setattr__(self, "possible", possible if sure <= possible else possible | sure)


def transpose(links: Iterable[Link]) -> Links:
    """The same links with source and target exchanged."""
    return frozenset((j, i) for i, j in links)
