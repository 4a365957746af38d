from __future__ import annotations

from collections.abc import Callable, Iterator

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from alignment_eval.figures.axes import draw_map
from alignment_eval.figures.sentence import Panel
from alignment_eval.maps.sentence import SentenceSide

Sides = Callable[..., SentenceSide]


@pytest.fixture(autouse=True)
def _no_display() -> Iterator[None]:
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


def panel(rows: int, columns: int) -> Panel:
    return Panel("norms", np.random.default_rng(0).random((rows, columns)))


def test_source_words_are_columns_and_target_words_rows(make_side: Sides) -> None:
    axes = draw_map(panel(2, 3), make_side("a b </s>"), make_side("x </s>"))
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b", "</s>"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "</s>"]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title(loc="left")) == ("source", "target", "norms")


def test_a_longer_sentence_gets_a_larger_figure(make_side: Sides) -> None:
    sizes = []
    for words in (2, 40):
        side = make_side(" ".join(["wort"] * words))
        sizes.append(tuple(draw_map(panel(words, words), side, side).figure.get_size_inches()))
    assert sizes[0] < sizes[1]
    assert sizes[0][0] >= 3  # a title fits


def test_it_draws_on_the_axes_of_the_caller(make_side: Sides) -> None:
    figure, (left, right) = pyplot.subplots(1, 2)
    assert draw_map(panel(1, 2), make_side("a b"), make_side("x"), left) is left
    assert (left.has_data(), right.has_data()) == (True, False)
    assert figure.get_layout_engine() is not None  # savefig cuts nothing off
    assert len(pyplot.get_fignums()) == 1
