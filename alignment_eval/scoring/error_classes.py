"""Breaks errors down: AER, missed and wrong links by class of word, null rates, and two systems side by side.

A class is a property of a word of one side, such as the length of its sentence or its frequency.  A link belongs to the
class of its source word and to the class of its target word.  So for each property and side, the counts of the classes
add up to the counts of the corpus, and the metrics of a class are those of its links.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.formats.text import Words
from alignment_eval.links.table import GoldTable, LinkTable, blocks
from alignment_eval.progress import Progress, no_progress
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


#: What is counted in each class: words, and links to them.
_TALLIED = (
    *("words", "null_gold", "null_hypothesis"),
    *("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible"),
)


class _Block(NamedTuple):
    """The words of some sentences: their forms [words], the sentences' lengths, the words' gold links [words]."""

    numbers: NDArray[np.int32]
    lengths: IntArray
    fertility: IntArray


#: Property -> the names of its classes, and a function that gives the class of each word of a block.
_Properties = dict[str, tuple[tuple[str, ...], Callable[[_Block], IntArray]]]


def is_punctuation(word: str) -> bool:
    """Whether all characters are punctuation (Unicode categories P…); symbols such as $, + and ^ are not."""
    return all(unicodedata.category(character).startswith("P") for character in word)


def error_table(
    hypothesis: LinkTable,
    gold: GoldTable,
    source: Words,
    target: Words,
    frequencies: tuple[Mapping[str, int], Mapping[str, int]] | None = None,
    progress: Progress = no_progress,
) -> pd.DataFrame:
    """Errors by class of word.

    Args:
        hypothesis: the links to evaluate.
        gold: the gold of the same sentences.
        source: the source text.
        target: the target text.
        frequencies: word -> frequency, for each side.  None: counted in the texts themselves.
        progress: goes through the sentences of each side.

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
    sides = []
    for axis, words in enumerate((source, target)):
        properties = _classes(words, frequencies and frequencies[axis])
        tallies = _tallies(hypothesis, gold, axis, words, properties, progress)
        sides.append(
            [_rows(names, tallies[by]).assign(by=by, side=SIDES[axis]) for by, (names, _) in properties.items()]
        )
    # source and target of a property follow each other
    table: pd.DataFrame = pd.concat([rows for both in zip(*sides) for rows in both], ignore_index=True)
    return table.reindex(columns=list(COLUMNS))


def _classes(words: Words, frequencies: Mapping[str, int] | None) -> _Properties:
    known = words.counts if frequencies is None else np.array([frequencies.get(form, 0) for form in words.forms])
    types = np.array([is_punctuation(form) for form in words.forms])
    by_form = {"frequency": _class(known, FREQUENCIES), "word_type": types.astype(np.int64)}
    return {
        "all": (("all",), lambda block: np.zeros(len(block.numbers), dtype=np.int64)),
        "sentence_length": (
            _names(SENTENCE_LENGTHS),
            lambda block: np.repeat(_class(block.lengths, SENTENCE_LENGTHS), block.lengths),
        ),
        "frequency": (_names(FREQUENCIES), lambda block: by_form["frequency"][block.numbers]),
        "word_type": (("word", "punctuation"), lambda block: by_form["word_type"][block.numbers]),
        "fertility": (_names(FERTILITIES), lambda block: _class(block.fertility, FERTILITIES)),
    }


def _names(limits: Sequence[int]) -> tuple[str, ...]:
    """The names of classes: ``1-10``, ``11``, ``12+`` for limits 1, 11, 12."""
    ends = [following - 1 for following in limits[1:]]
    return (*(str(low) if low == high else f"{low}-{high}" for low, high in zip(limits, ends)), f"{limits[-1]}+")


def _class(values: IntArray, limits: Sequence[int]) -> IntArray:
    """The number of each value's class."""
    return np.searchsorted(limits, values, side="right").astype(np.int64) - 1


def _tallies(
    hypothesis: LinkTable, gold: GoldTable, axis: int, words: Words, properties: _Properties, progress: Progress
) -> dict[str, IntArray]:
    """For each property, the number of what :data:`_TALLIED` names in each class, [tallied, classes]."""
    sums = {by: np.zeros((len(_TALLIED), len(names)), dtype=np.int64) for by, (names, _) in properties.items()}
    ends: IntArray = np.concatenate([[0], np.cumsum(words.lengths)])
    for at, its, sure, possible in blocks(hypothesis, gold.sure, gold.possible, progress=progress):
        numbers = words.numbers[ends[at.start] : ends[at.stop]]
        tables = its, sure, its & sure, its & possible, possible
        *counted, in_gold = (_places(links, axis, words.lengths[at], at.start) for links in tables)
        fertility, linked = (np.bincount(places, minlength=len(numbers)) for places in (in_gold, counted[0]))
        block = _Block(numbers, words.lengths[at], fertility)
        chosen = slice(None), fertility == 0, linked == 0, *counted
        for by, (names, classes) in properties.items():
            its_classes = classes(block)
            sums[by] += [np.bincount(its_classes[places], minlength=len(names)) for places in chosen]
    return sums


def _places(links: LinkTable, axis: int, lengths: IntArray, first: int) -> IntArray:
    """The positions among the words of a block, of ``lengths``, of the words that are linked on one side.

    Raises:
        InputError: a sentence has no such word; the message counts sentences from ``first``.
    """
    sentence, word = links.sentence, links.target if axis else links.source
    if (beyond := np.flatnonzero(word >= lengths[sentence])).size:
        n = int(sentence[beyond[0]])
        raise InputError(
            f"sentence {first + n}: a link points at {SIDES[axis]} word {word[beyond[0]]}, but the sentence has "
            f"{lengths[n]} words (counted from 0); give the text that the alignment was made from"
        )
    starts: IntArray = np.cumsum(lengths) - lengths
    return starts[sentence] + word


def _rows(names: Sequence[str], tallies: IntArray) -> pd.DataFrame:
    """The rows of one property and side; classes without words are omitted."""
    words, null_gold, null_hypothesis, *links = tallies
    counts = Counts(*links)
    table = pd.DataFrame(
        {
            "class": names,
            "words": words,
            "null_gold": null_gold / np.maximum(words, 1),
            "null_hypothesis": null_hypothesis / np.maximum(words, 1),
            "hypothesis_links": counts.hypothesis,
            "sure_links": counts.sure,
            "hypothesis_links_sure": counts.hypothesis_sure,
            "hypothesis_links_possible": counts.hypothesis_possible,
            "missed_sure": counts.sure - counts.hypothesis_sure,
            "wrong_links": counts.hypothesis - counts.hypothesis_possible,
            **{name: metric(counts) for name, metric in METRICS.items()},
        }
    )
    kept: pd.DataFrame = table[words > 0]
    return kept


def confusion_table(
    hypothesis: LinkTable, other: LinkTable, gold: GoldTable, progress: Progress = no_progress
) -> pd.DataFrame:
    """How many links two systems share, by their class in the gold.

    Args:
        hypothesis: the links of one system.
        other: the links of another system.
        gold: the gold of the same sentences.
        progress: goes through the sentences.

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
    sure, possible, every = np.zeros((3, 4), dtype=np.int64)
    for _, mine, its, *kinds in blocks(hypothesis, other, gold.sure, gold.possible, progress=progress):
        systems = mine & its, mine, its
        for sums, kind in zip((sure, possible), kinds):
            sums += [*(int(links.isin(kind).sum()) for links in systems), len(kind)]
        every += [*map(len, systems), 0]
    rows = [
        (name, both, mine - both, its - both, size - mine - its + both)
        for name, (both, mine, its, size) in (("sure", sure), ("possible", possible - sure), ("none", every - possible))
    ]
    table = pd.DataFrame(rows, columns=list(CONFUSION_COLUMNS)).astype({"neither": "Int64"})
    table.loc[table["gold"] == "none", "neither"] = pd.NA
    return table
