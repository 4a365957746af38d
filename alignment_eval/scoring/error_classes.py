"""Breaks errors down: AER, missed and wrong links by class of word, null rates, and two systems side by side.

A class is a property of a word of one side, such as the length of its sentence or its frequency.  A link belongs to the
class of its source word and to the class of its target word.  So for each property and side, the counts of the classes
add up to the counts of the corpus, and the metrics of a class are those of its links.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import METRICS, Counts

IntArray = NDArray[np.int64]

SIDES = ("source", "target")
#: The columns of :func:`error_table`.
COLUMNS = (
    *("by", "side", "class", "words", "null_gold", "null_hypothesis"),
    *("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible"),
    *("missed_sure", "wrong_links", *METRICS),
)
#: The columns of :func:`confusion_table`.
CONFUSION_COLUMNS = ("gold", "both", "only_hypothesis", "only_other", "neither")

#: Lower limits of the classes of a number; the last class is open.
SENTENCE_LENGTHS = (1, 11, 21, 31, 41, 51)
FREQUENCIES = (0, 1, 2, 10, 100, 1000, 10_000)
FERTILITIES = (0, 1, 2, 3, 4)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of one side of a corpus.

    Attributes:
        tokens: the words of all sentences in order.
        lengths: the number of words in each sentence, [sentences].
    """

    tokens: tuple[str, ...]
    lengths: IntArray

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]]) -> Words:
        """The words of a sequence of tokenised sentences."""
        kept = list(sentences)
        lengths = np.array([len(words) for words in kept], dtype=np.int64)
        return cls(tuple(word for words in kept for word in words), lengths)

    def places(self, sentence: IntArray, word: IntArray, side: str) -> IntArray:
        """The position in ``tokens`` of words given by sentence and index.

        Raises:
            InputError: a sentence has no such word.
        """
        if (beyond := np.flatnonzero(word >= self.lengths[sentence])).size:
            n = int(sentence[beyond[0]])
            raise InputError(
                f"sentence {n}: a link points at {side} word {word[beyond[0]]}, but the sentence has {self.lengths[n]} "
                f"words (counted from 0); give the text that the alignment was made from"
            )
        starts: IntArray = np.cumsum(self.lengths) - self.lengths
        return starts[sentence] + word

    def among(self, frequencies: Mapping[str, int]) -> IntArray:
        """The frequency of each word, 0 if it has none, [words]."""
        return np.array([frequencies.get(token, 0) for token in self.tokens], dtype=np.int64)


def is_punctuation(word: str) -> bool:
    """Whether all characters are punctuation (Unicode categories P…); symbols such as $, + and ^ are not."""
    return all(unicodedata.category(character).startswith("P") for character in word)


def error_table(
    hypothesis: LinkTable,
    gold: GoldTable,
    source: Words,
    target: Words,
    frequencies: tuple[Mapping[str, int], Mapping[str, int]] | None = None,
) -> pd.DataFrame:
    """Errors by class of word.

    Args:
        hypothesis: the links to evaluate.
        gold: the gold of the same sentences.
        source: the source text.
        target: the target text.
        frequencies: word -> frequency, for each side.  None: counted in the texts themselves.

    Returns:
        One row per property (``by``), side and class that has words, with :data:`COLUMNS`.  Properties: ``all``;
        ``sentence_length``, in words of that side; ``frequency`` of the word form as written; ``word_type``
        (``punctuation``, see :func:`is_punctuation`, or ``word``); ``fertility``, the number of gold links of the
        word, sure and possible.  ``null_gold`` and ``null_hypothesis`` are shares of words without any link (in the
        gold: neither sure nor possible).  Metrics are fractions, NaN where undefined.

    Raises:
        InputError: links and texts differ in the number of sentences, or a link lies outside its sentence.
    """
    counts = {hypothesis.sentences, gold.sentences, len(source.lengths), len(target.lengths)}
    if len(counts) > 1:
        raise InputError(
            f"{hypothesis.sentences} hypotheses, {gold.sentences} gold sentences, and texts of {len(source.lengths)} "
            f"and {len(target.lengths)} lines; all four numbers must be the same"
        )
    sides = [
        list(_blocks(hypothesis, gold, axis, words, frequencies and frequencies[axis]))
        for axis, words in enumerate((source, target))
    ]
    # source and target of a property follow each other
    table: pd.DataFrame = pd.concat([block for both in zip(*sides) for block in both], ignore_index=True)
    return table.reindex(columns=list(COLUMNS))


def _blocks(
    hypothesis: LinkTable, gold: GoldTable, axis: int, words: Words, frequencies: Mapping[str, int] | None
) -> Iterator[pd.DataFrame]:
    """The rows of each property for one side."""
    tables = (hypothesis, gold.sure, hypothesis & gold.sure, hypothesis & gold.possible, gold.possible)
    *counted, in_gold = (words.places(links.sentence, _index(links, axis), SIDES[axis]) for links in tables)
    fertility, linked = (np.bincount(places, minlength=len(words.tokens)) for places in (in_gold, counted[0]))
    known = Counter(words.tokens) if frequencies is None else frequencies
    for by, (names, classes) in _classes(words, fertility, known).items():
        block = _block(names, classes, counted, fertility == 0, linked == 0)
        yield block.assign(by=by, side=SIDES[axis])


def _index(links: LinkTable, axis: int) -> IntArray:
    return links.target if axis else links.source


def _classes(
    words: Words, fertility: IntArray, frequencies: Mapping[str, int]
) -> dict[str, tuple[tuple[str, ...], IntArray]]:
    """Property -> names of its classes, and the number of each word's class, [words]."""
    types = {word: int(is_punctuation(word)) for word in set(words.tokens)}
    return {
        "all": (("all",), np.zeros(len(words.tokens), dtype=np.int64)),
        "sentence_length": _binned(np.repeat(words.lengths, words.lengths), SENTENCE_LENGTHS),
        "frequency": _binned(words.among(frequencies), FREQUENCIES),
        "word_type": (("word", "punctuation"), words.among(types)),
        "fertility": _binned(fertility, FERTILITIES),
    }


def _binned(values: IntArray, limits: Sequence[int]) -> tuple[tuple[str, ...], IntArray]:
    """The names of classes (``1-10``, ``11``, ``12+`` for limits 1, 11, 12), and the number of each value's class."""
    ends = [following - 1 for following in limits[1:]]
    names = [str(low) if low == high else f"{low}-{high}" for low, high in zip(limits, ends)]
    return (*names, f"{limits[-1]}+"), np.searchsorted(limits, values, side="right").astype(np.int64) - 1


def _block(
    names: Sequence[str],
    classes: IntArray,
    places: Sequence[IntArray],
    null_gold: NDArray[np.bool_],
    null_hypothesis: NDArray[np.bool_],
) -> pd.DataFrame:
    """The rows of one property and side; classes without words are omitted."""

    def size(chosen: IntArray | NDArray[np.bool_] | slice) -> IntArray:
        return np.bincount(classes[chosen], minlength=len(names))

    words = size(slice(None))
    counts = Counts(*(size(place) for place in places))
    table = pd.DataFrame(
        {
            "class": names,
            "words": words,
            "null_gold": size(null_gold) / np.maximum(words, 1),
            "null_hypothesis": size(null_hypothesis) / np.maximum(words, 1),
            "hypothesis_links": counts.hypothesis,
            "sure_links": counts.sure,
            "hypothesis_links_sure": counts.hypothesis_sure,
            "hypothesis_links_possible": counts.hypothesis_possible,
            "missed_sure": counts.sure - counts.hypothesis_sure,
            "wrong_links": counts.hypothesis - counts.hypothesis_possible,
            **{name: metric(counts) for name, metric in METRICS.items()},
        }
    )
    return table[words > 0]


def confusion_table(hypothesis: LinkTable, other: LinkTable, gold: GoldTable) -> pd.DataFrame:
    """How many links two systems share, by their class in the gold.

    Args:
        hypothesis: the links of one system.
        other: the links of another system.
        gold: the gold of the same sentences.

    Returns:
        Rows ``sure``, ``possible`` (but not sure) and ``none`` (wrong links), with :data:`CONFUSION_COLUMNS`: the
        number of links that both systems have, only one has, neither has.  The last is missing for ``none``.

    Raises:
        InputError: the numbers of sentences differ.
    """
    counts = hypothesis.sentences, other.sentences, gold.sentences
    if len(set(counts)) > 1:
        raise InputError(
            f"{counts[0]} and {counts[1]} hypotheses, {counts[2]} gold sentences; the three numbers must be the same"
        )
    systems = hypothesis & other, hypothesis, other

    def within(kind: LinkTable) -> IntArray:
        return np.array([*(len(links & kind) for links in systems), len(kind)])

    sure, possible = within(gold.sure), within(gold.possible)
    every = np.array([*map(len, systems), 0])
    rows = [
        (name, both, mine - both, its - both, size - mine - its + both)
        for name, (both, mine, its, size) in (("sure", sure), ("possible", possible - sure), ("none", every - possible))
    ]
    table = pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS)).astype({"neither": "Int64"})
    table.loc[table["gold"] == "none", "neither"] = pd.NA
    return table
