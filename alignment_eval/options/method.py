"""The options that say how links are made, as command lines take them (profiles/chosen.py declares them)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from alignment_eval.errors import UsageError
from alignment_eval.extraction.lexical_table import LexicalTable
from alignment_eval.files import STANDARD, check_new, file_hash
from alignment_eval.options.common import Input, Output, positive_integer
from alignment_eval.profiles.chosen import AlignmentOptions, warn_of_few_pairs
from alignment_eval.records.lexical_table_file import read_lexical_table, write_lexical_table
from alignment_eval.signature import Value

LEXICAL_TABLE = "reweights word maps by how strongly their words belong together"
_DECLARED = {declared.name: declared for declared in fields(AlignmentOptions)}
#: Other names of options, and how their values are read.
_ALSO = {"heads": ("--layer",)}
_READ: dict[str, dict[str, Any]] = {
    "final_punctuation": {"action": argparse.BooleanOptionalAction},
    "lexical_table": {"type": int},
    "profile": {"type": Input},
    "lexical_table_pairs": {"type": positive_integer},
    "max_tokens": {"type": positive_integer},
}


def add_options(group: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Declare options by the names of their fields; ``changes`` are for ``add_argument``."""
    for name in names:
        declared = {**_DECLARED[name].metadata, "default": _DECLARED[name].default, **_READ.get(name, {}), **changes}
        group.add_argument(f"--{name.replace('_', '-')}", *_ALSO.get(name, ()), **declared)


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that name maps and rule, or the profile that does; returns their group."""
    group = parser.add_argument_group("maps", description)
    add_options(group, "heads", "kind", "combine", "setting", "rule", "null", "final_punctuation", "profile")
    return group


def add_lexical_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a lexical table, which may be counted, saved and given."""
    group = parser.add_argument_group("lexical table", LEXICAL_TABLE)
    help_ = f"{_DECLARED['lexical_table'].metadata['help']}, or use the one in FILE"
    add_options(group, "lexical_table", type=_passes_or_file, metavar="PASSES|FILE", help=help_)
    add_options(group, "lexical_table_pairs")
    group.add_argument("--save-lexical-table", type=Output, metavar="FILE", help="write it to FILE (Parquet)")


def _passes_or_file(text: str) -> int | Input:
    return int(text) if text.lstrip("-").isdecimal() else Input(text)


def given_options(args: argparse.Namespace) -> AlignmentOptions:
    """The options that a command line states."""
    given = {name: getattr(args, name) for name in _DECLARED if hasattr(args, name)}
    if isinstance(given.get("lexical_table"), str):
        given["lexical_table_file"] = given.pop("lexical_table")
    if getattr(args, "scores_out", None) is not None:
        given["scores"] = True
    return AlignmentOptions(**given)


def check_save_lexical_table(args: argparse.Namespace, overwrite: bool) -> None:
    """Check ``--save-lexical-table``; ``overwrite``: it may replace a file."""
    if args.save_lexical_table is None:
        return
    if lexical_table_file(args) is not None:
        raise UsageError(
            f"--save-lexical-table with --lexical-table {args.lexical_table}, where none is counted: leave it out"
        )
    if args.save_lexical_table == STANDARD:
        raise UsageError("--save-lexical-table -: a lexical table is not text: expected the name of a file")
    check_new(args.save_lexical_table, overwrite)


def lexical_table_file(args: argparse.Namespace) -> str | None:
    """The file of ``--lexical-table FILE``."""
    return args.lexical_table if isinstance(args.lexical_table, str) else None


def given_lexical_table(args: argparse.Namespace) -> LexicalTable | None:
    """The lexical table of ``--lexical-table FILE``, if one is given."""
    file = lexical_table_file(args)
    return None if file is None else read_lexical_table(file)


def lexical_table_fields(args: argparse.Namespace) -> dict[str, Value]:
    """Signature fields of ``--lexical-table FILE``."""
    file = lexical_table_file(args)
    return {} if file is None else {"lexical_table_file": file_hash(file)}


def on_count(args: argparse.Namespace, signature: str) -> Callable[[LexicalTable], None]:
    """A function that warns of a lexical table of few pairs and saves it to ``--save-lexical-table``.

    ``signature`` is that of the alignments, written into the file.
    """

    def counted(lexical_table: LexicalTable) -> None:
        warn_of_few_pairs(lexical_table)
        if args.save_lexical_table is not None:
            write_lexical_table(args.save_lexical_table, lexical_table, signature, args.resume)

    return counted
