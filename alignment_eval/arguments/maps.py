"""The options that say which maps are read, and how links are read from them."""

from __future__ import annotations

import argparse

from alignment_eval.arguments.lists import add_list
from alignment_eval.arguments.numbers import finite_number
from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.extraction.rules import NULLS, RULE_NAMES
from alignment_eval.formats.line_style import LineStyle
from alignment_eval.maps.sentence import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS

MAX_NORM = "max-norm"
#: The options that a choice file takes the place of.
_CHOSEN = ("kind", "layer", "head", "heads", "combine", "setting", "rule", "null", "final_punctuation")


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that say which maps are read and how, or which choice says it; gives their group."""
    group = parser.add_argument_group("maps", description)
    group.add_argument("--kind", metavar="KIND", help=f"map kind: {', '.join(KINDS)}")
    group.add_argument(
        "--layer",
        type=layer_number,
        metavar="N",
        help=f"decoder layer, from 0; {MAX_NORM}: that of the highest mean norm, a choice without gold (AWI only)",
    )
    group.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: the map of the whole layer)")
    add_list(
        group,
        "--heads",
        "maps to combine: LAYER.HEAD, or LAYER for a whole layer, such as 1.2,0.3,1; 0.3:awi: one that is not of "
        "--setting",
        metavar="MAP",
        type=str,
    )
    group.add_argument(
        "--combine",
        choices=COMBINATIONS,
        help=f"of the maps' rows, each divided by its sum: the arithmetic mean (default) or the product, which is the "
        f"geometric mean of shares of {FLOOR:g} or more",
    )
    group.add_argument(
        "--setting",
        metavar="SETTING",
        help=f"{', '.join(SETTINGS)}: alignment of a target word by the row that outputs it, or has it as input",
    )
    group.add_argument("--rule", metavar="RULE", help=f"extraction rule: {', '.join(RULE_NAMES)}")
    group.add_argument(
        "--null",
        metavar="NULL",
        help=f"{', '.join(NULLS)}: may </s> and tags win, the word then stays unaligned (default: the rule's own)",
    )
    add_final_punctuation_argument(group)
    group.add_argument(
        "--profile",
        "--choice",
        metavar="FILE",
        help="take them from a profile of norm-align calibrate or align-eval select; none: not from one",
    )
    return group


def add_reverse_heads(group: argparse._ActionsContainer) -> None:
    """Declare ``--reverse-heads``."""
    add_list(
        group,
        "--reverse-heads",
        "maps of the other model (default: the same layers and heads)",
        metavar="MAP",
        type=str,
    )


def add_final_punctuation_argument(group: argparse._ActionsContainer) -> None:
    """Declare ``--final-punctuation``."""
    help_ = "link the final punctuation of both sides to each other, and to nothing else"
    group.add_argument("--final-punctuation", action="store_true", help=help_)


def layer_number(text: str) -> int | str:
    """The value of ``--layer``."""
    if text == MAX_NORM or text.isdecimal():
        return text if text == MAX_NORM else int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: expected a layer number, from 0, or {MAX_NORM}")


def given_map_options(args: argparse.Namespace) -> list[str]:
    """The options of :func:`add_map_arguments` that are given.

    Raises:
        UsageError: there are some beside ``--profile``.
    """
    values = {f"--{name.replace('_', '-')}": getattr(args, name) for name in _CHOSEN}
    given = [name for name, value in values.items() if value is not None and value is not False]
    if args.profile not in (None, "none") and given:
        raise UsageError(f"{given[0]} beside --profile: the profile says what is read; leave one of the two out")
    return given


def states_maps(args: argparse.Namespace) -> bool:
    """Whether options of the command line say which maps are read; the rule alone does not."""
    return any(getattr(args, name) is not None for name in ("kind", "layer", "head", "heads", "combine", "setting"))


def stated_options(args: argparse.Namespace, max_norm: int = 0) -> ExtractionOptions:
    """The extraction that the options name; ``max_norm`` is the layer of ``--layer max-norm``."""
    return ExtractionOptions(
        kind=args.kind,
        layer=max_norm if args.layer == MAX_NORM else args.layer,
        head=args.head,
        setting=args.setting,
        rule=args.rule,
        null=args.null,
        final_punctuation=args.final_punctuation,
        heads=() if args.heads is None else parse_maps(args.heads),
        combine=args.combine or "mean",
    )


def reverse_options(args: argparse.Namespace, forward: ExtractionOptions) -> ExtractionOptions:
    """The extraction of the other direction: other maps by ``--reverse-heads``, or the same."""
    if args.reverse_heads is not None:
        return forward.with_maps(parse_maps(args.reverse_heads))
    return forward


def add_line_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options that say what is written of a sentence; :func:`line_style` reads them."""
    group.add_argument("--confidences", action="store_true", help="write i-j:p, p the share of the link in its row")
    group.add_argument(
        "--min-confidence", type=finite_number, metavar="P", help="leave out links of a smaller share (0 to 1)"
    )


def line_style(args: argparse.Namespace) -> LineStyle:
    """What is written of a sentence.

    Raises:
        UsageError: ``--min-confidence`` is no share.
    """
    if args.min_confidence is not None and not 0 <= args.min_confidence <= 1:
        raise UsageError(f"--min-confidence {args.min_confidence:g}: expected a share of a row, from 0 to 1")
    return LineStyle(args.confidences, args.min_confidence)
