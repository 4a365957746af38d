"""The options that say which maps are read, and how links are read from them."""

from __future__ import annotations

import argparse

from alignment_eval.errors import UsageError
from alignment_eval.extraction.defaults import KIND, default_rule
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions, MapName, MapNames
from alignment_eval.extraction.rules import NULLS, RULE_NAMES
from alignment_eval.maps.sentence import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS
from alignment_eval.options.common import add_list

MAX_NORM = "max-norm"
FINAL_PUNCTUATION = "link the final punctuation marks of both sides to each other and to nothing else"
#: The options that mean something only where maps are named.
_OF_MAPS = ("kind", "combine", "setting", "null", "reverse_heads")


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that name maps and rule, or the profile that does; returns their group."""
    group = parser.add_argument_group("maps", description)
    add_list(
        group,
        "--heads",
        f"maps to read: LAYER.HEAD, or LAYER for a whole layer, counted from 0, such as 1.2,0.3,1; 0.3:awi has a "
        f"setting of its own; {MAX_NORM}: the layer with the highest mean norm, without gold (extract, AWI only)",
        also=("--layer",),
        metavar="MAP",
        type=str,
    )
    group.add_argument("--kind", metavar="KIND", help=f"map kind (default: {KIND}): {', '.join(KINDS)}")
    group.add_argument(
        "--combine",
        choices=COMBINATIONS,
        help=f"mean (default) or product of the maps' rows, each divided by its sum (product: the geometric mean of "
        f"shares of {FLOOR:g} or more)",
    )
    group.add_argument(
        "--setting",
        metavar="SETTING",
        help=f"{', '.join(SETTINGS)}: a target word has the row that predicts it (default), or the row whose input it "
        f"is",
    )
    group.add_argument(
        "--rule",
        metavar="RULE",
        help=f"extraction rule: {', '.join(RULE_NAMES)} (default: that of the profile; where maps are named "
        f"{default_rule(None)}, for the product of two models {default_rule(BidirectionalOptions('product'))})",
    )
    group.add_argument(
        "--null",
        metavar="NULL",
        help=f"{', '.join(NULLS)}: may a word choose </s> or a tag, to stay unaligned? (default: by the rule)",
    )
    group.add_argument(
        "--final-punctuation",
        action=argparse.BooleanOptionalAction,
        help=f"{FINAL_PUNCTUATION} (default: yes by a profile, no where maps are named)",
    )
    group.add_argument(
        "--profile",
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


def states_maps(args: argparse.Namespace) -> bool:
    """Whether the command line names maps.

    Raises:
        UsageError: it names maps and a profile, or has an option of maps without them.
    """
    if args.heads is None:
        for name in _OF_MAPS:
            if getattr(args, name, None) is not None:
                raise UsageError(f"--{name.replace('_', '-')} without --heads: expected the maps that it applies to")
        return False
    if args.profile not in (None, "none"):
        raise UsageError("--heads together with --profile, which names the maps: leave one of the two out")
    return True


def stated_method(
    args: argparse.Namespace, both: BidirectionalOptions | None, passes: int, max_norm: int = 0
) -> AlignmentMethod:
    """The method that the options name.

    Args:
        args: the options.
        both: how two directions are combined; None: there is one direction.
        passes: passes over a lexicon.
        max_norm: the layer of ``--heads max-norm``.

    Raises:
        UsageError: the options do not go together.
    """
    forward = ExtractionOptions(
        args.kind or KIND,
        heads=MapNames([MapName(max_norm)] if args.heads == MAX_NORM else args.heads),
        setting=args.setting or "awo",
        rule=args.rule or default_rule(both),
        null=args.null,
        final_punctuation=bool(args.final_punctuation),
        combine=args.combine or "mean",
    )
    if both is None:
        return AlignmentMethod(forward, lexicon_passes=passes)
    reverse = forward if args.reverse_heads is None else forward.with_maps(MapNames(args.reverse_heads))
    return AlignmentMethod(forward, reverse, both, passes)
