"""A sentence pair: two raw lines, their words, what a model reads of them, and the strings that both have."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor

from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, Span
from alignment_eval.transfer.pieces import is_inside_word
from fairseq_norm_plugin.text.offsets import TracedText, is_visible

#: A side without tokens, and its ids.
NO_SIDE, NO_IDS = SentenceSide.of_words(()), torch.empty(0, dtype=torch.long)


@dataclass(frozen=True)
class Line:
    """One side of a sentence pair: the words that links count, and, once it is encoded, what a model reads.

    Attributes:
        text: the raw line; of a line in subwords, the words that they spell, with spaces between.
        spans: the characters of each word in ``text``; they do not overlap.
        given: the line as it was given, without its markup.
        side: the tokens that the model reads, with their words.
        ids: their ids in the model's dictionary, with the special tokens around them.
        unknown: how many of them the dictionary lacks.
        certain: whether the words are certainly those of the text (tokens.Spelling).
        copies: the characters of strings that stand in the other line, too, and that no model reads
            (:func:`with_copies`); the other line has as many, in the same order.
        sentences: its sentences, if it was cut into several; their texts join to its own.
        marked: the line with its markup; empty if none was read.
    """

    text: str
    spans: tuple[Span, ...]
    given: str
    side: SentenceSide = field(default=NO_SIDE, compare=False)
    ids: Tensor = field(default=NO_IDS, compare=False)
    unknown: int = 0
    certain: bool = True
    copies: tuple[Span, ...] = ()
    sentences: tuple[Line, ...] = ()
    marked: str = ""

    @classmethod
    def joined(cls, sentences: Sequence[Line]) -> Line:
        """The line that sentences join to."""
        text, given = ("".join(getattr(line, name) for line in sentences) for name in ("text", "given"))
        starts = list(itertools.accumulate((len(line.text) for line in sentences), initial=0))
        spans, copies = (
            tuple((a + start, b + start) for start, line in zip(starts, sentences) for a, b in getattr(line, name))
            for name in ("spans", "copies")
        )
        return cls(text, spans, given, copies=copies, sentences=tuple(sentences))

    @property
    def words(self) -> tuple[str, ...]:
        """The words, as they are in the text."""
        return tuple(self.text[start:end] for start, end in self.spans)

    def __len__(self) -> int:
        return len(self.spans)

    def traced(self) -> TracedText:
        """The text without copies, if anything is left."""
        whole = TracedText.of(self.text)
        rest = whole.replaced((*span, " " if is_inside_word(self.text, *span) else "") for span in sorted(self.copies))
        return rest if is_visible(rest.text) else whole

    def words_of(self, span: Span) -> list[int]:
        """The words that have characters of a span."""
        return [word for word, (start, end) in enumerate(self.spans) if start < span[1] and span[0] < end]


class SentencePair(NamedTuple):
    """A sentence pair: two raw lines, their words, and, once a model has encoded them, their tokens."""

    source: Line
    target: Line

    @property
    def exchanged(self) -> SentencePair:
        """The pair with source and target exchanged, as the model of the other direction reads it."""
        return SentencePair(self.target, self.source)

    @property
    def words(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The words of source and target."""
        return self.source.words, self.target.words

    @property
    def sentences(self) -> list[SentencePair]:
        """The pairs of their sentences if both lines have equally many, else the pair itself."""
        source, target = self.source.sentences, self.target.sentences
        return list(map(SentencePair, source, target)) if len(source) == len(target) > 0 else [self]

    @property
    def lengths(self) -> list[int]:
        """The number of tokens of each side that is encoded."""
        return [len(line.ids) for line in self if len(line.ids)]


def strings_of(text: str, strings: re.Pattern[str]) -> list[Span]:
    """The characters of each string of a text that matches."""
    return [found.span() for found in strings.finditer(text) if found[0]]


def with_copies(pair: SentencePair, strings: re.Pattern[str]) -> SentencePair:
    """The pair, with the strings that stand in both lines."""
    if len(pair.sentences) > 1:
        sides = map(Line.joined, zip(*(with_copies(sentence, strings) for sentence in pair.sentences)))
        both = zip(sides, pair)
        return SentencePair(*(replace(side, given=line.given, marked=line.marked) for side, line in both))
    copies: list[tuple[Span, Span]] = []
    rest = strings_of(pair.target.text, strings)
    for span in strings_of(pair.source.text, strings):
        string = pair.source.text[slice(*span)]
        copy = next((other for other in rest if pair.target.text[slice(*other)] == string), None)
        if copy is not None:
            rest.remove(copy)
            copies.append((span, copy))
    if not copies:
        return pair
    return SentencePair(*(replace(line, copies=spans) for line, spans in zip(pair, zip(*copies))))


def linked_copies(pair: SentencePair) -> tuple[set[int], set[int], set[Link]]:
    """The source words and the target words of copies, and their links."""
    links: set[Link] = set()
    sides: tuple[set[int], set[int]] = set(), set()
    for spans in zip(*(line.copies for line in pair)):
        sources, targets = (line.words_of(span) for line, span in zip(pair, spans))
        links.update(zip(sources, targets) if len(sources) == len(targets) else itertools.product(sources, targets))
        sides[0].update(sources)
        sides[1].update(targets)
    return (*sides, links)
