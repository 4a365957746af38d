"""Arguments of commands that link subwords: the texts in subwords."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alignment_eval.errors import InputError, UsageError
from alignment_eval.links.checks import Texts
from alignment_eval.links.text import token_lines
from alignment_eval.maps.subwords import MARKS, detect_mark, word_pieces


@dataclass(frozen=True, eq=False)
class SubwordText:
    """A text in subwords; iterating reads the subwords of each word of its sentences."""

    path: str
    mark: str

    def __iter__(self) -> Iterator[list[list[int]]]:
        return (word_pieces([token.decode() for token in line], self.mark) for line in token_lines(self.path))


@dataclass(frozen=True, eq=False)
class SubwordTexts:
    """Two texts in subwords, and the numbers of words to check links against."""

    source: SubwordText
    target: SubwordText
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
    mark = args.subword_mark
    if mark == "auto":
        try:
            mark = detect_mark({token.decode() for path in paths for line in token_lines(path) for token in line})
        except InputError as error:
            raise InputError(f"{paths[0]}, {paths[1]}: {error}: --subword-mark") from error
    source, target = (SubwordText(path, mark) for path in paths)
    lengths = [np.array([len(words) for words in text], dtype=np.int64) for text in (source, target)]
    if len(lengths[0]) != len(lengths[1]):
        raise InputError(
            f"{paths[0]} has {len(lengths[0])} lines, but {paths[1]} has {len(lengths[1])}; give the two sides of one "
            f"text, with one sentence per line"
        )
    return SubwordTexts(source, target, Texts(paths[0], lengths[0], paths[1], lengths[1]))
