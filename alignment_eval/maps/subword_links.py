"""Links between subwords that stand for links between words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.table import GoldTable, LinkTable, blocks, joined
from alignment_eval.maps.subwords import word_indices

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class WordPieces:
    """The subwords of each word, for one side of a corpus.

    Attributes:
        starts: position in its sentence of the first subword of each word, [words of all sentences].
        counts: the number of subwords of each word, [words of all sentences].
        words: the number of words of each sentence, [sentences].
    """

    starts: Integers
    counts: Integers
    words: Integers

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], mark: str) -> WordPieces:
        """The words of sentences that are given in subwords.

        Args:
            sentences: the subwords of each sentence, none of them special.
            mark: one of :data:`alignment_eval.maps.subwords.MARKS`.

        Raises:
            InputError: ``mark`` is unknown.
        """
        nothing = np.empty(0, dtype=np.int64)
        counts = [nothing, *(np.bincount(word_indices(tokens, mark)) for tokens in sentences)]
        starts = [np.cumsum(sentence) - sentence for sentence in counts]
        words = np.array([len(sentence) for sentence in counts[1:]], dtype=np.int64)
        return cls(np.concatenate(starts), np.concatenate(counts), words)

    def at(self, sentence: Integers, word: Integers) -> tuple[Integers, Integers]:
        """``starts`` and ``counts`` of the given words of the given sentences; both arrays count from 0.

        Raises:
            InputError: a sentence has no such word.
        """
        outside = np.flatnonzero(word >= self.words[sentence])
        if outside.size:
            n, k = sentence[outside[0]], word[outside[0]]
            raise InputError(f"sentence {n + 1} has {self.words[n]} words, but a link has word {k}, counted from 0")
        position = (np.cumsum(self.words) - self.words)[sentence] + word
        return self.starts[position], self.counts[position]


def subword_links(links: GoldTable, source: WordPieces, target: WordPieces) -> GoldTable:
    """The links between subwords: each subword of a word has all links of the word.

    Args:
        links: links between words; the links made of one have its confidence.
        source: the subwords of the source words.
        target: the subwords of the target words.

    Raises:
        InputError: a link is outside its sentence pair.
    """
    sure = _subword_links(links.sure, source, target)
    return GoldTable(sure, sure if links.possible is links.sure else _subword_links(links.possible, source, target))


def _subword_links(links: LinkTable, source: WordPieces, target: WordPieces) -> LinkTable:
    return joined(_of_block(part, at.start, source, target) for at, part in blocks(links))


def _of_block(links: LinkTable, before: int, source: WordPieces, target: WordPieces) -> LinkTable:
    """The links of a block that begins after ``before`` sentences."""
    i, height = source.at(links.sentence + before, links.source)
    j, width = target.at(links.sentence + before, links.target)
    cells = height * width
    link = np.repeat(np.arange(len(links)), cells)
    cell = np.arange(len(link)) - np.repeat(np.cumsum(cells) - cells, cells)
    row, column = np.divmod(cell, width[link])
    confidence = None if links.confidence is None else links.confidence[link]
    return LinkTable.build(links.sentence[link], i[link] + row, j[link] + column, links.sentences, confidence)
