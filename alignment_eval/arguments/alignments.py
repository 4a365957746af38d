"""Options of the commands that read alignment files: format, base, direction, texts."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace

from alignment_eval.arguments.numbers import finite_number
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.files import STANDARD
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.detection import GOLD_FORMATS, HYPOTHESIS_FORMATS
from alignment_eval.formats.reading import Alignments, ReadOptions, read_gold, read_texts, warn_of_gaps
from alignment_eval.scoring.aer import Score, score
from alignment_eval.scoring.direction import direction_warning
from alignment_eval.signature import Value

BASES = ("0", "1", "auto")


def add_gold_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare ``--gold`` and how to read it."""
    group = parser.add_argument_group("gold")
    group.add_argument("--gold", required=True, metavar="FILE", help="gold alignments (-: standard input)")
    add_gold_reading(group)


def add_gold_reading(group: argparse._ArgumentGroup) -> None:
    """Declare how to read gold."""
    _add_reading(group, "gold", GOLD_FORMATS, "auto, which warns; 1 for naacl")


def add_hypothesis_arguments(parser: argparse.ArgumentParser, more: str = "") -> None:
    """Declare the hypotheses and how to read them; :func:`hypotheses_of` names them.

    Args:
        parser: of the command.
        more: what else the help says of them.
    """
    group = parser.add_argument_group("hypotheses")
    group.add_argument(
        "hypotheses",
        nargs="*",
        metavar="HYP",
        help=f"word alignments (-: standard input), all read in the same way{more}",
    )
    group.add_argument("--hyp", action="extend", nargs="+", metavar="HYP", help="another way to name them")
    add_hypothesis_reading(group)


def hypotheses_of(args: argparse.Namespace) -> list[str]:
    """The files of :func:`add_hypothesis_arguments`.

    Raises:
        UsageError: there are none.
    """
    paths = [*args.hypotheses, *(args.hyp or [])]
    if not paths:
        raise UsageError("no hypothesis: expected HYP, the file of word alignments")
    return paths


def add_hypothesis_reading(group: argparse._ArgumentGroup, role: str = "hyp") -> None:
    """Declare how to read hypotheses: ``--<role>-format`` and so on."""
    _add_reading(group, role, HYPOTHESIS_FORMATS, "0; 1 for naacl")
    group.add_argument(f"--{role}-allow-possible", action="store_true", help="read possible links (ipj, P) as links")
    group.add_argument(
        f"--{role}-min-confidence",
        type=finite_number,
        metavar="P",
        help="read only links with this score or more (format scored, or naacl with confidences; default: all links)",
    )


def add_text_arguments(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Declare ``--source`` and ``--target``."""
    group = parser.add_argument_group(
        "texts", "tokenised, one sentence a line; indices and word counts are checked against them"
    )
    group.add_argument("--source", required=required, metavar="FILE", help="source text")
    group.add_argument("--target", required=required, metavar="FILE", help="target text")


def add_input_reading(group: argparse._ArgumentGroup, role: str) -> None:
    """Declare how to read alignments of any format, the format as ``--<role>``."""
    _add_reading(group, role, HYPOTHESIS_FORMATS, "0; 1 for naacl", format_option=f"--{role}")


def _add_reading(
    group: argparse._ArgumentGroup, role: str, formats: tuple[str, ...], base: str, format_option: str | None = None
) -> None:
    group.add_argument(
        format_option or f"--{role}-format",
        dest=f"{role}_format",
        choices=formats,
        help=f"{', '.join(formats)} (default: detected from the content)",
    )
    group.add_argument(
        f"--{role}-base", choices=BASES, help=f"index of the first word; auto: detected from the data (default: {base})"
    )
    group.add_argument(f"--{role}-swap", action="store_true", help="the file has target-source links: swap them")
    group.add_argument(
        f"--{role}-unused-zero", action="store_true", help="the file counts from 0 although no link uses index 0"
    )


def check_standard_input(paths: Iterable[str | None]) -> None:
    """Check that at most one input is ``-``.

    Raises:
        UsageError: several are.
    """
    if list(paths).count(STANDARD) > 1:
        raise UsageError("several inputs are -: expected at most one input from the standard input")


def gold_options(args: argparse.Namespace) -> ReadOptions:
    """How to read ``--gold``."""
    return ReadOptions(args.gold_format, args.gold_base, args.gold_swap, args.gold_unused_zero)


def gold_of(args: argparse.Namespace, texts: Texts | None) -> Alignments:
    """Read the gold of ``--gold``; warn if it has no links."""
    gold = read_gold(args.gold, gold_options(args), texts)
    if not len(gold.links.possible):
        warn_on_stderr(f"{gold.file.name}: the gold has no links: AER says nothing")
    return gold


def gold_of_size(gold: Alignments, size: int, others: str) -> Alignments:
    """The gold with ``size`` sentences; warns if a NAACL file ends before the last one.

    Args:
        gold: the gold.
        size: how many sentences it must have.
        others: what has this number of sentences, for messages.

    Raises:
        InputError: it has more or fewer.
    """
    found = gold.links.sentences
    if gold.file.format == "naacl" and found < size:  # such a file does not say how many sentences follow its last link
        gold = replace(gold, links=gold.links.with_sentences(size))
        warn_of_gaps(gold.file.name, gold.links)
        return gold
    if found != size:
        raise InputError(
            f"{gold.file.name}: {found} sentences, but {others}: expected the same number; are they of the same text?"
        )
    return gold


def check_as_many(first: Alignments, second: Alignments) -> None:
    """Check that two files have the same number of sentences.

    Raises:
        InputError: they have not.
    """
    files = first.file, second.file
    counts = first.links.sentences, second.links.sentences
    if counts[0] != counts[1]:
        naacl = "naacl" in (files[0].format, files[1].format)
        raise InputError(
            f"{files[0].name} has {counts[0]} sentences, {files[1].name} has {counts[1]}: expected the same "
            f"number, a blank line for a sentence without links; are both of the same text?"
            f"{' A NAACL file ends with its last link: pass --source and --target' * naacl}"
        )


def score_files(hypothesis: Alignments, gold: Alignments) -> Score:
    """Score one file against another; warns on stderr if the direction looks swapped.

    Raises:
        InputError: the numbers of sentences differ.
    """
    check_as_many(hypothesis, gold)
    links = hypothesis.links.possible
    if warning := direction_warning(hypothesis.file.name, links, gold.links, hypothesis.swap):
        warn_on_stderr(warning)
    return score(links, gold.links)


def hypothesis_options(args: argparse.Namespace, role: str = "hyp") -> ReadOptions:
    """How to read hypotheses: ``--<role>-format`` and so on."""
    names = ("format", "base", "swap", "unused_zero", "allow_possible", "min_confidence")
    return ReadOptions(**{name: getattr(args, f"{role}_{name}") for name in names})


def texts_of(args: argparse.Namespace) -> Texts | None:
    """The texts of ``--source`` and ``--target``, None if neither is given.

    Raises:
        UsageError: only one of them is given.
        InputError: they cannot be read, or have different numbers of lines.
    """
    if args.source is None and args.target is None:
        return None
    if args.source is None or args.target is None:
        raise UsageError("only one of --source and --target is given: expected both or neither")
    return read_texts(args.source, args.target)


def reading_fields(role: str, alignments: Alignments) -> dict[str, Value]:
    """Signature fields: what was read, and how."""
    threshold = alignments.min_confidence
    return {
        role: alignments.file.hash,
        f"{role}_format": alignments.file.format,
        f"{role}_base": alignments.base,
        f"{role}_swap": alignments.swap,
        **({} if threshold is None else {f"{role}_min_confidence": threshold}),
    }
