"""The options that say how links are made: which maps are read, by which rule, and with which word table."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

from alignment_eval.errors import UsageError, warn_on_stderr
from alignment_eval.extraction.defaults import KIND, default_rule
from alignment_eval.extraction.method import (
    WORD_TABLE_PAIRS,
    AlignmentMethod,
    BidirectionalOptions,
    ExtractionOptions,
    MapName,
    MapNames,
)
from alignment_eval.extraction.rules import NULLS, RULE_NAMES
from alignment_eval.extraction.word_table import WordTable
from alignment_eval.files import STANDARD, check_new, file_hash
from alignment_eval.maps.kinds import KINDS
from alignment_eval.maps.words import COMBINATIONS, FLOOR, SETTINGS
from alignment_eval.options.common import Input, Output, add_list, positive_integer
from alignment_eval.profiles.chosen import few_pairs_warning
from alignment_eval.records.word_table_file import read_word_table, write_word_table
from alignment_eval.signature import Value

MAX_NORM = "max-norm"
FINAL_PUNCTUATION = "link the final punctuation marks of both sides to each other and to nothing else"
WORD_TABLE = "reweights word maps by how strongly their words belong together"
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
        type=Input,
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
    """Whether the command line names maps."""
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
    """The method that the options name, with ``passes`` over a word table.

    ``both`` says how two directions are combined; None: there is one direction.  ``max_norm`` is the layer of
    ``--heads max-norm``.
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
        return AlignmentMethod(forward, word_table_passes=passes)
    reverse = forward if args.reverse_heads is None else replace(forward, heads=MapNames(args.reverse_heads))
    return AlignmentMethod(forward, reverse, both, passes)


def add_word_table_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare the options; ``default`` says what ``--word-table`` is when it is not given."""
    group = parser.add_argument_group("word table", WORD_TABLE)
    group.add_argument(
        "--word-table",
        type=_passes_or_file,
        metavar="PASSES|FILE",
        help=f"count a word table on the text in PASSES passes (0: none; default: {default}), or use the one in FILE",
    )
    group.add_argument(
        "--word-table-pairs",
        type=positive_integer,
        metavar="N",
        help=f"count it on the first N sentence pairs and use it for all pairs (default: {WORD_TABLE_PAIRS})",
    )
    group.add_argument("--save-word-table", type=Output, metavar="FILE", help="write it to FILE (Parquet)")


def _passes_or_file(text: str) -> int | Input:
    return int(text) if text.lstrip("-").isdecimal() else Input(text)


def check_word_table_arguments(args: argparse.Namespace, overwrite: bool) -> None:
    """Check the options among each other; :func:`with_word_table_options` checks them against the method.

    ``overwrite``: ``--save-word-table`` may replace a file.
    """
    if isinstance(args.word_table, int) and args.word_table < 0:
        raise UsageError(f"--word-table {args.word_table}: expected passes, 1 or more, 0 for no word table, or a file")
    for name in ("word_table_pairs", "save_word_table"):
        if word_table_file(args) is not None and getattr(args, name):
            raise UsageError(
                f"--{name.replace('_', '-')} with --word-table {args.word_table}, where none is counted: leave it out"
            )
    if args.save_word_table == STANDARD:
        raise UsageError("--save-word-table -: a word table is not text: expected the name of a file")
    if args.save_word_table is not None:
        check_new(args.save_word_table, overwrite)


def given_passes(args: argparse.Namespace) -> int | None:
    """Passes over a word table of the text, None if not given; 0 with a word table of a file."""
    return 0 if isinstance(args.word_table, str) else args.word_table


def word_table_file(args: argparse.Namespace) -> str | None:
    """The file of ``--word-table FILE``."""
    return args.word_table if isinstance(args.word_table, str) else None


def with_word_table_options(method: AlignmentMethod, args: argparse.Namespace) -> AlignmentMethod:
    """The method, with ``--word-table-pairs``."""
    if word_table_file(args) is not None:
        method.check_word_table()
    for name in ("word_table_pairs", "save_word_table"):
        if getattr(args, name) is not None and not method.word_table_passes:
            raise UsageError(
                f"--{name.replace('_', '-')}: no word table is counted here: expected --word-table PASSES too"
            )
    return replace(method, word_table_pairs=args.word_table_pairs or WORD_TABLE_PAIRS)


def given_word_table(args: argparse.Namespace) -> WordTable | None:
    """The word table of ``--word-table FILE``, if one is given."""
    file = word_table_file(args)
    return None if file is None else read_word_table(file)


def word_table_fields(args: argparse.Namespace) -> dict[str, Value]:
    """Signature fields of ``--word-table FILE``."""
    file = word_table_file(args)
    return {} if file is None else {"word_table_file": file_hash(file)}


def on_count(args: argparse.Namespace, signature: str) -> Callable[[WordTable], None]:
    """A function that warns of a word table of few pairs and saves it to ``--save-word-table``.

    ``signature`` is that of the alignments, written into the file.
    """

    def counted(word_table: WordTable) -> None:
        warn_of_few_pairs(word_table)
        if args.save_word_table is not None:
            write_word_table(args.save_word_table, word_table, signature, args.resume)

    return counted


def warn_of_few_pairs(word_table: WordTable) -> None:
    """Warn of a counted word table of few pairs."""
    if warning := few_pairs_warning(word_table.pairs):
        warn_on_stderr(warning)
