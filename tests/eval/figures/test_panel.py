from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from alignment_eval.figures.panel import MARKS, column_places, label_axes, marks_of
from alignment_eval.maps.sentence import SentenceSide


def side(*words: int) -> SentenceSide:
    return SentenceSide(tuple(f"t{n}" for n in range(len(words))), np.array(words, dtype=np.int32))


@pytest.mark.parametrize(
    ("words", "gaps"),
    [((0, 1, 2), []), ((0, 1, -1), [1]), ((-1, 0, 0, -1, -1), [0, 2]), ((-1,), [])],
)
def test_places_are_a_cell_apart_and_more_between_words_and_special_tokens(
    words: tuple[int, ...], gaps: list[int]
) -> None:
    places = column_places(side(*words))
    assert places[0] == 0
    steps = np.diff(places)
    assert [n for n, step in enumerate(steps) if step > 1] == gaps
    assert all(step == 1 for n, step in enumerate(steps) if n not in gaps)


def test_labels_stand_at_the_places() -> None:
    axes = Figure().add_subplot()
    label_axes(axes, side(0, -1), ["a", "(null)"], ["x"], ("DejaVu Sans",))
    assert axes.get_xticks().tolist() == column_places(side(0, -1)).tolist()
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "(null)"]
    label_axes(axes, side(0, -1), [], [], ("DejaVu Sans",))
    assert not len(axes.get_xticks())


def test_marks_grow_with_the_cell() -> None:
    for name in MARKS:
        assert marks_of(name, [(0, 0)], 0.2).get_markersize() == 2 * marks_of(name, [], 0.1).get_markersize()
