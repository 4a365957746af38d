"""Writes links as lines in each format: Pharaoh, scored Pharaoh, talp, NAACL/WPT, fairseq (docs/formats.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from alignment_eval.errors import InputError, UsageError, shown
from alignment_eval.links.formats import HYPOTHESIS_FORMATS
from alignment_eval.links.sets import GoldSentence, Link, Links


def format_lines(sentences: Iterable[GoldSentence], format: str, base: int) -> Iterator[str]:
    """The lines of a whole file in a format of :data:`~alignment_eval.links.formats.HYPOTHESIS_FORMATS`.

    Formats without possible links get plain links, formats without confidences drop them; the caller must report what
    is lost.  NAACL lines end with the last sentence that has links.  ``base`` is the number of the first word; fairseq
    always counts from 0.
    """
    if format not in HYPOTHESIS_FORMATS:
        raise UsageError(f"unknown format {shown(format)}; choose one of {', '.join(HYPOTHESIS_FORMATS)}")
    for n, sentence in enumerate(sentences):
        if format == "naacl":  # sentence i j S|P [confidence], a line a link; a sentence without links has none
            for i, j in sorted(sentence.possible):
                confidence = "" if sentence.confidence is None else f" {float(sentence.confidence[i, j])!r}"
                yield f"{n + 1} {i + base} {j + base} {'S' if (i, j) in sentence.sure else 'P'}{confidence}"
        elif format == "talp":
            yield format_talp_line(sentence, base)
        elif format == "scored":
            yield format_scored_line(sentence.confidence or {}, base, sentence.sure)
        elif format == "fairseq":
            yield f"A-{n}\t{format_pharaoh_line(sentence.possible)}"
        else:
            yield format_pharaoh_line(sentence.possible, base)


def format_pharaoh_line(links: Iterable[Link], base: int = 0) -> str:
    """``i-j i-j …``, sorted by source, then target word."""
    return " ".join(f"{i + base}-{j + base}" for i, j in sorted(links))


def format_talp_line(gold: GoldSentence, base: int = 0) -> str:
    """``i-j`` for sure links, ``ipj`` for links that are only possible, sorted."""
    return " ".join(f"{i + base}{'-' if (i, j) in gold.sure else 'p'}{j + base}" for i, j in sorted(gold.possible))


def format_scored_line(links: Mapping[Link, float], base: int = 0, sure: Links | None = None) -> str:
    """``i-j:p i-j:p …``, sorted by source, then target word; p has the fewest digits that give the same float64.

    Links that are not ``sure`` are written as possible, ``ipj:p``; None: all are sure.
    """
    for (i, j), p in links.items():
        if not math.isfinite(p):
            raise InputError(f"link {i}-{j} has the confidence {p}, which is not a finite number")
    marked = (((i, j), "-" if sure is None or (i, j) in sure else "p", p) for (i, j), p in sorted(links.items()))
    return " ".join(f"{i + base}{mark}{j + base}:{float(p)!r}" for (i, j), mark, p in marked)
