"""The options that say how links are made, as command lines take them (profiles/chosen.py declares them)."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from alignment_eval.errors import UsageError
from alignment_eval.extraction.word_table import WordTable
from alignment_eval.files import STANDARD, check_new, file_hash
from alignment_eval.options.common import Input, Output, positive_integer
from alignment_eval.profiles.chosen import AlignmentOptions, warn_of_few_pairs
from alignment_eval.records.word_table_file import read_word_table, write_word_table
from alignment_eval.signature import Value

WORD_TABLE = "reweights word maps by how strongly their words belong together"
_DECLARED = {declared.name: declared for declared in fields(AlignmentOptions)}
#: Other names of options, and how their values are read.
_ALSO = {"heads": ("--layer",)}
_READ: dict[str, dict[str, Any]] = {
    "final_punctuation": {"action": argparse.BooleanOptionalAction},
    "word_table": {"type": int},
    "profile": {"type": Input},
    "word_table_pairs": {"type": positive_integer},
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


def add_word_table_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of a lexical table, which may be counted, saved and given."""
    group = parser.add_argument_group("lexical table", WORD_TABLE)
    help_ = f"{_DECLARED['word_table'].metadata['help']}, or use the one in FILE"
    add_options(group, "word_table", type=_passes_or_file, metavar="PASSES|FILE", help=help_)
    add_options(group, "word_table_pairs")
    group.add_argument("--save-word-table", type=Output, metavar="FILE", help="write it to FILE (Parquet)")


def _passes_or_file(text: str) -> int | Input:
    return int(text) if text.lstrip("-").isdecimal() else Input(text)


def given_options(args: argparse.Namespace) -> AlignmentOptions:
    """The options that a command line states."""
    given = {name: getattr(args, name) for name in _DECLARED if hasattr(args, name)}
    if isinstance(given.get("word_table"), str):
        given["word_table_file"] = given.pop("word_table")
    if getattr(args, "scores_out", None) is not None:
        given["scores"] = True
    return AlignmentOptions(**given)


def check_save_word_table(args: argparse.Namespace, overwrite: bool) -> None:
    """Check ``--save-word-table``; ``overwrite``: it may replace a file."""
    if args.save_word_table is None:
        return
    if word_table_file(args) is not None:
        raise UsageError(f"--save-word-table with --word-table {args.word_table}, where none is counted: leave it out")
    if args.save_word_table == STANDARD:
        raise UsageError("--save-word-table -: a lexical table is not text: expected the name of a file")
    check_new(args.save_word_table, overwrite)


def word_table_file(args: argparse.Namespace) -> str | None:
    """The file of ``--word-table FILE``."""
    return args.word_table if isinstance(args.word_table, str) else None


def given_word_table(args: argparse.Namespace) -> WordTable | None:
    """The lexical table of ``--word-table FILE``, if one is given."""
    file = word_table_file(args)
    return None if file is None else read_word_table(file)


def word_table_fields(args: argparse.Namespace) -> dict[str, Value]:
    """Signature fields of ``--word-table FILE``."""
    file = word_table_file(args)
    return {} if file is None else {"word_table_file": file_hash(file)}


def on_count(args: argparse.Namespace, signature: str) -> Callable[[WordTable], None]:
    """A function that warns of a lexical table of few pairs and saves it to ``--save-word-table``.

    ``signature`` is that of the alignments, written into the file.
    """

    def counted(word_table: WordTable) -> None:
        warn_of_few_pairs(word_table)
        if args.save_word_table is not None:
            write_word_table(args.save_word_table, word_table, signature, args.resume)

    return counted
