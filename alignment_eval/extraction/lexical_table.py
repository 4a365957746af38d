"""A lexical table: how strongly two words are associated, estimated from the word maps of a text.

The map of one sentence pair is uncertain.  The same two words occur together in other pairs too, and their shares of
each other there show which cells are right here.  This needs no gold and no other resource: like a statistical aligner,
the lexical table learns from text in the two languages.

The table makes W = P^a ∘ w^γ of a word map P (:meth:`LexicalTable.reweight`).  a and γ depend on the models: maps whose
alignment has formed count more, others less (:class:`~alignment_eval.maps.words.Sharpening`).

A lexical table file is a Parquet table with the columns source word, target word and weight.  The weight of a row with
two words is the sum of their evidence (:attr:`LexicalTable.sums`).  The weight of a row with one word, the other empty,
is the number of times that the word occurs in the text.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.files import new_file
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import Floats, Reweighted, Sharpening, two_way_shares
from alignment_eval.reading import Count, ForeignFile

VERSION = 1
SCHEMA = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        pa.field("weight", pa.float64(), nullable=False),
    ]
)
_WORDS = ["source", "target"]
_METADATA = b"alignment_eval.lexical_table"
_ADVICE = "give one that norm-align calibrate wrote"

#: The words of a sentence pair and its word map [target words, source words].
CountedPair = tuple[PairWords, NDArray[np.floating]]
#: Numbers of cells, and what is added to the sum of each.
Evidence = tuple[NDArray[np.int64], Floats]

#: Shares are raised to this power before they are summed, so that a few sure cells outweigh many unsure ones.
POWER = 1.5
#: Added to each sum, so that words that occur together nowhere else keep the order that their map gives them.
PRIOR = 0.01
#: The part of a pair's own evidence that counts for itself.
OWN = 0.3
#: Words with the same first letters count for each other,
LETTERS = 4
#: so much.
BEGINNINGS = 0.5
#: How often a map is reweighted, the second time by the evidence of the reweighted maps.
PASSES = 2
#: Evidence is a multiple of this, so that float64 sums it exactly, in whatever order.
UNIT = 2.0**-20
#: Smaller sums count as 0: they are negligible beside :data:`PRIOR`, and most sums are that small.
LEAST_SUM = 0.01
#: Sentence pairs whose evidence is summed together.
_CHUNK = 500

#: The number of sentence pairs of a text that are checked.
SAMPLE = 1000
#: A side with fewer running words is not checked.
FEW_WORDS = 100
#: The largest share of running words that may be unknown.  Of other Europarl text a lexical table of 20,000 pairs does
#: not know 6 %, one of 100 pairs 40 %, and one with source and target exchanged 45 to 62 %.
MOST_UNKNOWN = 0.5
#: From this share of unknown words on, the text's own counts help.
MANY_UNKNOWN = 0.1
#: The largest share that may be known in another case only.  Of cased text it is 10 to 22 % for a lowercased table.
MOST_OTHER_CASE = 0.05


@dataclass(frozen=True, eq=False)
class WordCounts:
    """The words of one side."""

    numbers: Mapping[str, int]  #: each word's number, from 0
    counts: NDArray[np.int64]  #: how often each occurs in the text, by number, and a final 0 for unknown words

    @classmethod
    def of(cls, sides: Iterable[Sequence[str]], others: WordCounts | None = None) -> WordCounts:
        """The words of a text, numbered in the order of their first occurrence, after those of an ``others``' text."""
        numbers = {} if others is None else dict(others.numbers)
        found = [numbers.setdefault(word, len(numbers)) for side in sides for word in side]
        counts = np.bincount(np.array(found, dtype=np.int64), minlength=len(numbers) + 1)
        if others is not None:
            counts[: len(others.numbers)] += others.counts[:-1]
        return cls(numbers, counts)

    def lookup(self, words: Sequence[str]) -> NDArray[np.int64]:
        """The number of each word; unknown words get the number after the last."""
        unknown = len(self.numbers)
        return np.array([self.numbers.get(word, unknown) for word in words], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class LexicalTable:
    """The evidence that pairs of words belong together, summed over a text; an empty one knows no words."""

    source: WordCounts
    target: WordCounts
    cells: NDArray[np.int64]  #: ascending: the pairs of words that occur together, numbered by :meth:`cells_of`
    sums: NDArray[np.floating]  #: for each of ``cells`` the sum of its evidence; other pairs of words count as 0
    pairs: int  #: the number of sentence pairs that it was counted on
    name: str = "the lexical table"  #: in messages

    @cached_property
    def exchanged(self) -> LexicalTable:
        """The table of the other direction: source and target exchanged."""
        width = len(self.source.counts)
        cells = self.cells % width * len(self.target.counts) + self.cells // width
        order = np.argsort(cells)
        return replace(self, source=self.target, target=self.source, cells=cells[order], sums=self.sums[order])

    def reweight(self, words: PairWords, word_map: Floats, sharpening: Sharpening) -> Reweighted:
        """Reweight the word map P [target words, source words] of a sentence pair that was not counted.

        W = P^a ∘ w^γ, for source word u and target word v with

            w = (n(u, v) + 0.3 e + ε) / √((c(u) + 1)(c(v) + 1)) + ½ n4(u, v) / √((c4(u) + 1)(c4(v) + 1))

        n is their sum in the table, e the :func:`evidence` of this cell, first of P^a, the second time of W, ε is
        :data:`PRIOR`, and c how often a word occurs in the table's text.  n4 and c4 are those of all words with the
        same first four letters.  For unknown words they are 0.
        """
        return _reweighted([self.known(words)] * PASSES, word_map, sharpening)

    def known(self, words: PairWords) -> Known:
        """What it says of each pair of words, [target words, source words]."""
        sums, scale = self.beginnings._sums_and_scale(beginnings_of(words))
        return Known(*self._sums_and_scale(words), sums, BEGINNINGS * scale)

    @cached_property
    def beginnings(self) -> LexicalTable:
        """The table of the first letters of words."""
        sides: list[WordCounts] = []
        numbers: list[NDArray[np.int64]] = []
        for side in (self.source, self.target):
            known: dict[str, int] = {}
            numbers.append(np.array([known.setdefault(word[:LETTERS], len(known)) for word in side.numbers], np.int64))
            counts = np.bincount(numbers[-1], side.counts[:-1], len(known) + 1).astype(np.int64)
            sides.append(WordCounts(known, counts))
        width = len(self.source.counts)
        cells = numbers[1][self.cells // width] * len(sides[0].counts) + numbers[0][self.cells % width]
        cells, places = np.unique(cells, return_inverse=True)
        source, target = sides
        sums: Floats = np.bincount(places, self.sums, len(cells)).astype(np.float64)
        return LexicalTable(source, target, cells, sums, self.pairs)

    def cells_of(self, words: PairWords) -> NDArray[np.int64]:
        """The number of each pair of words, [target words, source words]; unknown words have one, too."""
        return self.target.lookup(words[1])[:, None] * len(self.source.counts) + self.source.lookup(words[0])

    def unknown(self, words: PairWords) -> int:
        """How many words of a pair it does not know."""
        sides = zip((self.source, self.target), words)
        return sum(word not in known.numbers for known, own in sides for word in own)

    def _sums_and_scale(self, words: PairWords) -> tuple[Floats, Floats]:
        """The sum of each pair of words, and 1 / √((c(u) + 1)(c(v) + 1)); both are [target words, source words]."""
        source, target = self.source.lookup(words[0]), self.target.lookup(words[1])
        scale: Floats = 1 / np.sqrt((self.target.counts[target] + 1.0)[:, None] * (self.source.counts[source] + 1.0))
        if not len(self.cells):
            return np.zeros(scale.shape), scale
        wanted = target[:, None] * len(self.source.counts) + source
        places = np.minimum(np.searchsorted(self.cells, wanted), len(self.cells) - 1)
        return np.where(self.cells[places] == wanted, self.sums[places], 0.0), scale


#: The table of no text.
EMPTY = LexicalTable(WordCounts.of(()), WordCounts.of(()), np.empty(0, np.int64), np.empty(0), 0)


class Known(NamedTuple):
    """What a table says of each pair of words of a sentence pair, [target words, source words] each."""

    sums: Floats  #: n
    scale: Floats  #: 1 / √((c(u) + 1)(c(v) + 1))
    beginning_sums: Floats  #: n4
    beginning_scale: Floats  #: ½ / √((c4(u) + 1)(c4(v) + 1))


def beginnings_of(words: PairWords) -> PairWords:
    """The first letters of the words of both sides."""
    source, target = ([word[:LETTERS] for word in side] for side in words)
    return source, target


def evidence(word_map: Floats) -> Floats:
    """What each cell of a word map adds to a table."""
    added: Floats = np.rint(two_way_shares(word_map) ** POWER / UNIT) * UNIT
    return added


def _reweighted(
    tables: Iterable[Known],
    word_map: Floats,
    sharpening: Sharpening,
    counted: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None,
) -> Reweighted:
    """The word map reweighted by what each table knows, in turn.

    ``counted`` are the numbers of its cells, by words and by beginnings, if the sums have the evidence of the pair
    itself.
    """
    words = beginnings = np.zeros_like(word_map)
    powers = weighed = word_map**sharpening.of_map
    for sums, scale, beginning_sums, beginning_scale in tables if word_map.size else ():
        own: Floats = evidence(weighed)
        if counted is not None:
            sums = sums - _of_same_words(own, counted[0])
            beginning_sums = beginning_sums - _of_same_words(own, counted[1])
        words = (np.where(sums < LEAST_SUM, 0, sums) + OWN * own + PRIOR) * scale
        beginnings = beginning_sums * beginning_scale
        weighed = powers * (words + beginnings) ** sharpening.of_table
    return Reweighted(weighed, words, beginnings)


def _of_same_words(evidence: Floats, cells: NDArray[np.int64]) -> Floats:
    """For each cell of a pair the evidence of all its cells of the same two words."""
    _, words = np.unique(cells.ravel(), return_inverse=True)
    sums: Floats = np.bincount(words, evidence.ravel()).astype(np.float64)
    return sums[words].reshape(evidence.shape)


def count_lexical_table(
    pairs: Sequence[CountedPair], sharpening: Sharpening, others: LexicalTable = EMPTY
) -> tuple[LexicalTable, Callable[[CountedPair], Reweighted]]:
    """Count the lexical table of sentence pairs; with what reweights the word map [target words, source words] of one.

    The first pass sums the evidence of the maps, the second that of the maps that the first has reweighted.  The table
    of ``others`` is added.  For a counted pair n (see :meth:`LexicalTable.reweight`) has no evidence of that pair.
    """
    words = [sides for sides, word_map in pairs if word_map.size]
    source = WordCounts.of((sides[0] for sides in words), others.source)
    target = WordCounts.of((sides[1] for sides in words), others.target)
    width = len(others.source.counts)
    cells = others.cells // width * len(source.counts) + others.cells % width
    given: Evidence = cells, np.rint(others.sums.astype(np.float64) / UNIT) * UNIT
    table = LexicalTable(source, target, *given, others.pairs + len(words))
    tables: list[LexicalTable] = []

    def reweighted(pair: CountedPair) -> Reweighted:
        words, word_map = pair
        own = table.cells_of(words), table.beginnings.cells_of(beginnings_of(words))
        return _reweighted((counted.known(words) for counted in tables), word_map.astype(np.float64), sharpening, own)

    def added(pair: CountedPair) -> Evidence:
        return table.cells_of(pair[0]).ravel(), evidence(reweighted(pair).cells).ravel()

    for _ in range(PASSES):
        cells, sums = _sum_evidence(given, map(added, pairs))
        tables.append(replace(table, cells=cells, sums=sums))
    kept = sums >= LEAST_SUM
    return replace(table, cells=cells[kept], sums=sums[kept].astype(np.float32)), reweighted


def _sum_evidence(first: Evidence, pairs: Iterator[Evidence]) -> Evidence:
    """The different cells of the ``first`` evidence and of all pairs, ascending, and the sum of each."""
    runs = [first]
    while chunk := list(itertools.islice(pairs, _CHUNK)):
        runs.append(_merge_runs(chunk))
        while len(runs) > 1 and len(runs[-2][0]) < 2 * len(runs[-1][0]):  # each number moves a few times only
            runs[-2:] = [_merge_runs(runs[-2:])]
    return _merge_runs(runs)


def _merge_runs(runs: Sequence[Evidence]) -> Evidence:
    every = np.concatenate([cells for cells, _ in runs])
    order = np.argsort(every, kind="stable")  # merges ascending runs, in less memory than np.unique
    every, added = every[order], np.concatenate([sums for _, sums in runs])[order]
    first = np.flatnonzero(np.diff(every, prepend=-1))
    return every[first], np.add.reduceat(added, first) if len(first) else added


def check_match(table: LexicalTable, pairs: Iterable[PairWords]) -> None:
    """Check that a lexical table has the languages and the preprocessing of a text; raises InputError if it has not.

    A side with fewer than :data:`FEW_WORDS` running words is not checked.
    """
    for name, known, words in zip(("source", "target"), (table.source, table.target), zip(*pairs)):
        counts = Counter(itertools.chain.from_iterable(words))
        if (total := sum(counts.values())) < FEW_WORDS:
            continue
        unknown = {word: count for word, count in counts.items() if word not in known.numbers}
        folded = {word.casefold() for word in known.numbers}
        other_case = sum(count for word, count in unknown.items() if word.casefold() in folded)
        for found, most, what in (
            (other_case, MOST_OTHER_CASE, "in the lexical table in another case only"),
            (sum(unknown.values()), MOST_UNKNOWN, "not in the lexical table"),
        ):
            if found > most * total:
                raise InputError(
                    f"{table.name}: of the text's {total} {name} words, {found} ({found / total:.0%}) are {what}; give "
                    f"one that was counted on text of the same languages, tokenisation and case"
                )


def write_lexical_table(path: str | Path, lexical_table: LexicalTable, signature: str) -> None:
    """Write a lexical table and its ``signature``: what it was counted on, and how.  If this fails, no file is left."""
    if not lexical_table.pairs:
        raise InputError(f"{path}: cannot write a lexical table without sentence pairs; no pair has maps")
    about = {"version": VERSION, "pairs": lexical_table.pairs, "signature": signature}
    sides = (lexical_table.source, lexical_table.target)
    width = len(lexical_table.source.counts)
    # rows with both words, then those with a source word, then those with a target word; the last number is no word
    none = [len(side.numbers) for side in sides]
    numbers = [lexical_table.cells % width, lexical_table.cells // width]
    codes = [
        np.concatenate([numbers[0], np.arange(none[0]), np.full(none[1], none[0])]),
        np.concatenate([numbers[1], np.full(none[0], none[1]), np.arange(none[1])]),
    ]
    columns = [pa.array([*side.numbers, ""]).take(pa.array(of)) for side, of in zip(sides, codes)]
    weights = np.concatenate([lexical_table.sums, *(side.counts[:-1] for side in sides)], dtype=np.float64)
    schema = SCHEMA.with_metadata({_METADATA: json.dumps(about, ensure_ascii=False)})
    table = pa.Table.from_arrays([*columns, pa.array(weights)], schema=schema)
    with new_file(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", use_dictionary=_WORDS, write_page_checksum=True)


def read_lexical_table(path: str | Path) -> LexicalTable:
    """Read a lexical table file."""
    file = ForeignFile(str(path), "a lexical table file", _ADVICE)
    table = file.table(SCHEMA)
    header = file.decode((table.schema.metadata or {}).get(_METADATA, b""), _Header, version=VERSION)
    if not len(table):
        raise file.error("no rows")
    weights = np.from_dlpack(table["weight"].combine_chunks())  # to_numpy would import pandas
    (sources, source), (targets, target) = (_numbered(table[side]) for side in _WORDS)
    width = len(sources) + 1
    rows = target * width + source
    order = np.argsort(rows)
    if (np.diff(rows[order]) == 0).any():
        raise file.error("duplicate rows")
    no_source, no_target = source == len(sources), target == len(targets)
    order = order[~(no_source | no_target)[order]]
    return LexicalTable(
        WordCounts(sources, _counts(source[no_target], weights[no_target], len(sources), file)),
        WordCounts(targets, _counts(target[no_source], weights[no_source], len(targets), file)),
        rows[order],
        weights[order].astype(np.float32),
        header.pairs,
        str(path),
    )


class _Header(msgspec.Struct):
    """What the metadata of a lexical table file hold."""

    version: int
    pairs: Count
    signature: str


def _numbered(column: pa.ChunkedArray) -> tuple[dict[str, int], NDArray[np.int64]]:
    """The words of a column with their numbers, and the number of each row; the empty word comes last."""
    encoded = column.combine_chunks().dictionary_encode()
    words = encoded.dictionary.to_pylist()
    numbers = {word: number for number, word in enumerate(filter(None, words))}
    of_words = np.array([numbers.get(word, len(numbers)) for word in words], dtype=np.int64)
    return numbers, of_words[np.from_dlpack(encoded.indices)]


def _counts(numbers: NDArray[np.int64], weights: Floats, size: int, file: ForeignFile) -> NDArray[np.int64]:
    """How often each of ``size`` words occurs in the text, and a final 0."""
    whole = (weights >= 1) & (weights < 2**53) & (weights == np.floor(weights))
    counts = np.zeros(size + 1, dtype=np.int64)
    if whole.all():
        counts[numbers] = weights
    if not (counts[:-1] > 0).all() or counts[-1]:
        raise file.error("words without a count, or with a count that is not a whole number")
    return counts
