"""Arguments of commands that link subwords: the texts in subwords."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from alignment_eval.errors import InputError, UsageError
from alignment_eval.links.checks import Texts
from alignment_eval.links.text import token_lines
from alignment_eval.maps.subwords import MARKS, detect_mark, word_pieces


def word_lines(path: str, mark: str) -> Iterator[list[list[int]]]:
    """The subwords of each word of each sentence of a text in subwords."""
    return (word_pieces([token.decode() for token in line], mark) for line in token_lines(path))


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


def subwords_of(args: argparse.Namespace) -> tuple[str, Texts] | None:
    """The mark of the texts in subwords and their numbers of words, to check links against; None if there are none.

    Raises:
        UsageError: only one of the texts is given, or ``--source`` or ``--target`` too.
        InputError: they cannot be read, have different numbers of lines, or mix subword marks.
    """
    paths = args.source_subwords, args.target_subwords
    if paths == (None, None):
        return None
    if None in paths:
        raise UsageError("only one of --source-subwords and --target-subwords is given: expected both or neither")
    if (args.source, args.target) != (None, None):
        raise UsageError("--source-subwords with --source or --target: links are checked against the texts in subwords")
    mark = args.subword_mark
    if mark == "auto":
        try:
            mark = detect_mark({token.decode() for path in paths for line in token_lines(path) for token in line})
        except InputError as error:
            raise InputError(f"{paths[0]}, {paths[1]}: {error}: --subword-mark") from error
    source, target = (np.fromiter(map(len, word_lines(path, mark)), dtype=np.int64) for path in paths)
    return mark, Texts(paths[0], source, paths[1], target)
