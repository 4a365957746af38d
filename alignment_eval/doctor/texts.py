"""The texts of ``align-eval doctor``: those of the gold, and those of the hypothesis if they differ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import Lines, TokenWords, token_words
from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.text import token_lines
from alignment_eval.maps.subwords import detect_mark, word_indices, word_strings

#: The texts differ if a larger part of the tokens cannot be found in the gold's text.
_MAX_LOST = 0.1


@dataclass(frozen=True, eq=False)
class GivenTexts:
    """The texts, and what follows from them.

    Attributes:
        texts: the gold's texts, as ``align-eval score`` reads them.
        lengths: number of the gold's words in each line, [sentences] for each side.
        words: the gold's words that the tokens of the hypothesis's texts belong to; None if tokens and words are the
            same, or if the words cannot be found.
        notes: notes on unusual properties.
    """

    texts: Texts
    lengths: tuple[NDArray[np.int64], NDArray[np.int64]]
    words: tuple[TokenWords, TokenWords] | None
    notes: tuple[str, ...]


def read_given(source: str, target: str, hyp_source: str | None, hyp_target: str | None) -> GivenTexts:
    """Read the texts; by default, those of the hypothesis are the gold's.

    Raises:
        InputError: a text cannot be read, mixes subword markers, or has another number of lines.
    """
    notes: list[str] = []
    lines: dict[str, Lines] = {}
    for name in filter(None, (source, target, hyp_source, hyp_target)):
        lines[name] = [[token.decode() for token in line] for line in token_lines(name)]
        if len(lines[name]) != len(lines[source]):
            raise InputError(
                f"{source} has {len(lines[source])} lines, but {name} has {len(lines[name])}; give texts of the same "
                f"sentences, one per line"
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
    notes.append(f"{name} has the subword marker {mark}; its subwords are joined to get the gold's words")
    return [word_strings(line, word_indices(line, mark)) for line in lines]


def _found(name: str, lines: Lines, words: Lines, notes: list[str]) -> TokenWords:
    """The words of the hypothesis's tokens; empty if the text is another."""
    found = token_words(lines, words)
    tokens = [token for line in found for token in line]
    lost = sum(not token for token in tokens) / max(len(tokens), 1)
    if lost <= _MAX_LOST:
        return found
    notes.append(
        f"{name} is not the gold's text in another tokenisation: {lost:.0%} of its tokens are in lines with other "
        f"characters; check the order of its lines"
    )
    return ()


def _differs(found: TokenWords) -> bool:
    """Whether any token is not the word with the same number."""
    return any(token != range(n, n + 1) for line in found for n, token in enumerate(line))
