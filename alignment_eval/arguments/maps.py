"""The options that say which maps are read, and how links are read from them."""

from __future__ import annotations

import argparse

from alignment_eval.arguments.lists import add_list
from alignment_eval.arguments.numbers import finite_number
from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.extraction.rules import NULLS, RULE_NAMES
from alignment_eval.formats.writing import LineStyle
from alignment_eval.maps.sentence import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS

MAX_NORM = "max-norm"
_FINAL_PUNCTUATION = "link the final punctuation marks of both sides to each other and to nothing else"
#: The options that a profile replaces.
_CHOSEN = ("kind", "layer", "head", "heads", "combine", "setting", "rule", "null")


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that name maps and rule, or the profile that does; returns their group."""
    group = parser.add_argument_group("maps", description)
    group.add_argument("--kind", metavar="KIND", help=f"map kind: {', '.join(KINDS)}")
    group.add_argument(
        "--layer",
        type=layer_number,
        metavar="N",
        help=f"decoder layer, from 0; {MAX_NORM}: the layer with the highest mean norm, chosen without gold (AWI only)",
    )
    group.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: the map of the whole layer)")
    add_list(
        group,
        "--heads",
        "maps to combine: LAYER.HEAD, or LAYER for a whole layer, such as 1.2,0.3,1; 0.3:awi has a setting of its own",
        metavar="MAP",
        type=str,
    )
    group.add_argument(
        "--combine",
        choices=COMBINATIONS,
        help=f"mean (default) or product of the maps' rows, each divided by its sum (product: the geometric mean of "
        f"shares of {FLOOR:g} or more)",
    )
    group.add_argument(
        "--setting",
        metavar="SETTING",
        help=f"{', '.join(SETTINGS)}: a target word has the row that predicts it, or the row whose input it is",
    )
    group.add_argument("--rule", metavar="RULE", help=f"extraction rule: {', '.join(RULE_NAMES)}")
    group.add_argument(
        "--null",
        metavar="NULL",
        help=f"{', '.join(NULLS)}: may a word choose </s> or a tag, to stay unaligned? (default: by the rule)",
    )
    group.add_argument(
        "--final-punctuation",
        action=argparse.BooleanOptionalAction,
        help=f"{_FINAL_PUNCTUATION} (default: yes by a profile, no where maps are named)",
    )
    group.add_argument(
        "--profile",
        "--choice",
        metavar="FILE",
        help="read the maps that a profile names (of norm-align calibrate or align-eval select); none: use no profile",
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
    group.add_argument("--final-punctuation", action="store_true", help=_FINAL_PUNCTUATION)


def layer_number(text: str) -> int | str:
    """The value of ``--layer``."""
    if text == MAX_NORM or text.isdecimal():
        return text if text == MAX_NORM else int(text)
    raise argparse.ArgumentTypeError(f"{text!r}: expected a layer number, from 0, or {MAX_NORM}")


def given_map_options(args: argparse.Namespace) -> list[str]:
    """The options of :func:`add_map_arguments` that are given.

    Raises:
        UsageError: there are some together with ``--profile``.
    """
    values = {f"--{name.replace('_', '-')}": getattr(args, name) for name in _CHOSEN}
    given = [name for name, value in values.items() if value is not None]
    if args.profile not in (None, "none") and given:
        raise UsageError(f"{given[0]} together with --profile, which names the maps: leave one of the two out")
    return given


def states_maps(args: argparse.Namespace) -> bool:
    """Whether the command line names maps; the rule alone does not."""
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
        final_punctuation=bool(args.final_punctuation),
        heads=() if args.heads is None else parse_maps(args.heads),
        combine=args.combine or "mean",
    )


def reverse_options(args: argparse.Namespace, forward: ExtractionOptions) -> ExtractionOptions:
    """The extraction of the other direction: other maps by ``--reverse-heads``, or the same."""
    if args.reverse_heads is not None:
        return forward.with_maps(parse_maps(args.reverse_heads))
    return forward


def add_line_arguments(group: argparse._ArgumentGroup) -> None:
    """Declare the options of an output line; :func:`line_style` reads them."""
    group.add_argument("--confidences", action="store_true", help="write i-j:p, p: share of the link in its row")
    group.add_argument(
        "--min-confidence", type=finite_number, metavar="P", help="leave out links with a smaller share (0 to 1)"
    )


def line_style(args: argparse.Namespace) -> LineStyle:
    """How a sentence is written.

    Raises:
        UsageError: ``--min-confidence`` is not between 0 and 1.
    """
    if args.min_confidence is not None and not 0 <= args.min_confidence <= 1:
        raise UsageError(f"--min-confidence {args.min_confidence:g}: expected a number from 0 to 1")
    return LineStyle(args.confidences, args.min_confidence)
