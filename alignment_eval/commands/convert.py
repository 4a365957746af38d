"""``align-eval convert``: an alignment file in another format; every loss is reported."""

from __future__ import annotations

import argparse

from alignment_eval.arguments.alignments import (
    add_input_reading,
    add_text_arguments,
    check_standard_input,
    texts_of,
)
from alignment_eval.arguments.output import add_output
from alignment_eval.arguments.subwords import add_subword_arguments, subwords_of
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.files import check_new, write_lines
from alignment_eval.formats.detection import HYPOTHESIS_FORMATS
from alignment_eval.formats.reading import Alignments, ReadOptions, read_hypothesis
from alignment_eval.formats.writing import format_lines
from alignment_eval.links.table import GoldTable
from alignment_eval.maps.subword_links import subword_links
from alignment_eval.progress import progress_bar

_EPILOG = """\
Examples, the last after make demo:
  align-eval convert data/demo/demo.talp --from talp --from-base 1 --to naacl
  align-eval convert data/demo/demo.talp --from talp --from-base 1 --to pharaoh --possible drop -o out/sure.pharaoh
  align-eval convert data/demo/demo.talp --from talp --from-base 1 --to talp --source-subwords out/demo/text/test.de \\
      --target-subwords out/demo/text/test.en

What the new format cannot hold is an error that asks for a decision (--possible) or a warning (confidences).
Exit status: 0 success, 1 bad data, 2 bad usage.
"""
_WITH_POSSIBLE = ("talp", "naacl", "scored")
_WITH_CONFIDENCES = ("scored", "naacl")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``convert``."""
    parser.epilog = _EPILOG
    group = parser.add_argument_group("input")
    group.add_argument("input", metavar="IN", help="alignments (-: standard input)")
    add_input_reading(group, "from")
    add_text_arguments(parser)
    add_subword_arguments(parser)
    group = parser.add_argument_group("output")
    add_output(group, "the file in the new format", metavar="OUT", standard=True)
    group.add_argument("--to", required=True, choices=HYPOTHESIS_FORMATS, help=f"of {', '.join(HYPOTHESIS_FORMATS)}")
    group.add_argument(
        "--to-base", choices=("0", "1"), help="index of the first word (default: 0; 1 for naacl; fairseq allows only 0)"
    )
    group.add_argument(
        "--possible",
        choices=("keep", "drop"),
        help="possible links: keep (as plain ones if OUT has no others) or drop",
    )


def run(args: argparse.Namespace) -> None:
    """Write the file; every loss was asked for or is warned of."""
    check_standard_input([args.input, args.source, args.target, args.source_subwords, args.target_subwords])
    check_new(args.output, args.overwrite)
    base = args.to_base or ("1" if args.to == "naacl" else "0")
    if (args.to, base) == ("fairseq", "1"):
        raise UsageError("--to fairseq with --to-base 1: expected base 0, from which fairseq counts")
    options = ReadOptions(args.from_format, args.from_base, args.from_swap, args.from_unused_zero, allow_possible=True)
    subwords = subwords_of(args)
    read = read_hypothesis(args.input, options, texts_of(args) if subwords is None else subwords.texts, role="from")
    links = _without_possible(read, args.to, args.possible)
    _check_losses(read, links, args.to)
    if subwords is not None:
        links = subword_links(links, subwords.source, subwords.target)
    lines = len(links.possible) if args.to == "naacl" else links.sentences
    unit = "links" if args.to == "naacl" else "sentences"
    write_lines(args.output, progress_bar(format_lines(links, args.to, int(base)), lines, unit))


def _without_possible(read: Alignments, to: str, possible: str | None) -> GoldTable:
    """The links to be written.

    Raises:
        InputError: there are possible links that the format cannot hold, and it is not stated what to do.
    """
    links = read.links
    more = len(links.possible) - len(links.sure)
    if more and possible is None and to not in _WITH_POSSIBLE:
        raise InputError(
            f"{read.file.name}: {more} possible links, which {to} cannot hold: decide with "
            f"--possible keep (they become links like others) or --possible drop"
        )
    if possible == "drop":
        return GoldTable(links.sure, links.sure)
    return links


def _check_losses(read: Alignments, links: GoldTable, to: str) -> None:
    """Warn of what is not in the new file.

    Raises:
        InputError: confidences are missing, or no link is left for a NAACL file.
    """
    name, every = read.file.name, links.possible
    if read.file.format == "fairseq":
        warn_on_stderr(f"{name}: only the first A- line of each sentence is taken, no other line")
    if read.file.doubled:
        warn_on_stderr(f"{name}: {read.file.doubled} doubled links are written once")
    if every.confidence is None and to == "scored":
        raise InputError(f"{name}: links without confidences: expected some for the format scored; choose another")
    if every.confidence is not None and to not in _WITH_CONFIDENCES:
        warn_on_stderr(f"{name}: the scores of its links are dropped: {to} cannot hold them")
    if to == "naacl":
        if not len(every):
            raise InputError(
                f"{name}: no links: expected some, as a NAACL file without any has no line; choose another format"
            )
        after = every.sentences - 1 - int(every.sentence[-1])
        if after:
            warn_on_stderr(
                f"{name}: its last {after} sentences have no links, so the NAACL file does not show that they are "
                f"there: read it with --source and --target"
            )
