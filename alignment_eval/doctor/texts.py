"""The texts of ``align-eval doctor``: the gold's, and those that the hypothesis links, if they are others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import Lines, TokenWords, token_words
from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.text import token_lines
from alignment_eval.maps.subwords import detect_mark, word_indices, word_strings

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
    lengths: tuple[NDArray[np.int64], NDArray[np.int64]]
    words: tuple[TokenWords, TokenWords] | None
    notes: tuple[str, ...]


def read_given(source: str, target: str, hyp_source: str | None, hyp_target: str | None) -> GivenTexts:
    """Read the texts; those of the hypothesis are the gold's if they are not named.

    Raises:
        InputError: a text cannot be read, mixes subword marks, or has another number of lines.
    """
    notes: list[str] = []
    lines: dict[str, Lines] = {}
    for name in filter(None, (source, target, hyp_source, hyp_target)):
        lines[name] = [[token.decode() for token in line] for line in token_lines(name)]
        if len(lines[name]) != len(lines[source]):
            raise InputError(
                f"{source} has {len(lines[source])} lines, {name} has {len(lines[name])}: expected the same number, "
                f"one line a sentence; are they of one text?"
            )
    words = _words(source, lines[source], notes), _words(target, lines[target], notes)
    names = hyp_source or source, hyp_target or target
    found = _found(names[0], lines[names[0]], words[0], notes), _found(names[1], lines[names[1]], words[1], notes)
    known = all(map(len, found)) and any(map(_differs, found))
    texts = Texts(source, _lengths(lines[source]), target, _lengths(lines[target]))
    return GivenTexts(texts, (_lengths(words[0]), _lengths(words[1])), found if known else None, tuple(notes))


def _lengths(lines: Lines) -> NDArray[np.int64]:
    return np.array([len(line) for line in lines], dtype=np.int64)


def _words(name: str, lines: Lines, notes: list[str]) -> Lines:
    """The words of a text of the gold."""
    try:
        mark = detect_mark({token for line in lines for token in line})
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if mark == "none":
        return lines
    notes.append(f"{name} carries the subword mark {mark}: its words, joined, are taken for the gold's")
    return [word_strings(line, word_indices(line, mark)) for line in lines]


def _found(name: str, lines: Lines, words: Lines, notes: list[str]) -> TokenWords:
    """The words of the hypothesis's tokens; nothing if they are of another text."""
    found = token_words(lines, words)
    tokens = [token for line in found for token in line]
    lost = sum(not token for token in tokens) / max(len(tokens), 1)
    if lost <= _MAX_LOST:
        return found
    notes.append(
        f"{name} is not the gold's text tokenised otherwise: {lost:.0%} of its tokens are in lines of other "
        f"characters; are its lines in the same order?"
    )
    return ()


def _differs(found: TokenWords) -> bool:
    """Whether a token is not the word of its own number."""
    return any(token != range(n, n + 1) for line in found for n, token in enumerate(line))
