"""Matrices of different sizes, one behind the other in one array: the word maps of many sentence pairs at once.

Every sum runs over the same cells in the same order as in :mod:`alignment_eval.maps.words`, so a pair's result has the
same bits as if it were made alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.maps.sentence import Array

Numbers = NDArray[np.intp]


def starts_of(lengths: Numbers) -> Numbers:
    """Where each of several stretches begins that lie one behind the other."""
    return np.cumsum(lengths) - lengths


def counted(lengths: Numbers) -> Numbers:
    """0, 1, 2, … for each of several stretches, one behind the other."""
    return np.arange(int(lengths.sum())) - np.repeat(starts_of(lengths), lengths)


@dataclass(frozen=True, eq=False)
class RaggedShape:
    """The shapes of matrices whose cells lie one behind the other, row by row.

    Attributes:
        rows: the number of rows of each matrix, [P].
        columns: the number of its columns, [P].
    """

    rows: Numbers
    columns: Numbers

    @cached_property
    def sizes(self) -> Numbers:
        """The number of cells of each matrix, [P]."""
        return self.rows * self.columns

    @cached_property
    def starts(self) -> Numbers:
        """The first cell of each matrix, [P]."""
        return starts_of(self.sizes)

    @cached_property
    def widths(self) -> Numbers:
        """The number of cells of each row of all matrices."""
        return np.repeat(self.columns, self.rows)

    @cached_property
    def row_starts(self) -> Numbers:
        """The first cell of each row of all matrices."""
        return starts_of(self.widths)

    @cached_property
    def transposed(self) -> RaggedShape:
        """The shapes of the transposed matrices."""
        return RaggedShape(self.columns, self.rows)

    @cached_property
    def columnwise(self) -> Numbers:
        """The cells in the order of the transposed matrices: ``cells[columnwise]`` lie column by column."""
        first = np.repeat(self.starts, self.columns) + counted(self.columns)
        return self.transposed.outer(first, counted(self.rows) * np.repeat(self.columns, self.rows))

    def __len__(self) -> int:
        return int(self.sizes.sum())

    def outer(self, of_rows: Array, of_columns: Array) -> NDArray[Any]:
        """The sum of a number of each cell's row and one of its column.

        Args:
            of_rows: for each row of all matrices, one behind the other.
            of_columns: likewise for each column.
        """
        result: NDArray[Any] = np.repeat(of_rows, self.widths) + self.of_columns(of_columns)
        return result

    def of_columns(self, numbers: Array) -> NDArray[Any]:
        """For each cell the number of its column; ``numbers`` are those of the columns, one matrix behind the other."""
        # all columns have one count too; along a row it grows by one, from the first column of the row's matrix
        shift = np.repeat(starts_of(self.columns), self.rows) - self.row_starts
        return np.asarray(numbers).take(np.arange(len(self)) + np.repeat(shift, self.widths))

    def sums(self, cells: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum of each row of ``cells`` [..., cells], [..., rows]."""
        result = np.zeros((*cells.shape[:-1], len(self.widths)))
        filled = self.widths > 0
        if filled.any():
            result[..., filled] = np.add.reduceat(cells, self.row_starts[filled], axis=-1)
        return result

    def views(self, cells: NDArray[Any]) -> list[NDArray[Any]]:
        """Each matrix, as a view of ``cells``."""
        shapes = zip(self.starts.tolist(), self.rows.tolist(), self.columns.tolist())
        return [cells[start : start + rows * columns].reshape(rows, columns) for start, rows, columns in shapes]


def joined_cells(matrices: Sequence[NDArray[Any]]) -> tuple[NDArray[Any], RaggedShape]:
    """The cells of matrices, one behind the other, and their shapes."""
    shape = RaggedShape(*np.array([matrix.shape for matrix in matrices], dtype=np.intp).reshape(-1, 2).T)
    cells = [matrix.ravel() for matrix in matrices]
    return np.concatenate(cells) if cells else np.empty(0), shape


def row_shares(cells: NDArray[np.float64], shape: RaggedShape) -> NDArray[np.float64]:
    """:func:`alignment_eval.maps.words.row_shares` of each matrix of ``cells`` [..., cells]."""
    sums = np.repeat(shape.sums(cells), shape.widths, axis=-1)
    return np.divide(cells, sums, out=np.zeros(cells.shape), where=sums > 0)


def column_shares(cells: NDArray[np.float64], shape: RaggedShape) -> NDArray[np.float64]:
    """:func:`alignment_eval.maps.words.column_shares` of each matrix of ``cells`` [cells]."""
    turned = shape.transposed
    shares: NDArray[np.float64] = row_shares(cells.take(shape.columnwise), turned).take(turned.columnwise)
    return shares


def two_way_shares(cells: NDArray[np.float64], shape: RaggedShape) -> NDArray[np.float64]:
    """:func:`alignment_eval.maps.words.two_way_shares` of each matrix of ``cells`` [cells]."""
    rows = row_shares(cells, shape)
    shares: NDArray[np.float64] = np.sqrt(rows * column_shares(rows, shape))
    return shares


def balanced_shares(cells: NDArray[np.float64], shape: RaggedShape) -> NDArray[np.float64]:
    """:func:`alignment_eval.maps.words.balanced_shares` of each matrix of ``cells`` [cells]."""
    return two_way_shares(column_shares(row_shares(cells, shape), shape), shape)
