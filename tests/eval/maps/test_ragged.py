"""Matrices one behind the other, against each alone and against slow loops."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from alignment_eval.maps import words
from alignment_eval.maps.ragged import RaggedShape, balanced_shares, joined_cells, row_shares, two_way_shares

#: Rows and columns of each matrix, and a seed.
SHAPES = st.tuples(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=5), st.integers(0, 2**32 - 1))
Given = tuple[list[tuple[int, int]], int]


def matrices(shapes: Given) -> list[NDArray[np.float64]]:
    """Positive numbers, small ones and zeros."""
    rng = np.random.default_rng(shapes[1])
    return [rng.uniform(size=shape) * rng.choice([0, 1e-9, 1, 30], size=shape) for shape in shapes[0]]


def slow_two_way(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = [[cell / math.fsum(row) if math.fsum(row) else 0.0 for cell in row] for row in matrix]
    result = np.zeros(matrix.shape)
    for i, j in np.ndindex(matrix.shape):
        column = math.fsum(row[j] for row in rows)
        result[i, j] = math.sqrt(rows[i][j] * rows[i][j] / column) if column else 0.0
    return result


def slow_balanced(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = [[cell / math.fsum(row) if math.fsum(row) else 0.0 for cell in row] for row in matrix]
    sums = [math.fsum(column) for column in zip(*rows)]
    evened = [[cell / of if of else 0.0 for cell, of in zip(row, sums)] for row in rows]
    return slow_two_way(np.array(evened).reshape(matrix.shape))


@given(shapes=SHAPES)
def test_cells_lie_where_the_shapes_say(shapes: Given) -> None:
    given_matrices = matrices(shapes)
    cells, shape = joined_cells(given_matrices)
    assert len(shape) == len(cells)
    for view, matrix in zip(shape.views(cells), given_matrices):
        np.testing.assert_array_equal(view, matrix)
    turned, expected = cells[shape.columnwise], [matrix.T for matrix in given_matrices]
    for view, matrix in zip(shape.transposed.views(turned), expected):
        np.testing.assert_array_equal(view, matrix)


@given(shapes=SHAPES)
def test_a_number_of_each_row_and_one_of_each_column(shapes: Given) -> None:
    shape = RaggedShape(*np.array(shapes[0], dtype=np.intp).reshape(-1, 2).T)
    rng = np.random.default_rng(shapes[1])
    rows, columns = (rng.integers(0, 99, int(each.sum())) for each in (shape.rows, shape.columns))
    expected = []
    row = column = 0
    for height, width in shapes[0]:
        expected += [rows[row + i] + columns[column + j] for i in range(height) for j in range(width)]
        row, column = row + height, column + width
    assert shape.outer(rows, columns).tolist() == expected


@given(shapes=SHAPES)
def test_shares_are_those_of_each_matrix_alone(shapes: Given) -> None:
    """Exactly, so that the links of a pair do not depend on the pairs beside it."""
    given_matrices = matrices(shapes)
    cells, shape = joined_cells(given_matrices)
    found = (shape.views(shares(cells, shape)) for shares in (row_shares, two_way_shares, balanced_shares))
    for matrix, of_rows, two_way, balanced in zip(given_matrices, *found):
        np.testing.assert_array_equal(of_rows, words.row_shares(matrix))
        if matrix.size:
            np.testing.assert_array_equal(two_way, words.two_way_shares(matrix))
            np.testing.assert_allclose(two_way, slow_two_way(matrix), rtol=1e-12)
            np.testing.assert_array_equal(balanced, words.balanced_shares(matrix))
            np.testing.assert_allclose(balanced, slow_balanced(matrix), rtol=1e-12)
