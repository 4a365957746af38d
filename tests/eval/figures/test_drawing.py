"""Pictures of sentences: what is drawn, and that it fits its printed width."""

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot

from alignment_eval.errors import UsageError
from alignment_eval.figures.drawing import SMALLEST_TYPE, draw
from alignment_eval.figures.sentence import Panel, Picture
from alignment_eval.figures.style import COLUMN, PAGE, TYPE, UNITS, FigureOptions, save_figure
from alignment_eval.links.sets import GoldSentence
from tests.drawn import meshes
from tests.eval.figures.printed import check_print, picture, plain
from tests.facts import facts


@pytest.fixture(autouse=True)
def _no_display():
    with mpl.rc_context({"backend": "agg"}):
        yield
    pyplot.close("all")


def test_marks_values_and_labels():
    gold = GoldSentence(frozenset({(0, 0), (1, 2)}), frozenset({(1, 1), (0, 0)}))
    figure = draw(picture(gold=gold, predicted=frozenset({(0, 0), (0, 2)})))
    (axes,) = figure.axes
    marks = {line.get_gid(): list(zip(*line.get_data())) for line in axes.lines}
    assert marks == {"sure-0-0": [(0, 0), (1, 2)], "possible-0-0": [(1, 1)], "predicted-0-0": [(0, 0), (0, 2)]}
    assert len({line.get_marker() for line in axes.lines}) == 3  # not in colour alone
    (image,) = meshes(axes)
    np.testing.assert_array_equal(image.get_array(), [[0, 0.1], [0.2, 0.3], [0.4, 0.5]])
    assert image.get_clim() == (0, 0.5)
    assert axes.get_title(loc="left") == "weights\nmax 0.5"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (2.5, -0.5)  # the first word on top
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["gold, sure", "gold, possible only", "predicted"]
    without = draw(picture())
    assert [line.get_gid() for line in without.axes[0].lines] == ["predicted-0-0"]
    assert [text.get_text() for text in without.legends[0].get_texts()] == ["predicted"]


def test_mathematics_is_not_parsed(tmp_path):
    tokens = r"$x_1$ $\frac{1 a_b^c $ $$ \alpha"
    shown = Picture("$y_2$", plain(tokens), plain("$z^3$"), ((Panel("$", np.ones((1, 6))),),))
    save_figure(draw(shown), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f">{token}</text>" in svg for token in (*tokens.split(), "$y_2$", "$z^3$"))


def several(size, word="wort", rows=1, columns=2):
    side, panel = plain(" ".join([word] * size)), Panel("layer 0, head 0", np.ones((size, size)))
    return Picture("several maps", side, side, ((panel,) * columns,) * rows)


LONG = Picture("long words " * 12, *(plain("a b c"),) * 2, ((Panel("", np.ones((3, 3))),),))


@pytest.mark.parametrize(
    ("drawn", "asked", "width", "least"),
    [
        (picture("wort " * 15, "wort " * 15, GoldSentence(frozenset({(0, 0)}))), None, COLUMN, TYPE),
        (several(20), None, PAGE, TYPE),
        (several(70), None, PAGE, SMALLEST_TYPE),
        (several(12, rows=2, columns=9), None, PAGE, TYPE),
        (several(20), 3.1, 3.1, TYPE),
        (several(12, "verkehrsunfall"), COLUMN, COLUMN, SMALLEST_TYPE),
        (LONG, None, COLUMN, TYPE),
    ],
)
def test_it_is_as_wide_as_said_and_its_text_is_large_enough_inside_and_apart(drawn, asked, width, least):
    figure = draw(drawn, FigureOptions(width=asked))
    assert figure.get_figwidth() == pytest.approx(width)
    check_print(figure, least=least)


def test_a_width_that_is_too_small_for_the_words_is_refused_with_the_one_that_fits():
    with pytest.raises(UsageError, match=facts("--width 5.1cm: … words … need ")) as error:
        draw(several(30), FigureOptions(width=2.0))
    needed = float(str(error.value).split("need ")[1].split("cm")[0]) * UNITS["cm"]
    check_print(draw(several(30), FigureOptions(width=needed)), least=SMALLEST_TYPE)
