"""``align-eval symmetrize``: one alignment from those of the two directions."""

from __future__ import annotations

import argparse
import sys

from alignment_eval.arguments.alignments import (
    add_hypothesis_reading,
    add_text_arguments,
    check_as_many,
    check_standard_input,
    hypothesis_options,
    reading_fields,
    texts_of,
)
from alignment_eval.arguments.output import add_output
from alignment_eval.errors import warn_on_stderr
from alignment_eval.files import check_new, write_lines
from alignment_eval.formats.reading import Alignments, read_hypothesis
from alignment_eval.formats.writing import format_pharaoh_line
from alignment_eval.links.symmetrize import DEFAULT_VARIANT, METHODS, VARIANTS, check_method, symmetrize_table
from alignment_eval.links.table import blocks
from alignment_eval.progress import progress_bar
from alignment_eval.signature import signature

_EPILOG = """\
Example, after make demo (a second rule stands in for a model of the other direction):
  align-eval extract out/demo/forced --kind attn_n --layer 1 --setting awo --rule shift-att --output out/other.pharaoh
  align-eval symmetrize out/demo/hyp.pharaoh out/other.pharaoh --method grow-diag-final --variant lilt

Both files are read as source-target.  Pass --reverse-swap if REVERSE is target-source, as a model of the other
direction writes it.  The signature goes to stderr.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""
_ROLES = ("forward", "reverse")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``symmetrize``."""
    parser.epilog = _EPILOG
    parser.add_argument("--method", required=True, choices=METHODS, help="how the two are combined")
    parser.add_argument(
        "--variant",
        choices=VARIANTS,
        default=DEFAULT_VARIANT,
        help="whose algorithm of that name: Moses' (default), that of fast_align's atools, or that of lilt's scripts",
    )
    for role in _ROLES:
        group = parser.add_argument_group(role)
        group.add_argument(role, metavar=role.upper(), help="word alignments (-: standard input)")
        add_hypothesis_reading(group, role)
    add_text_arguments(parser)
    group = parser.add_argument_group("output")
    add_output(group, "Pharaoh file", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write one Pharaoh line a sentence."""
    check_method(args.method, args.variant)
    check_standard_input([args.forward, args.reverse, args.source, args.target])
    check_new(args.output, args.overwrite)
    texts = texts_of(args)
    forward, reverse = (
        read_hypothesis(getattr(args, role), hypothesis_options(args, role), texts, role=role) for role in _ROLES
    )
    check_as_many(forward, reverse)
    if warning := _direction_warning(forward, reverse):
        warn_on_stderr(warning)
    links = symmetrize_table(forward.links.possible, reverse.links.possible, args.method, args.variant, progress_bar)
    write_lines(args.output, map(format_pharaoh_line, links.each_sentence()))
    grown = args.method not in ("intersection", "union")
    signed = signature(
        symmetrized=args.method,
        variant=args.variant if grown else None,
        **reading_fields("forward", forward),
        forward_possible=args.forward_allow_possible,
        **reading_fields("reverse", reverse),
        reverse_possible=args.reverse_allow_possible,
    )
    print(signed, file=sys.stderr)


def _direction_warning(forward: Alignments, reverse: Alignments) -> str | None:
    """A warning if the two look as if one were of the other direction, else None."""
    names = forward.file.name, reverse.file.name
    links = reverse.links.possible
    common = exchanged = 0
    for _, its, mine in blocks(links, forward.links.possible):
        common += int(mine.isin(its).sum())
        exchanged += int(mine.isin(its.transposed()).sum())
    if exchanged <= 2 * common:
        return None
    advice = "leave --reverse-swap out" if reverse.swap else "give --reverse-swap"
    return (
        f"{names[1]}: {common} of its {len(links)} links are in {names[0]}, but {exchanged} with source and target "
        f"exchanged: one of the two looks swapped; if so, {advice}"
    )
