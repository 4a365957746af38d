"""Symmetrisation: one alignment from those of the two directions.

Koehn, Och & Marcu (2003, https://aclanthology.org/N03-1017) start from the intersection, grow it by neighbouring links
of the union, and in the end (``final``) add links of words that are left over.  Two families of programs do that in
different ways under the same names; both are here (docs/commands/symmetrize.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

import numpy as np

from alignment_eval.errors import UsageError
from alignment_eval.links.table import Link, Links, LinkTable

#: The methods, from few to many links, more or less.
METHODS = ("intersection", "grow-diag", "grow-diag-final-and", "grow-diag-final", "union")
#: ``moses`` (Moses, atools, sil-machine): a link needs one unaligned word.  ``lilt`` (lilt/alignment-scripts): two.
VARIANTS = ("moses", "lilt")

_NEIGHBOURS = ((-1, 0), (-1, 1), (-1, -1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
#: In their order.  Beside a link only they can have two unaligned words: the others share one with the link.
_DIAGONAL_NEIGHBOURS = ((-1, 1), (-1, -1), (1, -1), (1, 1))


def symmetrize(forward: Links, reverse: Links, method: str, variant: str = "moses") -> Links:
    """The links of one sentence.

    Args:
        forward: source-target links of one direction, from 0.
        reverse: source-target links of the other direction, of the same words.
        method: one of :data:`METHODS`.
        variant: one of :data:`VARIANTS`; makes no difference to intersection and union.

    Raises:
        UsageError: method or variant is unknown, or the variant does not have the method.
    """
    check_method(method, variant)
    if method == "union":
        return forward | reverse
    both = forward & reverse
    return both if method == "intersection" else both.union(_grown(both, forward, reverse, method, variant))


def symmetrize_table(forward: LinkTable, reverse: LinkTable, method: str, variant: str = "moses") -> LinkTable:
    """The links of a corpus; arguments and errors as for :func:`symmetrize`, sentence by sentence."""
    check_method(method, variant)
    if method == "union":
        return forward | reverse
    both = forward & reverse
    if method == "intersection":
        return both
    sentences = zip(forward.each_sentence(), reverse.each_sentence())
    added = [(n, i, j) for n, (f, r) in enumerate(sentences) if f != r for i, j in _grown(f & r, f, r, method, variant)]
    columns = np.array(added, dtype=np.int64).reshape(len(added), 3).T
    return both | LinkTable.build(columns[0], columns[1], columns[2], both.sentences)


def check_method(method: str, variant: str) -> None:
    """Check that the variant has the method.

    Raises:
        UsageError: it does not, or one of them is unknown.
    """
    for what, name, known in (("method", method, METHODS), ("variant", variant, VARIANTS)):
        if name not in known:
            raise UsageError(f"unknown symmetrisation {what} {name!r}: expected one of {', '.join(known)}")
    if (method, variant) == ("grow-diag-final-and", "lilt"):
        raise UsageError(
            "method grow-diag-final-and of variant lilt: expected grow-diag-final, which there adds a link only if "
            "both its words are unaligned and is the -and form; ask for that"
        )


def _grown(both: Iterable[Link], forward: Links, reverse: Links, method: str, variant: str) -> list[Link]:
    """What growing from the intersection ``both`` adds, in the order in which it does."""
    growth = _Growth(both)
    candidates = sorted(forward | reverse)
    if variant == "moses":
        growth.by_candidates(candidates)
    else:
        growth.by_points(candidates)
    if method != "grow-diag":
        # All forward links come first: what they align is taken for the reverse ones.
        growth.final(
            chain(sorted(forward), sorted(reverse)), both_words=(method, variant) != ("grow-diag-final", "moses")
        )
    return growth.added


class _Growth:
    """Links that grow, with their words."""

    def __init__(self, links: Iterable[Link]) -> None:
        self.links = set(links)
        self.sources = {i for i, _ in self.links}
        self.targets = {j for _, j in self.links}
        self.added: list[Link] = []

    def _add(self, link: Link) -> None:
        self.links.add(link)
        self.sources.add(link[0])
        self.targets.add(link[1])
        self.added.append(link)

    def by_candidates(self, candidates: list[Link]) -> None:
        """Go through the candidates until none is added: one that neighbours a link and has an unaligned word is."""
        grows = True
        while grows:
            grows = False
            left = []
            for i, j in candidates:
                if i in self.sources and j in self.targets:
                    continue  # a link already, or never to be one
                if any((i + di, j + dj) in self.links for di, dj in _NEIGHBOURS):
                    self._add((i, j))
                    grows = True
                else:
                    left.append((i, j))
            candidates = left

    def by_points(self, candidates: list[Link]) -> None:
        """Go through the links, those just added too, until none is added: neighbours with two unaligned words are."""
        allowed = set(candidates)
        grows = True
        while grows:
            grows = False
            for i, j in candidates:
                if (i, j) not in self.links:
                    continue
                for di, dj in _DIAGONAL_NEIGHBOURS:
                    link = i + di, j + dj
                    if link in allowed and link[0] not in self.sources and link[1] not in self.targets:
                        self._add(link)
                        grows = True

    def final(self, candidates: Iterable[Link], both_words: bool) -> None:
        """Add the candidates with an unaligned word, or with two (``both_words``), one after the other."""
        for link in candidates:
            aligned = (link[0] in self.sources) + (link[1] in self.targets)
            if aligned == 0 or (aligned == 1 and not both_words):
                self._add(link)
