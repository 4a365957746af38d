"""``align-eval symmetrize``: combines forward and reverse alignments."""

from __future__ import annotations

import argparse
from dataclasses import replace
from itertools import islice

from alignment_eval.command_line import Input, add_output
from alignment_eval.errors import progress_bar, say, warn_user
from alignment_eval.files import check_new, signature, write_lines
from alignment_eval.links.files import AlignmentFile, read_hypothesis
from alignment_eval.links.formats import format_links, transpose
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS, VARIANTS, check_method, symmetrize
from alignment_eval.options import add_base, add_swap, read_options, reading_fields
from alignment_eval.reading import check_sizes
from alignment_eval.scoring.diagnosis import LOOKED_AT

EPILOG = """\
Example:
  align-eval symmetrize data/demo/hyp.pharaoh data/demo/hyp.en-de.pharaoh --reverse-swap --method grow-diag-final \\
      -o out/both.pharaoh

Both files are read as source-target.  Give --reverse-swap if REVERSE is target-source, as a model of the other
direction writes it.  The signature goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--method", required=True, choices=METHODS, metavar="METHOD", help=", ".join(METHODS))
    parser.add_argument(
        "--variant",
        choices=VARIANTS,
        default=DEFAULT_VARIANT,
        help="programs differ in these methods: do as Moses (default), as fast_align's atools, or as the "
        "alignment-scripts of Lilt",
    )
    group = parser.add_argument_group("input", "two files of the same aligner (-: standard input)")
    group.add_argument("forward", type=Input, metavar="FORWARD", help="word alignments, source-target")
    group.add_argument("reverse", type=Input, metavar="REVERSE", help="word alignments of the other direction")
    add_base(group, "from", "0")
    add_swap(group, "reverse")
    group = parser.add_argument_group("output")
    add_output(group, "Pharaoh file", standard=True)


def run(args: argparse.Namespace) -> None:
    check_method(args.method, args.variant)
    check_new(args.output, args.overwrite)
    forward = read_hypothesis(args.forward, read_options(args, "from", one_of=args.forward))
    options = replace(read_options(args, "from", one_of=args.reverse), swap=args.reverse_swap)
    reverse = read_hypothesis(args.reverse, options)
    check_sizes(forward.size, reverse.size)
    _warn_of_direction(forward, reverse)
    pairs = progress_bar(zip(forward.each_links(), reverse.each_links()), len(forward), "sentences")
    lines = (format_links(symmetrize(*pair, args.method, args.variant)) for pair in pairs)
    write_lines(args.output, lines)
    grown = args.method not in ("intersection", "union")
    say(
        signature(
            symmetrized=args.method,
            variant=args.variant if grown else None,
            **reading_fields("forward", forward),
            **reading_fields("reverse", reverse),
        )
    )


def _warn_of_direction(forward: AlignmentFile, reverse: AlignmentFile) -> None:
    """Warn if the two look as if one were of the other direction."""
    common = exchanged = total = 0
    for links, others in islice(zip(forward.each_links(), reverse.each_links()), LOOKED_AT):
        total += len(others)
        common += len(links & others)
        exchanged += len(links & transpose(others))
    if exchanged > 2 * common:
        advice = "omit --reverse-swap" if reverse.swap else "give --reverse-swap"
        warn_user(
            f"{reverse.name}: {common} of its {total} links are in {forward.name}, but {exchanged} with source and "
            f"target exchanged: one of the two looks swapped; if so, {advice}"
        )
