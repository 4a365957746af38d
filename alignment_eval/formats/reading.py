"""Reads and checks alignment files: Pharaoh, talp, NAACL/WPT, fairseq (docs/formats.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from alignment_eval.errors import InputError, warn_on_stderr
from alignment_eval.formats.checks import Texts, Warn, check_range, decide_base
from alignment_eval.formats.detection import AlignmentFile, FileInfo, parse_gold_file, parse_hypothesis_file
from alignment_eval.formats.text import token_counts
from alignment_eval.links.table import GoldTable


@dataclass(frozen=True)
class ReadOptions:
    """How to read an alignment file.

    Attributes:
        format: None: detected from the content.
        base: ``0``, ``1`` or ``auto`` (detected from the data, with a warning).  None: 1 for NAACL, which is defined
            so; else 0 for a hypothesis and ``auto`` for gold.
        swap: the file has target-source links; exchange them.
        unused_zero: read the file as 0-based even if no link uses index 0.
        allow_possible: accept possible links of a hypothesis as links.
        min_confidence: keep only links with at least this confidence; the file must have scores.
    """

    format: str | None = None
    base: str | None = None
    swap: bool = False
    unused_zero: bool = False
    allow_possible: bool = False
    min_confidence: float | None = None


@dataclass(frozen=True, eq=False)
class Alignments:
    """Source-target links that count from 0, and how they were read.

    The links of a hypothesis are ``links.possible``.
    """

    links: GoldTable
    file: FileInfo
    base: int
    swap: bool
    min_confidence: float | None = None


def read_gold(
    path: str | Path,
    options: ReadOptions | None = None,
    texts: Texts | None = None,
    warn: Warn = warn_on_stderr,
    role: str = "gold",
) -> Alignments:
    """Read gold alignments; ``links.to_sentences()`` has a :class:`~alignment_eval.links.table.GoldSentence` per line.

    Args:
        path: a file, ``-`` for standard input.
        options: how to read it.
        texts: the texts, to check every index against.
        warn: called with each warning, one sentence.
        role: how the names of the options begin that messages advise (``--gold-base``).

    Raises:
        InputError: the file cannot be read or is not in the format; the index base is undecidable or contradicted by
            the data; links are outside the texts; the texts have another number of lines.
        UsageError: the format is unknown.
    """
    options = options or ReadOptions()
    file = parse_gold_file(path, options.format)
    return _checked(file, options, role, "auto", texts, warn)


def read_hypothesis(
    path: str | Path,
    options: ReadOptions | None = None,
    texts: Texts | None = None,
    warn: Warn = warn_on_stderr,
    role: str = "hyp",
) -> Alignments:
    """Read word alignments to be scored; arguments and errors as for :func:`read_gold`.

    Messages advise options whose names begin with ``role`` (``--hyp-base``).
    """
    options = options or ReadOptions()
    file = parse_hypothesis_file(path, options.format, options.allow_possible)
    if file.format == "fairseq" and texts is None:
        warn(
            f"{file.name}: fairseq's A- lines link tokens, which are read as words here; "
            f"give --source and --target to check this, or extract word alignments from records"
        )
    return _checked(file, options, role, "0", texts, warn)


def _checked(
    file: AlignmentFile, options: ReadOptions, role: str, default: str, texts: Texts | None, warn: Warn
) -> Alignments:
    if texts is not None:
        file = _with_sentences_of(file, texts)
    if file.format == "naacl":
        warn_of_gaps(file.name, file.links, warn)
    stated = options.base or ("1" if file.format == "naacl" else default)
    sides = None if texts is None else texts.sides(options.swap)
    base = decide_base(file, stated, role, sides, options.unused_zero, options.base is not None, warn)
    if sides is not None:
        check_range(file, base, role, sides, options.swap)
    links = file.links.shifted(-base)
    if options.min_confidence is not None:
        links = _confident(links, options.min_confidence, file.name, role)
    return Alignments(
        links.transposed() if options.swap else links, file.info, base, options.swap, options.min_confidence
    )


def _confident(links: GoldTable, threshold: float, name: str, role: str) -> GoldTable:
    if links.possible.confidence is None:
        raise InputError(
            f"{name}: the links have no scores, which --{role}-min-confidence {threshold:g} needs; omit the option, "
            f"or give a file of links i-j:p"
        )
    return links.above(threshold)


def read_texts(source: str | Path, target: str | Path) -> Texts:
    """Count the tokens of the two texts.

    Raises:
        InputError: a text cannot be read, or they differ in the number of lines.
    """
    texts = Texts(str(source), token_counts(source), str(target), token_counts(target))
    if len(texts.source) != len(texts.target):
        raise InputError(
            f"{source} has {len(texts.source)} lines, but {target} has {len(texts.target)}; give the two sides of one "
            f"text, with one sentence per line"
        )
    return texts


def _with_sentences_of(file: AlignmentFile, texts: Texts) -> AlignmentFile:
    """``file`` with the number of sentences of the texts; a NAACL file does not state its own, others must agree."""
    expected, found = len(texts.source), file.links.sentences
    if found > expected or (found != expected and file.format != "naacl"):
        raise InputError(
            f"{file.name}: the file has {found} sentences, but {texts.source_name} has {expected} lines; check that it "
            f"is the alignment of this text and that no line is missing"
        )
    return replace(file, links=file.links.with_sentences(expected))


def warn_of_gaps(name: str, links: GoldTable, warn: Warn = warn_on_stderr) -> None:
    """Warn of sentences without a line in the NAACL file ``name``, whose lines are links, not sentences."""
    gaps = np.flatnonzero(links.possible.per_sentence() == 0)
    if gaps.size:
        warn(
            f"{name}: {gaps.size} of {links.sentences} sentences have no line, the first is sentence {gaps[0] + 1}; "
            f"they are read as sentences without links"
        )
