"""Breaks errors down: AER, missed and wrong links by class of word, null rates, and two systems side by side.

A class is a property of a word of one side, such as the length of its sentence or its frequency.  A link belongs to the
class of its source word and to the class of its target word.  So for each property and side, the counts of the classes
add up to the counts of the corpus, and the metrics of a class are computed from its links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.links.formats import GoldSentence, Links
from alignment_eval.maps.subwords import is_punctuation
from alignment_eval.scoring.aer import METRICS, Counts

IntArray = NDArray[np.int64]
#: The words of each sentence.
Text = Sequence[Sequence[str]]

SIDES = ("source", "target")
#: Properties -> how tables call them.
TITLES = {
    "all": "all words",
    "sentence_length": "sentence length (words of that side)",
    "frequency": "frequency of the word in the texts themselves",
    "word_type": "punctuation and words",
    "fertility": "fertility (gold links of the word, sure and possible)",
}
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


def error_table(
    hypothesis: Sequence[Links],
    gold: Sequence[GoldSentence],
    source: Text,
    target: Text,
    frequencies: tuple[Mapping[str, int], Mapping[str, int]] | None = None,
) -> pd.DataFrame:
    """Errors by class of word.  The links are inside the texts, and all arguments have the same number of sentences.

    Args:
        hypothesis: the links to evaluate, of each sentence.
        gold: the gold of the same sentences.
        source: the source text.
        target: the target text.
        frequencies: word -> frequency, for each side.  None: counted in the texts themselves.

    Returns:
        One row per property (``by``), side and class that has words, with :data:`COLUMNS`.  Properties: ``all``;
        ``sentence_length``, in words of that side; ``frequency`` of the word form as written; ``word_type``
        (``punctuation``, see :func:`~alignment_eval.maps.subwords.is_punctuation`, or ``word``); ``fertility``, the
        number of gold links of the word, sure and possible.  ``null_gold`` and ``null_hypothesis`` are shares of words
        without any link (in the gold: neither sure nor possible).  Metrics are fractions, NaN where undefined.
    """
    sure, possible = [truth.sure for truth in gold], [truth.possible for truth in gold]
    counted = {
        "hypothesis_links": hypothesis,
        "sure_links": sure,
        "hypothesis_links_sure": [links & right for links, right in zip(hypothesis, sure)],
        "hypothesis_links_possible": [links & right for links, right in zip(hypothesis, possible)],
    }
    sides = []
    for axis, text in enumerate((source, target)):
        fertility = _links_of_words(possible, axis, text)
        words = pd.DataFrame({name: _links_of_words(links, axis, text) for name, links in counted.items()})
        words = words.assign(words=1, null_gold=fertility == 0, null_hypothesis=words["hypothesis_links"] == 0)
        sides.append((words, _classes(text, frequencies and frequencies[axis], fertility)))
    tables = []
    for by in TITLES:
        for side, (words, classes) in zip(SIDES, sides):
            sums = words.groupby(pd.CategoricalIndex(classes[by]), observed=True).sum()
            tables.append(sums.rename_axis("class").reset_index().astype({"class": str}).assign(by=by, side=side))
    rows = pd.concat(tables)
    counts = Counts(*(rows[name].to_numpy() for name in counted))
    table: pd.DataFrame = rows.assign(
        null_gold=rows["null_gold"] / rows["words"],
        null_hypothesis=rows["null_hypothesis"] / rows["words"],
        missed_sure=counts.sure - counts.hypothesis_sure,
        wrong_links=counts.hypothesis - counts.hypothesis_possible,
        **{name: metric(counts) for name, metric in METRICS.items()},
    )
    return table.reset_index(drop=True)[list(COLUMNS)]


def _classes(text: Text, frequencies: Mapping[str, int] | None, fertility: IntArray) -> dict[str, pd.Categorical[Any]]:
    """Property -> the class of each word."""
    words = [word for sentence in text for word in sentence]
    known = Counter(words) if frequencies is None else frequencies
    lengths = [len(sentence) for sentence in text for _ in sentence]
    punctuation = [int(is_punctuation(word)) for word in words]
    return {
        "all": pd.Categorical(["all"] * len(words)),
        "sentence_length": _by_number(lengths, SENTENCE_LENGTHS),
        "frequency": _by_number([known.get(word, 0) for word in words], FREQUENCIES),
        "word_type": pd.Categorical.from_codes(punctuation, pd.Index(["word", "punctuation"])),
        "fertility": _by_number(fertility, FERTILITIES),
    }


def _by_number(values: Sequence[int] | IntArray, limits: Sequence[int]) -> pd.Categorical[Any]:
    """The class of each value, named like ``1-10``, ``11``, ``12+`` for limits 1, 11, 12."""
    ends = [following - 1 for following in limits[1:]]
    names = [*(str(low) if low == high else f"{low}-{high}" for low, high in zip(limits, ends)), f"{limits[-1]}+"]
    codes = np.searchsorted(limits, np.asarray(values, dtype=np.int64), side="right") - 1
    return pd.Categorical.from_codes(codes, pd.Index(names))


def _links_of_words(links: Iterable[Links], axis: int, text: Text) -> IntArray:
    """The number of links of each word of a side."""
    places: list[int] = []
    before = 0
    for sentence, words in zip(links, text):
        places += [before + link[axis] for link in sentence]
        before += len(words)
    return np.bincount(np.array(places, dtype=np.int64), minlength=before)


def confusion_table(hypothesis: Sequence[Links], other: Sequence[Links], gold: Sequence[GoldSentence]) -> pd.DataFrame:
    """How many links two systems share, by their class in the gold; each argument has the links of each sentence.

    Returns:
        Rows ``sure``, ``possible`` (but not sure) and ``none`` (wrong links), with :data:`CONFUSION_COLUMNS`: the
        number of links that both systems have, only one has, neither has.  The last is missing for ``none``.
    """
    rows = {name: Counter[str]() for name in ("sure", "possible", "none")}
    for links, others, truth in zip(hypothesis, other, gold):
        for link in links | others | truth.possible:
            kind = "sure" if link in truth.sure else "possible" if link in truth.possible else "none"
            column = "neither" if link not in others else "only_other"
            rows[kind][("both" if link in others else "only_hypothesis") if link in links else column] += 1
    table = pd.DataFrame(
        [(kind, *(counts[column] for column in CONFUSION_COLUMNS[1:])) for kind, counts in rows.items()],
        columns=list(CONFUSION_COLUMNS),
    ).astype({"neither": "Int64"})
    table.loc[table["gold"] == "none", "neither"] = pd.NA
    return table
