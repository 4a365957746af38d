"""The options of a lexicon: counted on the text and saved, or read from a file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from alignment_eval.errors import UsageError, warn_on_stderr
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.method import LEXICON_PAIRS, AlignmentMethod
from alignment_eval.files import STANDARD, check_new, file_hash
from alignment_eval.options.common import positive_integer
from alignment_eval.profiles.chosen import few_pairs_warning
from alignment_eval.records.lexicon_file import read_lexicon, write_lexicon
from alignment_eval.signature import Value


def add_lexicon_arguments(parser: argparse.ArgumentParser, default: str) -> None:
    """Declare the options; ``default`` says what ``--lexicon`` is when it is not given."""
    group = parser.add_argument_group("lexicon", "reweights word maps by how strongly their words belong together")
    group.add_argument(
        "--lexicon",
        type=int,
        metavar="PASSES",
        help=f"count a lexicon on the text in PASSES passes (0: none; default: {default})",
    )
    group.add_argument(
        "--lexicon-pairs",
        type=positive_integer,
        metavar="N",
        help=f"count it on the first N sentence pairs and use it for all pairs (default: {LEXICON_PAIRS})",
    )
    group.add_argument("--save-lexicon", metavar="FILE", help="write it to FILE (Parquet)")
    group.add_argument("--lexicon-file", metavar="FILE", help="use the lexicon in FILE instead of counting one")


def check_lexicon_arguments(args: argparse.Namespace, overwrite: bool) -> None:
    """Check the options among each other; :func:`with_lexicon_options` checks them against the method.

    Args:
        args: the options.
        overwrite: whether ``--save-lexicon`` may replace a file.

    Raises:
        UsageError: two contradict each other.
        InputError: the lexicon cannot be saved there.
    """
    if args.lexicon is not None and args.lexicon < 0:
        raise UsageError(f"--lexicon {args.lexicon}: expected a number of passes, 1 or more, or 0 for no lexicon")
    if args.lexicon_file is not None:
        for name in ("lexicon", "lexicon_pairs", "save_lexicon"):
            if getattr(args, name):
                raise UsageError(
                    f"--{name.replace('_', '-')} together with --lexicon-file, which replaces counting: leave one out"
                )
    if args.save_lexicon == STANDARD:
        raise UsageError("--save-lexicon -: a lexicon is not text: expected the name of a file")
    if args.save_lexicon is not None:
        if Path(args.save_lexicon).resolve() == Path(args.output).resolve():
            raise UsageError(f"--save-lexicon {args.save_lexicon}: is also the output file: expected another file")
        check_new(args.save_lexicon, overwrite)


def given_passes(args: argparse.Namespace) -> int | None:
    """Passes over a lexicon of the text, None if not given; 0 with ``--lexicon-file``."""
    return args.lexicon if args.lexicon_file is None else 0


def with_lexicon_options(method: AlignmentMethod, args: argparse.Namespace) -> AlignmentMethod:
    """The method, with ``--lexicon-pairs``.

    Raises:
        UsageError: ``--lexicon-file`` is given, but the method does not read word maps; or an option of a counted
            lexicon is given, but none is counted.
    """
    if args.lexicon_file is not None:
        method.check_lexicon()
    for name in ("lexicon_pairs", "save_lexicon"):
        if getattr(args, name) is not None and not method.lexicon_passes:
            raise UsageError(f"--{name.replace('_', '-')}: no lexicon is counted here: expected --lexicon PASSES too")
    return replace(method, lexicon_pairs=args.lexicon_pairs or LEXICON_PAIRS)


def given_lexicon(args: argparse.Namespace) -> Lexicon | None:
    """The lexicon of ``--lexicon-file``, if one is given.

    Raises:
        InputError: the file cannot be read, or is not a lexicon.
    """
    return None if args.lexicon_file is None else read_lexicon(args.lexicon_file)


def lexicon_fields(args: argparse.Namespace) -> dict[str, Value]:
    """Signature fields of ``--lexicon-file``."""
    return {} if args.lexicon_file is None else {"lexicon_file": file_hash(args.lexicon_file)}


def on_count(args: argparse.Namespace, signature: str) -> Callable[[Lexicon], None]:
    """A function that warns of a lexicon of few pairs and saves it to ``--save-lexicon``.

    Args:
        args: the options.
        signature: signature of the alignments, written into the file.
    """

    def counted(lexicon: Lexicon) -> None:
        if warning := few_pairs_warning(lexicon.pairs):
            warn_on_stderr(warning)
        if args.save_lexicon is not None:
            write_lexicon(args.save_lexicon, lexicon, signature)

    return counted
