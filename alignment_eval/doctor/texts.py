"""The texts of ``align-eval doctor``: those of the gold, and those of the hypothesis if they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from alignment_eval.doctor.retokenise import TokenWords, token_words
from alignment_eval.errors import InputError
from alignment_eval.formats.checks import Texts
from alignment_eval.formats.text import Words
from alignment_eval.maps.subwords import detect_mark, word_indices, word_strings
from alignment_eval.scoring.direction import LOOKED_AT

#: The texts differ if a larger part of the tokens cannot be found in the gold's text.
_MAX_LOST = 0.1


@dataclass(frozen=True, eq=False)
class GivenTexts:
    """The texts, and what follows from them.

    Attributes:
        texts: the gold's texts, as ``align-eval score`` reads them.
        lengths: number of the gold's words in each line, [sentences] for each side.
        words: the gold's words that the tokens of the hypothesis's texts belong to, of the first ``LOOKED_AT``
            sentences; None if tokens and words are the same, or if the words cannot be found.
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
    lines: dict[str, Words] = {}
    for name in filter(None, (source, target, hyp_source, hyp_target)):
        lines[name] = Words.read(name)
        if len(lines[name].lengths) != len(lines[source].lengths):
            raise InputError(
                f"{source} has {len(lines[source].lengths)} lines, but {name} has {len(lines[name].lengths)}; give "
                f"texts of the same sentences, one per line"
            )
    words = _words(source, lines[source], notes), _words(target, lines[target], notes)
    names = hyp_source or source, hyp_target or target
    found = _found(names[0], lines[names[0]], words[0], notes), _found(names[1], lines[names[1]], words[1], notes)
    known = all(len(side.words) for side in found) and any(side.differ for side in found)
    texts = Texts(source, lines[source].lengths, target, lines[target].lengths)
    both = (found[0].words, found[1].words) if known else None
    return GivenTexts(texts, (words[0].lengths, words[1].lengths), both, tuple(notes))


def _words(name: str, lines: Words, notes: list[str]) -> Words:
    """The words of a text of the gold."""
    try:
        mark = detect_mark(set(lines.forms))
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    if mark == "none":
        return lines
    notes.append(f"{name} has the subword marker {mark}; its subwords are joined to get the gold's words")
    return Words.of(word_strings(line, word_indices(line, mark)) for line in lines)


class _Found(NamedTuple):
    """The words of the hypothesis's tokens, and whether any token is not the word with the same number."""

    words: TokenWords
    differ: bool


def _found(name: str, lines: Words, words: Words, notes: list[str]) -> _Found:
    """The words of the hypothesis's tokens, of the sentences that are looked at; empty if the text is another."""
    kept: list[Sequence[range]] = []
    lost, differ = 0, False
    for line in token_words(lines, words):
        lost += sum(not token for token in line)
        differ = differ or any(token != range(n, n + 1) for n, token in enumerate(line))
        if len(kept) < LOOKED_AT:
            kept.append(line)
    part = lost / max(len(lines.numbers), 1)
    if part <= _MAX_LOST:
        return _Found(kept, differ)
    notes.append(
        f"{name} is not the gold's text in another tokenisation: {part:.0%} of its tokens are in lines with other "
        f"characters; check the order of its lines"
    )
    return _Found((), differ)
