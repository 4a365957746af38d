"""Writes links as lines in each format: Pharaoh, scored Pharaoh, talp, NAACL/WPT, fairseq (docs/formats.md)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat

from alignment_eval.errors import InputError
from alignment_eval.links.table import GoldSentence, GoldTable, Link, Links, each_scored


def format_lines(links: GoldTable, format: str, base: int) -> Iterator[str]:
    """The lines of a whole file in any format.

    Formats without possible links get plain links, formats without confidences drop them; the caller must report what
    is lost.  NAACL lines end with the last sentence that has links.

    Args:
        links: source-target links from 0.
        format: one of :data:`~alignment_eval.formats.detection.HYPOTHESIS_FORMATS`.
        base: the number of the first word; ignored for fairseq, which counts from 0.

    Raises:
        InputError: the format is ``scored`` and the links have no confidences.
        ValueError: the format is none of these.
    """
    every = links.possible
    if format == "scored":
        sentences = zip(each_scored(every), links.sure.each_sentence())
        return (format_scored_line(scored, base, sure) for scored, sure in sentences)
    if format == "pharaoh":
        return (format_pharaoh_line(sentence, base) for sentence in every.each_sentence())
    if format == "fairseq":
        return (format_fairseq_line(n, sentence) for n, sentence in enumerate(every.each_sentence()))
    gold = (GoldSentence(sure, possible) for sure, possible in zip(links.sure.each_sentence(), every.each_sentence()))
    if format == "talp":
        return (format_talp_line(sentence, base) for sentence in gold)
    if format != "naacl":
        raise ValueError(f"format {format!r} cannot be written")
    confidences = repeat(None) if every.confidence is None else each_scored(every)
    pairs = enumerate(zip(gold, confidences))
    return (line for n, (sentence, scored) in pairs for line in format_naacl_lines(n, sentence, base, scored))


def format_pharaoh_line(links: Iterable[Link], base: int = 0) -> str:
    """``i-j i-j …``, sorted by source, then target word."""
    return " ".join(f"{i + base}-{j + base}" for i, j in sorted(links))


def format_scored_line(links: Mapping[Link, float], base: int = 0, sure: Links | None = None) -> str:
    """``i-j:p i-j:p …``, sorted by source, then target word; p has the fewest digits that give the same float64.

    Args:
        links: the confidence of each link.
        base: the number of the first word.
        sure: the sure links; the others are written as possible, ``ipj:p``; None: all are sure.

    Raises:
        InputError: a confidence is NaN or infinite.
    """
    for (i, j), p in links.items():
        if not math.isfinite(p):
            raise InputError(f"link {i}-{j} has the confidence {p}, which is not a finite number")
    marked = (((i, j), "-" if sure is None or (i, j) in sure else "p", p) for (i, j), p in sorted(links.items()))
    return " ".join(f"{i + base}{mark}{j + base}:{float(p)!r}" for (i, j), mark, p in marked)


def format_talp_line(gold: GoldSentence, base: int = 0) -> str:
    """``i-j`` for sure links, ``ipj`` for links that are only possible, sorted."""
    marked = ((i, j, "-" if (i, j) in gold.sure else "p") for i, j in sorted(gold.possible))
    return " ".join(f"{i + base}{mark}{j + base}" for i, j, mark in marked)


def format_naacl_lines(
    sentence: int, gold: GoldSentence, base: int = 1, confidences: Mapping[Link, float] | None = None
) -> Iterator[str]:
    """``sentence i j S|P [confidence]``, one line per link, sorted; ``sentence`` counts from 0, the lines from 1.

    A sentence without links has no line.
    """
    for i, j in sorted(gold.possible):
        confidence = "" if confidences is None else f" {float(confidences[i, j])!r}"
        yield f"{sentence + 1} {i + base} {j + base} {'S' if (i, j) in gold.sure else 'P'}{confidence}"


def format_fairseq_line(id: int, links: Iterable[Link]) -> str:
    """``A-<id>``, a tab and the links, as fairseq-generate prints them."""
    return f"A-{id}\t{format_pharaoh_line(links)}"
