"""Classes of words and of tokens: errors broken down by class of word, and what maps give each class of token.

A class is a property of a word of one side, such as the length of its sentence or its frequency.  A link belongs to the
class of its source word and to the class of its target word.  So for each property and side, the counts of the classes
add up to the counts of the corpus, and the metrics of a class are computed from its links.

Classes of tokens are those of Kobayashi et al. (2020), section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence, Links
from alignment_eval.maps.sentence import SentenceMaps, bare_piece, is_punctuation
from alignment_eval.scoring.aer import COUNT_NAMES, Counts, IntArray, metrics_of

if TYPE_CHECKING:
    import pandas as pd

#: The words of each sentence.
Text = Sequence[Sequence[str]]
#: The rows of a table: column -> value.
Rows = list[dict[str, Any]]

SIDES = ("source", "target")
#: Properties -> how tables call them.
TITLES = {
    "all": "all words",
    "sentence_length": "sentence length (words of that side)",
    "frequency": "frequency of the word in the texts themselves",
    "word_type": "punctuation and words",
    "fertility": "fertility (gold links of the word, sure and possible)",
}


def error_table(
    hypothesis: Sequence[Links],
    gold: Sequence[GoldSentence],
    source: Text,
    target: Text,
    frequencies: Sequence[Mapping[str, int]] | None = None,
) -> Rows:
    """Errors by class of word: a row per property (``by``, of :data:`TITLES`), side and class that has words.

    The links are inside the texts, and all arguments have the same number of sentences.  ``frequencies``: word ->
    frequency, for each side; none: counted in the texts themselves.  ``null_gold`` and ``null_hypothesis`` are shares
    of words without any link (in the gold: neither sure nor possible).  Metrics are fractions, None where undefined.
    """
    sure, possible = [truth.sure for truth in gold], [truth.possible for truth in gold]
    linked = (hypothesis, sure, *([own & right for own, right in zip(hypothesis, kind)] for kind in (sure, possible)))
    sides = []
    for axis, text in enumerate((source, target)):
        fertility = _links_of_words(possible, axis, text)
        counts = [_links_of_words(links, axis, text) for links in linked]
        words = np.stack([np.ones_like(fertility), fertility == 0, counts[0] == 0, *counts], axis=-1)
        sides.append((words, _classes(text, frequencies[axis] if frequencies else None, fertility)))
    rows: Rows = []
    for by in TITLES:
        for side, (words, classes) in zip(SIDES, sides):
            names, numbers = classes[by]
            for number in np.unique(numbers).tolist():
                size, null_gold, null_hypothesis, *sums = words[numbers == number].sum(axis=0)
                counts_of_class = Counts(*sums)
                rows.append(
                    {
                        **{"by": by, "side": side, "class": names[number], "words": int(size)},
                        **{"null_gold": float(null_gold / size), "null_hypothesis": float(null_hypothesis / size)},
                        **dict(zip(COUNT_NAMES, map(int, sums))),
                        "missed_sure": int(counts_of_class.sure - counts_of_class.hypothesis_sure),
                        "wrong_links": int(counts_of_class.hypothesis - counts_of_class.hypothesis_possible),
                        **metrics_of(counts_of_class),
                    }
                )
    return rows


def _classes(
    text: Text, frequencies: Mapping[str, int] | None, fertility: IntArray
) -> dict[str, tuple[Sequence[str], IntArray]]:
    """Property -> the names of its classes, and the class of each word."""
    words = [word for sentence in text for word in sentence]
    known = Counter(words) if frequencies is None else frequencies
    lengths = [len(sentence) for sentence in text for _ in sentence]
    return {
        "all": (["all"], np.zeros_like(fertility)),
        "sentence_length": _by_number(lengths, (1, 11, 21, 31, 41, 51)),
        "frequency": _by_number([known.get(word, 0) for word in words], (0, 1, 2, 10, 100, 1000, 10_000)),
        "word_type": (["word", "punctuation"], np.array([is_punctuation(word) for word in words], dtype=np.int64)),
        "fertility": _by_number(fertility, (0, 1, 2, 3, 4)),
    }


def _by_number(values: Sequence[int] | IntArray, limits: Sequence[int]) -> tuple[Sequence[str], IntArray]:
    """The class of each value; for lower limits 1, 11, 12 the names are ``1-10``, ``11``, ``12+``."""
    ends = [following - 1 for following in limits[1:]]
    names = [*(str(low) if low == high else f"{low}-{high}" for low, high in zip(limits, ends)), f"{limits[-1]}+"]
    return names, np.searchsorted(limits, np.asarray(values, dtype=np.int64), side="right") - 1


def _links_of_words(links: Iterable[Links], axis: int, text: Text) -> IntArray:
    """The number of links of each word of a side."""
    places: list[int] = []
    before = 0
    for sentence, words in zip(links, text):
        places += [before + link[axis] for link in sentence]
        before += len(words)
    return np.bincount(np.array(places, dtype=np.int64), minlength=before)


def confusion_table(hypothesis: Sequence[Links], other: Sequence[Links], gold: Sequence[GoldSentence]) -> Rows:
    """How many links two systems share, by their class in the gold; each argument has the links of each sentence.

    Returns:
        Rows of ``gold``: ``sure``, ``possible`` (but not sure) and ``none`` (wrong links), with the number of links
        that ``both`` systems have, ``only_hypothesis`` or ``only_other`` has, ``neither`` has (None for ``none``).
    """
    rows = {
        kind: {"both": 0, "only_hypothesis": 0, "only_other": 0, "neither": 0} for kind in ("sure", "possible", "none")
    }
    for links, others, truth in zip(hypothesis, other, gold):
        for link in links | others | truth.possible:
            kind = "sure" if link in truth.sure else "possible" if link in truth.possible else "none"
            column = "neither" if link not in others else "only_other"
            rows[kind][("both" if link in others else "only_hypothesis") if link in links else column] += 1
    return [{"gold": kind, **counts} | ({"neither": None} if kind == "none" else {}) for kind, counts in rows.items()]


#: Classes of tokens; ``other`` is the rest.
TOKEN_CLASSES = ("<s>", "</s>", "mask", "punctuation", "other")
#: The row of the tokens themselves.
_TOKENS = ("tokens", "all", "all")
_SPECIAL = {"<s>": 0, "</s>": 1, "<mask>": 2}


def token_class(token: str) -> int:
    """The index of a token's class in :data:`TOKEN_CLASSES`."""
    piece = bare_piece(token)
    return _SPECIAL.get(token, 3 if piece and is_punctuation(piece) else 4)


def class_shares(sentences: Iterable[SentenceMaps]) -> pd.DataFrame:
    """The share of each class of source token in the maps of a text (:func:`alignment_eval.class_shares`)."""
    import pandas as pd

    found: dict[tuple[Any, ...], NDArray[np.float64]] = {}
    for sentence in sentences:
        classes = np.eye(len(TOKEN_CLASSES))[list(map(token_class, sentence.source.tokens))]
        rows: list[tuple[tuple[Any, ...], NDArray[np.float64]]] = [(_TOKENS, classes.sum(0))]
        for kind in sentence.kinds:
            maps = np.concatenate([sentence.head_maps(kind), sentence.layer_maps(kind)[:, None]], axis=1)
            for layer, of_layer in zip(sentence.layers, maps.sum(axis=2, dtype=np.float64) @ classes):
                rows += (((kind, layer, head), row) for head, row in zip((*range(len(of_layer) - 1), "all"), of_layer))
        for place, row in rows if sentence.arrays else ():
            found[place] = found.get(place, 0) + row
    if not found:
        raise InputError("no sentence has maps: expected the maps of at least one")
    index = pd.MultiIndex.from_tuples(list(found), names=["kind", "layer", "head"])
    table = pd.DataFrame(np.stack(list(found.values())), index, list(TOKEN_CLASSES))
    used = [name for name, count in zip(TOKEN_CLASSES, found[_TOKENS]) if count]
    return table[used].div(table.sum(axis=1), axis=0)
