"""Symmetrisation: combines the alignments of two directions into one.

Koehn, Och & Marcu (2003, https://aclanthology.org/N03-1017) start from the intersection, grow it by neighbouring links
of the union, and finally (``final``) add links of words that are still unaligned.  Three programs implement this
differently under the same names; this module has all three (docs/commands/symmetrize.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from alignment_eval.errors import UsageError, require_known
from alignment_eval.links.formats import Link, Links

#: The methods, roughly from few to many links.
METHODS = ("intersection", "grow-diag", "grow-diag-final-and", "grow-diag-final", "union")
#: ``moses`` (Moses' symal), ``atools`` (fast_align's atools, sil-machine), ``lilt`` (lilt/alignment-scripts).
VARIANTS = ("moses", "atools", "lilt")
DEFAULT_VARIANT = "moses"

#: Neighbours as (source, target), in symal's order; symal itself writes (target, source).
_NEIGHBOURS = ((0, -1), (-1, 0), (0, 1), (1, 0), (-1, -1), (1, -1), (-1, 1), (1, 1))
#: Neighbours in lilt's order.  The others share a word with the link, so they never have two unaligned words.
_LILT_NEIGHBOURS = ((-1, 1), (-1, -1), (1, -1), (1, 1))


def symmetrize(forward: Links, reverse: Links, method: str, variant: str = DEFAULT_VARIANT) -> Links:
    """Combine the source-target links that two directions have between the same words of a sentence pair.

    ``variant`` makes no difference to intersection and union.
    """
    check_method(method, variant)
    both, union = forward & reverse, forward | reverse
    if method in ("intersection", "union") or forward == reverse:
        return union if method == "union" else both
    growth, points = _Growth(both), sorted(union)
    # all forward links come first: the words that they align count as aligned for the reverse links
    final: Iterable[Link] = chain(sorted(forward), sorted(reverse))
    if variant == "moses":
        final = points = sorted(union, key=lambda link: link[::-1])
        growth.around_points(points, _NEIGHBOURS, unaligned=1)
    elif variant == "atools":
        growth.among_candidates(points)
    else:
        growth.around_points(points, _LILT_NEIGHBOURS, unaligned=2)
    if method != "grow-diag":
        growth.final(final, unaligned=2 if method == "grow-diag-final-and" or variant == "lilt" else 1)
    return frozenset(growth.links)


def check_method(method: str, variant: str) -> None:
    """Check that method and variant are known, and that the variant has the method."""
    require_known("symmetrisation method", method, METHODS)
    require_known("symmetrisation variant", variant, VARIANTS)
    if (method, variant) == ("grow-diag-final-and", "lilt"):
        raise UsageError(
            "variant lilt has no method grow-diag-final-and; choose grow-diag-final, which in lilt means the same: it "
            "adds a link only if both its words are unaligned"
        )


class _Growth:
    """A growing set of links, and the words that it aligns."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = set(links)
        self.sources = {i for i, _ in self.links}
        self.targets = {j for _, j in self.links}

    def _unaligned(self, link: Link) -> int:
        """How many of the two words of ``link`` are unaligned."""
        return (link[0] not in self.sources) + (link[1] not in self.targets)

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])

    def around_points(self, union: Sequence[Link], neighbours: Sequence[Link], unaligned: int) -> None:
        """Visit the links in the order of ``union`` and add their neighbours, until a pass adds none.

        A neighbour is added if it is in the union and at least ``unaligned`` of its words are unaligned.  A new link
        is visited in the same pass if it comes later in the order, else in the next pass.
        """
        allowed = set(union)
        grows = True
        while grows:
            grows = False
            for i, j in union:
                if (i, j) not in self.links:
                    continue
                for di, dj in neighbours:
                    link = i + di, j + dj
                    if link in allowed and self._unaligned(link) >= unaligned:
                        self._add(link)
                        grows = True

    def among_candidates(self, candidates: Sequence[Link]) -> None:
        """Add the candidates that neighbour a link and have an unaligned word, until a pass adds none."""
        grows = True
        while grows:
            grows = False
            left = []
            for i, j in candidates:
                if not self._unaligned((i, j)):
                    continue  # it is a link already, or can never be one
                if any((i + di, j + dj) in self.links for di, dj in _NEIGHBOURS):
                    self._add((i, j))
                    grows = True
                else:
                    left.append((i, j))
            candidates = left

    def final(self, candidates: Iterable[Link], unaligned: int) -> None:
        """Add one after the other the candidates with at least ``unaligned`` unaligned words."""
        for link in candidates:
            if self._unaligned(link) >= unaligned:
                self._add(link)
