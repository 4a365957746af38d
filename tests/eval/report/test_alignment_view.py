import re
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

from alignment_eval.errors import InputError
from alignment_eval.extraction.pair_scores import PairScores
from tests.drawn import marks_of, meshes, picture_texts
from tests.eval.report.view_pages import check_page, tables
from tests.eval.test_alignment import EMPTY, ONE, SYMMETRIZED


def test_plot_marks_the_links():
    axes = ONE.plot()
    assert picture_texts(axes)[:2] == (["das", "haus", "das"], ["the", "house"])
    assert list(marks_of(axes).values()) == [ONE.links]
    np.testing.assert_array_equal(meshes(axes)[0].get_array(), [[0.5, 0, 0], [0, 1, 0]])
    _, ax = pyplot.subplots()
    assert SYMMETRIZED.plot(ax=ax) is ax
    assert meshes(ax)[0].get_array().tolist() == [[1, 1], [0, 0]]
    with pytest.raises(InputError, match="both sides need at least one word"):
        EMPTY.plot()


def test_html_marks_the_links():
    page = ONE._repr_html_()
    check_page(page)
    assert tables(page) == [[["", "das", "haus", "das"], ["the", "50", "", "0"], ["house", "", "100", ""]]]
    assert tables(SYMMETRIZED._repr_html_())[0][1] == ["x", "●", "●"]
    check_page(EMPTY._repr_html_())
    assert "empty" in EMPTY._repr_html_()


def test_words_that_the_other_side_does_not_say_are_shaded():
    scores = PairScores(-1.5, unsupported=0.25, omitted=0.5, unsupported_words=[0.0, 0.5], omitted_words=[1, 0, 0.25])
    page = replace(ONE, scores=scores)._repr_html_()
    check_page(page)
    assert "unsupported 0.25, omitted 0.50" in page
    assert re.findall(r"rgba\(219,68,55,([^)]*)\)", page) == ["0.60", "0.15", "0.30"]
