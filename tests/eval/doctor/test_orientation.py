from __future__ import annotations

import numpy as np
import pytest

from alignment_eval.doctor.misreadings import MARGIN, outside
from alignment_eval.doctor.orientation import diagonal, linked_lengths
from alignment_eval.links.table import LinkTable


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        (3, 3, [(0, 0), (1, 1), (2, 2)]),
        (2, 4, [(0, 0), (0, 1), (1, 2), (1, 3)]),
        (5, 1, [(2, 0)]),
        (0, 3, []),
        (3, 0, []),
    ],
)
def test_diagonal(source: int, target: int, expected: list[tuple[int, int]]) -> None:
    found = diagonal((np.array([1, source]), np.array([1, target])))
    assert found.to_sentences() == [{(0, 0)}, set(expected)]


def test_lengths_and_what_is_outside_them() -> None:
    links = LinkTable.of([{(0, 3), (2, 1)}, ()])
    source, target = linked_lengths(links)
    assert (source.tolist(), target.tolist()) == ([3, 0], [4, 0])
    shifted = links.shifted(MARGIN)
    assert outside(shifted, (source, target)) == 0
    assert outside(shifted, (target, source)) == 1
    assert outside(links, (source, target)) == 1  # index 0 - MARGIN
    assert outside(shifted, (source[:0], target[:0])) == 2
