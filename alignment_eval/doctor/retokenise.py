"""Tokens of a text -> words of the same text tokenised in another way, by the characters that they share.

Subword tokens are one case of it, ``do n't`` for ``don't`` another.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.table import LinkTable
from alignment_eval.maps.subwords import detect_mark, word_indices, word_strings

IntArray = NDArray[np.int64]
#: The tokens of each line.
Lines = Sequence[Sequence[str]]


@dataclass(frozen=True, eq=False)
class TokenWords:
    """The words that each token of a text belongs to: from ``first`` to ``last``, both [tokens of all lines].

    Token t of line n stands at ``starts[n] + t``; ``starts`` is [lines + 1].  ``first`` is -1 in lines that are not
    the same text.
    """

    starts: IntArray
    first: IntArray
    last: IntArray

    @property
    def identity(self) -> bool:
        """Whether every token is the word of its own number."""
        numbers = np.arange(len(self.first)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        return bool((self.first == numbers).all() and (self.last == numbers).all())

    def of(self, sentence: IntArray, token: IntArray) -> tuple[IntArray, IntArray]:
        """First and last word of some tokens; -1, -1 for those that are not in the text."""
        known = (token >= 0) & (sentence < len(self.starts) - 1)
        place = self.starts[np.where(known, sentence, 0)] + np.where(known, token, 0)
        known &= place < self.starts[np.where(known, sentence + 1, 0)]
        place = np.where(known, place, -1)
        none = np.full(1, -1, dtype=np.int64)
        return np.append(self.first, none)[place], np.append(self.last, none)[place]


def subword_mark(lines: Lines, name: str) -> str:
    """The subword mark of a text, ``none`` if it has none.

    Raises:
        InputError: tokens carry several marks in numbers.
    """
    try:
        return detect_mark({token for line in lines for token in line})
    except InputError as error:
        raise InputError(f"{name}: {error}") from error


def joined(lines: Lines, mark: str) -> list[list[str]]:
    """The words that the subword tokens of each line spell."""
    return [word_strings(line, word_indices(line, mark)) for line in lines] if mark != "none" else [*map(list, lines)]


def token_words(tokens: Lines, words: Lines, mark: str) -> TokenWords:
    """Find the words of each token, line by line, through their characters.

    Case, subword marks and Moses' escapes (``&apos;``, ``@-@``) do not count.  A token without characters belongs to
    the word that follows, as SentencePiece's lone ``▁`` does.

    Args:
        tokens: a text.
        words: the same text in another tokenisation, of as many lines.
        mark: subword mark of ``tokens``.
    """
    pairs = [_line(line, its, mark) for line, its in zip(tokens, words)]
    none = np.empty(0, dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(line) for line in tokens], dtype=np.int64)])
    return TokenWords(starts, *(np.concatenate([none, *column]) for column in zip(*pairs)))


def _line(tokens: Sequence[str], words: Sequence[str], mark: str) -> tuple[IntArray, IntArray]:
    spelled = [_letters(token, mark) for token in tokens]
    of_words = [_letters(word, "none") for word in words]
    if "".join(spelled) != "".join(of_words) or not of_words:
        none = np.full(len(tokens), -1, dtype=np.int64)
        return none, none
    token_ends, word_ends = (np.cumsum([len(part) for part in parts], dtype=np.int64) for parts in (spelled, of_words))
    token_starts = token_ends - [len(part) for part in spelled]
    # the word of a character is the first that ends after it
    first = np.minimum(np.searchsorted(word_ends, token_starts, side="right"), len(words) - 1)
    last = np.searchsorted(word_ends, np.maximum(token_ends - 1, token_starts), side="right")
    return first, np.maximum(first, np.minimum(last, len(words) - 1))


def _letters(token: str, mark: str) -> str:
    bare = word_strings([token], [0])[0] if mark != "none" else token
    bare = "" if mark == "▁" and token == "▁" else bare
    return html.unescape(bare).replace("@-@", "-").lower()


def words_of_tokens(links: LinkTable, source: TokenWords, target: TokenWords, base: int = 0) -> LinkTable:
    """Links between words from links between tokens: each pair of words of which a pair of tokens is linked.

    Links of tokens that are not in the texts are left out.  ``base`` is the number of the first token and word.
    """
    sentence = links.sentence
    i, i_last = source.of(sentence, links.source - base)
    j, j_last = target.of(sentence, links.target - base)
    known = (i >= 0) & (j >= 0)
    sentence, i, i_last, j, j_last = (values[known] for values in (sentence, i, i_last, j, j_last))
    height, width = i_last - i + 1, j_last - j + 1
    link = np.repeat(np.arange(len(i)), height * width)
    cell = np.arange(len(link)) - np.repeat(np.cumsum(height * width) - height * width, height * width)
    return LinkTable.build(
        sentence[link],
        i[link] + cell // width[link] + base,
        j[link] + cell % width[link] + base,
        links.sentences,
    )
