"""Merges maps between subwords to word maps, for many sentence pairs at once.

Every sum runs over the same cells in the same order as in :mod:`alignment_eval.maps.words`, so a pair's word map has
the same bits as if it were made alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.maps.ragged import Numbers, RaggedShape, counted, starts_of
from alignment_eval.maps.sentence import Array, SentenceSide


class RaggedSides:
    """The tokens of one side of several sentence pairs, one pair behind the other.

    Attributes:
        lengths: the number of tokens of each side, [P].
        ordinary: how many of them belong to words, [P].
        order: the tokens of each side, counted from 0, ordinary ones first.
        runs: the number of runs of words of each side, [P]; one word each unless ``spans`` says otherwise.
        firsts: the first token of each run, counted from 0 among the ordinary ones.
        counts: the number of tokens of each run.
        spans: the number of words of each run.
        sound: whether the word indices of each side are 0, 1, 2, … with the tokens of a word next to each other, [P];
            for others the attributes from ``runs`` on mean nothing.
        last: the last ordinary token of each side, -1 if there is none, [P].
    """

    def __init__(self, sides: Sequence[SentenceSide]) -> None:
        self.lengths = np.array([len(side.words) for side in sides], dtype=np.intp)
        words = np.concatenate([np.empty(0, dtype=np.int32), *(side.words for side in sides)])
        pairs = np.repeat(np.arange(len(sides)), self.lengths)
        special = words < 0
        self.ordinary = np.bincount(pairs[~special], minlength=len(sides))
        sorted_ = np.argsort(2 * pairs + special, kind="stable")
        positions = counted(self.lengths)
        self.order = positions[sorted_]
        begins = np.ones(len(words), dtype=np.bool_)
        np.not_equal(words[1:], words[:-1], out=begins[1:])
        begins |= positions == 0
        begins &= ~special
        self.runs = np.bincount(pairs[begins], minlength=len(sides))
        wrong = pairs[begins][words[begins] != counted(self.runs)]
        self.sound = np.bincount(wrong, minlength=len(sides)) == 0
        self.firsts = counted(self.ordinary)[begins[~special]]
        ends = np.append(self.firsts[1:], 0)
        lasts = np.cumsum(self.runs)[self.runs > 0] - 1
        ends[lasts] = self.ordinary[self.runs > 0]
        self.counts = ends - self.firsts
        self.spans = np.concatenate(
            [np.empty(0, dtype=np.intp), *(_spans(side, n) for side, n in zip(sides, self.runs.tolist()))]
        )
        self.last = np.full(len(sides), -1, dtype=np.intp)
        self.last[pairs[~special]] = positions[~special]  # the last of each pair stays

    @cached_property
    def words(self) -> Numbers:
        """The number of words of each side, [P]."""
        return np.bincount(np.repeat(np.arange(len(self.runs)), self.runs), self.spans, len(self.runs)).astype(np.intp)

    @cached_property
    def run_of_words(self) -> Numbers:
        """The run of each word, counted from 0 in its side."""
        return np.repeat(counted(self.runs), self.spans)


def _spans(side: SentenceSide, runs: int) -> Array:
    return np.ones(runs, dtype=np.intp) if side.spans is None else side.spans


def _with_null(of_words: Array, lengths: Numbers, null: Array) -> NDArray[Any]:
    """Numbers of each side's words (or their runs), and behind them the number of its null."""
    result = np.empty(len(of_words) + len(lengths), dtype=np.intp)
    nulls = np.cumsum(lengths + 1) - 1
    is_word = np.ones(len(result), dtype=np.bool_)
    is_word[nulls] = False
    result[is_word] = of_words
    result[nulls] = null
    return result


@dataclass(frozen=True, eq=False)
class RaggedMaps:
    """Where the maps of several sentence pairs are in a flat array of maps between tokens.

    Attributes:
        sources: the source tokens.
        targets: the target tokens; ``sound`` must be true everywhere, for both sides.
        origins: the place of each map's first cell in the flat array, [P].
        stride: the distance of rows there.
    """

    sources: RaggedSides
    targets: RaggedSides
    origins: Numbers
    stride: int

    @cached_property
    def shape(self) -> RaggedShape:
        """The shapes of the word maps: target words, source words and null."""
        return RaggedShape(self.targets.words, self.sources.words + 1)

    def cells(self, maps: Sequence[tuple[Array, int]]) -> NDArray[np.float64]:
        """The rows of the ordinary target tokens, with their source tokens, special ones last: [M, cells].

        Args:
            maps: M flat arrays, each with the offset of a target token's row from the token
                (alignment_eval.maps.words.SETTINGS).
        """
        rows = self.targets.ordinary
        positions = self.targets.order[counted(rows) + np.repeat(starts_of(self.targets.lengths), rows)]
        index = self._tokens.outer(np.repeat(self.origins, rows) + positions * self.stride, self.sources.order)
        result = np.empty((len(maps), len(index)))
        for cells, (flat, offset) in zip(result, maps):
            cells[:] = flat[offset * self.stride :].take(index)
        return result

    def merged(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """:func:`alignment_eval.maps.words.word_map` of all pairs, [M, cells of :attr:`shape`].

        Args:
            cells: of M maps (:meth:`cells`).
        """
        rows = self._rows(self._columns(cells))
        of_rows = np.repeat(self._runs.starts, self.targets.words) + self.targets.run_of_words
        columns = _with_null(self.sources.run_of_words, self.sources.words, self.sources.runs)
        # the transposed runs, each spread over its words
        spread = self.shape.outer(of_rows, columns * np.repeat(self.targets.runs, self.sources.words + 1))
        result: NDArray[np.float64] = rows.take(spread, axis=1)
        if (self.sources.spans > 1).any():
            spans = _with_null(np.repeat(self.sources.spans, self.sources.spans), self.sources.words, np.array(1))
            result /= self.shape.of_columns(spans)
        return result

    @cached_property
    def _tokens(self) -> RaggedShape:
        """Ordinary target tokens, all source tokens."""
        return RaggedShape(self.targets.ordinary, self.sources.lengths)

    @cached_property
    def _pieces(self) -> RaggedShape:
        """Ordinary target tokens, runs of source words and null."""
        return RaggedShape(self.targets.ordinary, self.sources.runs + 1)

    @cached_property
    def _runs(self) -> RaggedShape:
        """Runs of source words and null, runs of target words."""
        return RaggedShape(self.sources.runs + 1, self.targets.runs)

    def _columns(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums of columns: [M, cells of ``_pieces``]."""
        firsts = _with_null(self.sources.firsts, self.sources.runs, self.sources.ordinary)
        begins = self._pieces.outer(self._tokens.row_starts, firsts)
        without = self.sources.ordinary == self.sources.lengths
        if not without.any():
            return _sums(cells, begins)
        # reduceat takes the next cell for an empty sum: there is one, and it does not count
        pieces = _sums(np.pad(cells, ((0, 0), (0, 1))), begins)
        ends = self._pieces.row_starts + self._pieces.widths - 1
        pieces[:, ends[np.repeat(without, self._pieces.rows)]] = 0
        return pieces

    def _rows(self, pieces: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means of rows: [M, cells of ``_runs``]."""
        firsts = self._runs.outer(self._pieces.transposed.row_starts, self.targets.firsts)
        sums = _sums(pieces.take(self._pieces.columnwise, axis=1), firsts)
        means: NDArray[np.float64] = sums / self._runs.of_columns(self.targets.counts)
        return means


def _sums(cells: NDArray[np.float64], begins: Numbers) -> NDArray[np.float64]:
    """The sums of the stretches that begin at ``begins``: [M, stretches]."""
    if not len(begins):
        return np.empty((len(cells), 0))
    result: NDArray[np.float64] = np.add.reduceat(cells, begins, axis=1)
    return result
