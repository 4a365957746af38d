"""Word links: sets for one sentence, sorted tables for a corpus."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Callable

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.progress import Progress, no_progress

#: Pair (source word, target word), counted from 0.
Link = tuple[int, int]
#: The links of one sentence.
Links = frozenset[Link]

#: Word indices are below 2**20 and sentence numbers below 2**23, so that a link of a corpus fits into one int64.
INDEX_BITS = 20
MAX_INDEX = 2**INDEX_BITS - 1
_MAX_SENTENCE = 2**23 - 1
#: Number of sentences that are worked on at a time.
BLOCK = 2**13
#: Number of links that are looked up at a time, so that both sides of the lookup stay in the processor's cache.
_LOOKED_UP = 2**14


@dataclass(frozen=True)
class GoldSentence:
    """Gold links of one sentence.  ``possible`` includes ``sure``; missing links are added on construction."""

    sure: Links
    possible: Links = frozenset()

    def __post_init__(self) -> None:
        object.__setattr__(self, "sure", frozenset(self.sure))
        object.__setattr__(self, "possible", frozenset(self.possible) | self.sure)


def transpose(links: Iterable[Link]) -> Links:
    """The same links with source and target exchanged."""
    return frozenset((j, i) for i, j in links)


def packed(
    sentence: NDArray[np.int64], source: NDArray[np.int64] | int, target: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """Pack sentence number, source and target word of each link into one number, a key of a :class:`LinkTable`."""
    return (((sentence << INDEX_BITS) + source) << INDEX_BITS) + target


@dataclass(frozen=True, eq=False)
class LinkTable:
    """The links of a corpus, each once.

    ``keys`` is int64 [links], strictly increasing: sentence number, source word and target word of a link in one number
    (:meth:`build`).  So the links of a million sentences are compared without a Python object per link.
    ``sentences`` is the number of sentences, including those without links.
    ``confidence`` is float64 [links], a finite number for each link in the order of ``keys``: a probability or any
    other scale, larger means surer.  It is None if links have none.  In every operation on one table it stays with its
    link.  ``a & b`` keeps the confidences of ``a``; ``a | b`` keeps the larger ones, and None unless both have them.
    """

    keys: NDArray[np.int64]
    sentences: int
    confidence: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if self.confidence is not None and self.confidence.shape != self.keys.shape:
            raise InputError(f"{self.confidence.size} confidences do not match {len(self)} links; give one per link")
        if self.confidence is not None and not np.isfinite(self.confidence).all():
            raise InputError("a confidence is NaN or infinite; confidences must be finite numbers")

    @classmethod
    def build(
        cls,
        sentence: NDArray[np.int64],
        source: NDArray[np.int64],
        target: NDArray[np.int64],
        sentences: int,
        confidence: NDArray[np.float64] | None = None,
    ) -> LinkTable:
        """A table of links given as arrays [links] of numbers from 0, in any order, with duplicates.

        A duplicate link keeps its largest confidence.

        Raises:
            InputError: a number is negative or too large, a sentence is beyond ``sentences``, or the confidences are
                not finite or not one per link.
        """
        if sentences <= _MAX_SENTENCE:  # of_keys has the error
            _check_range("sentence", sentence, sentences - 1)
            _check_range("source", source, MAX_INDEX)
            _check_range("target", target, MAX_INDEX)
        return cls.of_keys(packed(sentence, source, target), sentences, confidence)

    @classmethod
    def of_keys(
        cls, keys: NDArray[np.int64], sentences: int, confidence: NDArray[np.float64] | None = None
    ) -> LinkTable:
        """A table of links given as keys (:func:`packed`) in any order; a duplicate keeps its largest confidence.

        Raises:
            InputError: there are too many sentences, or the confidences are not finite or not one per link.
        """
        if sentences > _MAX_SENTENCE:
            raise InputError(f"{sentences} sentences are too many (at most {_MAX_SENTENCE}); score the corpus in parts")
        table = cls(keys, sentences, confidence)
        if (keys[1:] > keys[:-1]).all():
            return table
        if confidence is None:
            keys = np.sort(keys)  # np.unique uses hashing, which is many times slower here
            return cls(keys[_first_of_equals(keys)], sentences)
        order = np.lexsort((-confidence, keys))
        return _at(table, order[_first_of_equals(keys[order])])

    @classmethod
    def of(cls, sentences: Sequence[Iterable[Link]]) -> LinkTable:
        """The table of a sequence of sets, one per sentence."""
        flat = [(n, i, j) for n, links in enumerate(sentences) for i, j in links]
        columns = np.array(flat, dtype=np.int64).reshape(len(flat), 3).T
        return cls.build(columns[0], columns[1], columns[2], len(sentences))

    @property
    def sentence(self) -> NDArray[np.int64]:
        """Sentence number of each link."""
        return _bits(self.keys, 2, None)

    @property
    def source(self) -> NDArray[np.int64]:
        """Source word of each link."""
        return _bits(self.keys, 1, MAX_INDEX)

    @property
    def target(self) -> NDArray[np.int64]:
        """Target word of each link."""
        return _bits(self.keys, 0, MAX_INDEX)

    def __len__(self) -> int:
        return len(self.keys)

    def __and__(self, other: LinkTable) -> LinkTable:
        """The links that are in both tables."""
        return _at(self, self.isin(other))

    def isin(self, other: LinkTable) -> NDArray[np.bool_]:
        """Which of the links are in the other table, [links]."""
        return _isin(self.keys, other.keys)

    def __or__(self, other: LinkTable) -> LinkTable:
        """The links that are in either table."""
        keys = np.concatenate([self.keys, other.keys])
        both = None
        if self.confidence is not None and other.confidence is not None:
            both = np.concatenate([self.confidence, other.confidence])
        return LinkTable.of_keys(keys, max(self.sentences, other.sentences), both)

    def transposed(self) -> LinkTable:
        """The same links with source and target exchanged."""
        return joined(
            LinkTable.build(part.sentence, part.target, part.source, part.sentences, part.confidence)
            for _, part in blocks(self)
        )

    def shifted(self, by: int) -> LinkTable:
        """The same links with ``by`` added to every index.

        Raises:
            InputError: an index becomes negative or too large.
        """
        if not by:
            return self
        for _, part in blocks(self):
            _check_range("source", part.source + by, MAX_INDEX)
            _check_range("target", part.target + by, MAX_INDEX)
        return replace(self, keys=self.keys + (by << INDEX_BITS) + by)

    def head(self, sentences: int) -> LinkTable:
        """The links of the first ``sentences`` sentences, copied: the whole table can be freed."""
        sentences = min(sentences, self.sentences)
        end = int(np.searchsorted(self.keys, sentences << (2 * INDEX_BITS)))
        return _at(self, np.arange(end)).with_sentences(sentences)

    def with_sentences(self, sentences: int) -> LinkTable:
        """The same links in a corpus of ``sentences`` sentences, which must include all that have links."""
        return replace(self, sentences=sentences)

    def per_sentence(self) -> NDArray[np.int64]:
        """Number of links of each sentence, [sentences]."""
        starts = np.searchsorted(self.keys, packed(np.arange(self.sentences + 1), 0, 0))
        return np.diff(starts).astype(np.int64)

    def each_sentence(self) -> Iterator[Links]:
        """One set per sentence, without keeping all of them in memory."""
        return (frozenset(pairs) for pairs, _ in _each(self))

    def to_sentences(self) -> list[Links]:
        """One set per sentence."""
        return list(self.each_sentence())


def _at(table: LinkTable, links: slice | NDArray[np.intp] | NDArray[np.bool_]) -> LinkTable:
    """The table of some links, given in increasing order of their keys."""
    confidence = None if table.confidence is None else table.confidence[links]
    return replace(table, keys=table.keys[links], confidence=confidence)


def _between(table: LinkTable, first: int, last: int) -> LinkTable:
    """The links of the sentences ``first`` to ``last - 1``, which get the numbers from 0."""
    start, end = np.searchsorted(table.keys, packed(np.array([first, last]), 0, 0))
    part = _at(table, slice(start, end))
    return replace(part, keys=part.keys - (first << (2 * INDEX_BITS)), sentences=last - first)


def blocks(*tables: LinkTable, progress: Progress = no_progress) -> Iterator[tuple[Any, ...]]:
    """Cut tables of the same sentences into blocks, so that work on them takes the memory of one block.

    Args:
        *tables: of the same sentences.
        progress: goes through the blocks.

    Yields:
        The sentences of the block, as a slice, and the block of each table, where they have the numbers from 0.  There
        is always at least one block.
    """
    sentences = max(table.sentences for table in tables)
    starts = range(0, max(sentences, 1), BLOCK)
    for first in progress(starts, len(starts), f"blocks of {BLOCK} sentences"):
        at = slice(first, min(first + BLOCK, sentences))
        yield (at, *(_between(table, at.start, at.stop) for table in tables))


def joined(parts: Iterable[LinkTable]) -> LinkTable:
    """The table whose :func:`blocks` are ``parts``."""
    kept, sentences = [], 0
    for part in parts:
        kept.append(replace(part, keys=part.keys + (sentences << (2 * INDEX_BITS))))
        sentences += part.sentences
    confidences = [part.confidence for part in kept if part.confidence is not None]
    return LinkTable(
        np.concatenate([part.keys for part in kept]), sentences, np.concatenate(confidences) if confidences else None
    )


def first_with(table: LinkTable, index: int) -> int | None:
    """The position of the first link whose source or target word is ``index``; None if there is none."""
    for start in range(0, len(table), _LOOKED_UP):
        part = LinkTable(table.keys[start : start + _LOOKED_UP], table.sentences)
        found = np.flatnonzero((part.source == index) | (part.target == index))
        if found.size:
            return start + int(found[0])
    return None


def above(table: LinkTable, threshold: float) -> LinkTable:
    """The links whose confidence is at least ``threshold``.

    Raises:
        InputError: the links have no confidences, or the threshold is NaN.
    """
    if table.confidence is None:
        raise InputError(
            f"cannot apply the confidence threshold {threshold:g}, because the links have no confidences; give links "
            f"with scores, i-j:p, or omit the threshold"
        )
    if math.isnan(threshold):
        raise InputError("the confidence threshold is NaN; give a number")
    kept = table.confidence >= threshold
    return replace(table, keys=table.keys[kept], confidence=table.confidence[kept])


def each_scored(table: LinkTable) -> Iterator[dict[Link, float]]:
    """The links of each sentence with their confidences, in increasing order.

    Raises:
        InputError: the links have no confidences.
    """
    if table.confidence is None:
        raise InputError("the links have no confidences; give links with scores, i-j:p")
    return (dict(zip(pairs, scores)) for pairs, scores in _each(table))


@dataclass(frozen=True, eq=False)
class GoldTable:
    """Gold links of a corpus.  ``possible`` includes ``sure``; missing links are added on construction."""

    sure: LinkTable
    possible: LinkTable

    def __post_init__(self) -> None:
        if self.possible is not self.sure and not self.sure.isin(self.possible).all():
            object.__setattr__(self, "possible", self.possible | self.sure)

    @classmethod
    def nested(cls, sure: LinkTable, possible: LinkTable) -> GoldTable:
        """The table of links where ``possible`` is known to include ``sure``; this skips a slow check."""
        table = cls(possible, possible)
        object.__setattr__(table, "sure", sure)
        return table

    @classmethod
    def of(cls, sentences: Sequence[GoldSentence]) -> GoldTable:
        """The table of a sequence of gold sentences."""
        return cls(LinkTable.of([gold.sure for gold in sentences]), LinkTable.of([gold.possible for gold in sentences]))

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return self.possible.sentences

    def transposed(self) -> GoldTable:
        """The same gold with source and target exchanged."""
        return self._mapped(LinkTable.transposed)

    def shifted(self, by: int) -> GoldTable:
        """The same gold with ``by`` added to every index; InputError if one becomes negative or too large."""
        return self if not by else self._mapped(lambda table: table.shifted(by))

    def _mapped(self, change: Callable[[LinkTable], LinkTable]) -> GoldTable:
        sure = change(self.sure)
        return GoldTable(sure, sure if self.possible is self.sure else change(self.possible))

    def head(self, sentences: int) -> GoldTable:
        """The gold of the first ``sentences`` sentences."""
        return self._mapped(lambda table: table.head(sentences))

    def with_sentences(self, sentences: int) -> GoldTable:
        """The same links in a corpus of at least ``sentences`` sentences; added sentences have no links."""
        return self._mapped(lambda table: table.with_sentences(max(sentences, table.sentences)))

    def above(self, threshold: float) -> GoldTable:
        """The links whose confidence is at least ``threshold``; errors as for :func:`above`."""
        return self._mapped(lambda table: above(table, threshold))

    def to_sentences(self) -> list[GoldSentence]:
        """One :class:`~alignment_eval.links.table.GoldSentence` per sentence."""
        pairs = zip(self.sure.to_sentences(), self.possible.to_sentences())
        return [GoldSentence(sure, possible) for sure, possible in pairs]


def _check_range(what: str, values: NDArray[np.int64], limit: int) -> None:
    """Raise InputError for values that are negative or beyond ``limit``."""
    if values.size and not 0 <= (low := int(values.min())) <= (high := int(values.max())) <= limit:
        raise InputError(f"a link has the {what} index {low if low < 0 else high}, which is not in 0 to {limit}")


def _bits(keys: NDArray[np.int64], place: int, mask: int | None) -> NDArray[np.int64]:
    """The number at one place of the keys; place 0 is the last."""
    values: NDArray[np.int64] = keys >> (place * INDEX_BITS)
    if mask is not None:
        values &= mask  # in place, to save a second array of this size
    return values


def _first_of_equals(keys: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the sorted ``keys`` differ from the one before."""
    first: NDArray[np.bool_] = np.concatenate([[True], np.diff(keys) > 0])
    return first


def _isin(keys: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of the increasing ``keys`` are among the increasing ``others``."""
    found = np.zeros(len(keys), dtype=np.bool_)
    for start in range(0, len(keys), _LOOKED_UP):
        part = keys[start : start + _LOOKED_UP]
        first, last = np.searchsorted(others, part[[0, -1]])
        near = others[first : last + 1]  # no other key can be equal
        if len(near):
            place = np.minimum(np.searchsorted(near, part), len(near) - 1)
            found[start : start + _LOOKED_UP] = near[place] == part
    return found


def _each(table: LinkTable) -> Iterator[tuple[list[Link], list[float]]]:
    """The links of each sentence, and their confidences if any; converted block by block."""
    for _, part in blocks(table):
        pairs = list(zip(part.source.tolist(), part.target.tolist()))
        scores = [] if part.confidence is None else part.confidence.tolist()
        bounds = [0, *np.cumsum(part.per_sentence()).tolist()]
        yield from ((pairs[start:end], scores[start:end]) for start, end in zip(bounds[:-1], bounds[1:]))
