"""The texts of ``align-eval doctor``: the gold's, and those that the hypothesis links, if they are others."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import Lines, TokenWords, joined, subword_mark, token_words
from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.text import token_lines

IntArray = NDArray[np.int64]

#: With more than this part of tokens that could not be found in the gold's text, the texts are not the same.
_MAX_LOST = 0.1


@dataclass(frozen=True, eq=False)
class GivenTexts:
    """What the texts say.

    Attributes:
        texts: the gold's, as ``align-eval score`` reads them.
        lengths: number of the gold's words in each line, [sentences] a side.
        words: the gold's words that the tokens of the hypothesis's texts belong to; None if they are the same words,
            or cannot be found.
        notes: what is odd about them.
    """

    texts: Texts
    lengths: tuple[IntArray, IntArray]
    words: tuple[TokenWords, TokenWords] | None
    notes: tuple[str, ...]


def given_texts(args: argparse.Namespace) -> GivenTexts | None:
    """What the texts say.

    Raises:
        UsageError: a text lacks its other side, or the hypothesis's texts are given without the gold's.
        InputError: a text cannot be read, or they are not of as many lines.
    """
    names = args.source, args.target, args.hyp_source, args.hyp_target
    if (args.source is None) != (args.target is None) or (args.hyp_source is None) != (args.hyp_target is None):
        raise UsageError("only the source or only the target text is given: expected both or neither")
    if args.source is None:
        if args.hyp_source is not None:
            raise UsageError("--hyp-source without --source: expected the texts of the gold too")
        return None
    lines = {name: [[token.decode() for token in line] for line in token_lines(name)] for name in names if name}
    for name, its in lines.items():
        if len(its) != len(lines[args.source]):
            raise InputError(
                f"{args.source} has {len(lines[args.source])} lines, {name} has {len(its)}: expected as many, one line "
                f"a sentence; are they of one text?"
            )
    notes: list[str] = []
    found = [
        _side(name, lines[name], hyp_name or name, lines[hyp_name or name], notes)
        for name, hyp_name in ((args.source, args.hyp_source), (args.target, args.hyp_target))
    ]
    counts = [np.array([len(line) for line in lines[name]], dtype=np.int64) for name in (args.source, args.target)]
    (source_lengths, source), (target_lengths, target) = found
    words = None if source is None or target is None or (source.identity and target.identity) else (source, target)
    texts = Texts(args.source, counts[0], args.target, counts[1])
    return GivenTexts(texts, (source_lengths, target_lengths), words, tuple(notes))


def _side(
    name: str, lines: Lines, hyp_name: str, hyp_lines: Lines, notes: list[str]
) -> tuple[IntArray, TokenWords | None]:
    """Number of words of each line of a text, and the words of the hypothesis's tokens (None: another text)."""
    mark = subword_mark(lines, name)
    words = joined(lines, mark)
    lengths = np.array([len(line) for line in words], dtype=np.int64)
    if mark != "none":
        notes.append(f"{name} carries the subword mark {mark}: its words, joined, are taken for the gold's")
    hyp_mark = subword_mark(hyp_lines, hyp_name)
    if hyp_name != name:
        notes += _comparison(name, words, hyp_name, joined(hyp_lines, hyp_mark))
    found = token_words(hyp_lines, words, hyp_mark)
    lost = float((found.first < 0).mean()) if len(found.first) else 0.0
    if lost > _MAX_LOST:
        notes.append(f"{hyp_name} is not the text of {name} tokenised otherwise: {lost:.0%} of its tokens are in lines "
                     f"of other characters; are its lines in the same order?")  # fmt: skip
        return lengths, None
    return lengths, found


def _comparison(name: str, words: Lines, hyp_name: str, hyp_words: Lines) -> list[str]:
    """What differs between two texts, subwords joined."""
    case = other = 0
    for line, hyp_line in zip(words, hyp_words):
        if list(line) != list(hyp_line):
            same = [word.lower() for word in line] == [word.lower() for word in hyp_line]
            case, other = case + same, other + (not same)
    notes = []
    if case:
        notes.append(
            f"{hyp_name} and {name} differ only in case in {case} lines: that changes no link, but a model of "
            f"lowercased text does not know cased words"
        )
    if other:
        notes.append(f"{hyp_name} and {name} have other words in {other} lines")
    return notes
