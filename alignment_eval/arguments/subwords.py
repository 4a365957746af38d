"""Arguments of commands that link subwords: the texts in subwords."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.text import Words
from alignment_eval.maps.subword_links import WordPieces
from alignment_eval.maps.subwords import MARKS, detect_mark


@dataclass(frozen=True, eq=False)
class SubwordTexts:
    """Two texts in subwords: the subwords of their words, and the numbers of words to check links against."""

    source: WordPieces
    target: WordPieces
    texts: Texts


def add_subword_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the texts in subwords."""
    group = parser.add_argument_group("subwords", "both texts make links between subwords of links between words")
    group.add_argument("--source-subwords", metavar="FILE", help="source text in subwords, one sentence a line")
    group.add_argument("--target-subwords", metavar="FILE", help="target text in subwords")
    group.add_argument(
        "--subword-mark",
        choices=("auto", *MARKS),
        default="auto",
        help="how subwords are marked (default: auto, detected from both texts)",
    )


def subwords_of(args: argparse.Namespace) -> SubwordTexts | None:
    """The texts of ``--source-subwords`` and ``--target-subwords``, None if neither is given.

    Raises:
        UsageError: only one of them is given, or ``--source`` or ``--target`` beside them.
        InputError: they cannot be read, have different numbers of lines, or mix subword marks.
    """
    paths = args.source_subwords, args.target_subwords
    if paths == (None, None):
        return None
    if None in paths:
        raise UsageError("only one of --source-subwords and --target-subwords is given: expected both or neither")
    if (args.source, args.target) != (None, None):
        raise UsageError("--source-subwords with --source or --target: links are checked against the texts in subwords")
    read = [Words.read(path) for path in paths]
    lines = [len(text.lengths) for text in read]
    if lines[0] != lines[1]:
        raise InputError(
            f"{paths[0]} has {lines[0]} lines, but {paths[1]} has {lines[1]}; give the two sides of one text, with one "
            f"sentence per line"
        )
    mark = args.subword_mark
    if mark == "auto":
        mark = _mark(read, paths)
    source, target = (WordPieces.of(text, mark) for text in read)
    return SubwordTexts(source, target, Texts(str(paths[0]), source.words, str(paths[1]), target.words))


def _mark(read: list[Words], paths: tuple[str, str]) -> str:
    try:
        return detect_mark({form for text in read for form in text.forms})
    except InputError as error:
        raise InputError(f"{paths[0]}, {paths[1]}: {error}: --subword-mark") from error
