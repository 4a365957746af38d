"""Pictures of sentences: what is drawn, and that it fits its printed width."""

import io
from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.text import Text

from alignment_eval.errors import AlignmentWarning, InputError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.maps import SMALLEST_TYPE, Panel, Picture, cells, draw, draw_maps, panel_of, sides_of
from alignment_eval.figures.style import COLUMN, HEIGHT, PAGE, FigureOptions, save_figure
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import SentenceSide
from tests.drawn import marks_of, meshes


def plain(tokens):
    """Words, and at the end specials in angle brackets."""
    numbers = [-1 if token.startswith("<") else n for n, token in enumerate(tokens.split())]
    return SentenceSide(tuple(tokens.split()), np.array(numbers, dtype=np.int32))


def picture(source="a b", target="x y z", gold=None, **panel):
    """One panel, of 0.0, 0.1, … unless values are given."""
    sides = plain(source), plain(target)
    shape = len(sides[1].tokens), len(sides[0].tokens)
    panel = {"title": "weights", "values": np.arange(shape[0] * shape[1]).reshape(shape) / 10, **panel}
    return Picture("title", *sides, ((Panel(**panel),),), gold)


def check_print(figure, apart=True, least=7.0):
    """All text has at least ``least`` points, lies within the page and, if ``apart``, on no other text."""
    figure.savefig(io.BytesIO(), format="png", dpi=72)
    texts = [t for t in figure.findobj(Text) if isinstance(t, Text) and t.get_visible() and t.get_text().strip()]
    shown = [text for text in texts if text.get_figure() is not None and text.stale is False]
    assert shown
    width, height = figure.get_size_inches() * 72
    boxes = []
    for text in shown:
        assert text.get_fontsize() >= least, text.get_text()
        box = text.get_window_extent(dpi=72)
        inside = box.x0 >= -1 and box.y0 >= -1 and box.x1 <= width + 1 and box.y1 <= height + 1
        assert inside, (text.get_text(), box, width, height)
        boxes.append((text.get_text(), box.shrunk(0.9, 0.8)))
    for (one, a), (other, b) in combinations(boxes, 2) if apart else ():
        assert not a.overlaps(b), (one, other, a, b)


def test_marks_values_and_labels():
    gold = GoldSentence(frozenset({(0, 0), (1, 2)}), frozenset({(1, 1), (0, 0)}))
    figure = draw(picture(gold=gold, predicted=frozenset({(0, 0), (0, 2)})))
    (axes,) = figure.axes
    assert marks_of(axes) == {"sure-0-0": [(0, 0), (1, 2)], "possible-0-0": [(1, 1)], "predicted-0-0": [(0, 0), (0, 2)]}
    (mesh,) = meshes(axes)
    np.testing.assert_array_equal(mesh.get_array(), [[0, 0.1], [0.2, 0.3], [0.4, 0.5]])
    assert mesh.get_clim() == (0, 0.5)
    assert axes.get_title(loc="left") == "weights"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (2.5, -0.5)  # the first word on top
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["gold, sure", "gold, possible", "predicted"]
    without = draw(picture())
    assert marks_of(without.axes[0]) == {}
    assert without.legends == []
    only = draw(picture(gold=GoldSentence(frozenset({(0, 0)}))))
    assert [text.get_text() for text in only.legends[0].get_texts()] == ["gold, sure"]
    (upright,) = draw(picture("科学家 Haus")).axes
    labels = [(label.get_text(), label.get_rotation()) for label in upright.get_xticklabels()]
    assert labels == [("科\n学\n家", 0), ("Haus", 90)]


def test_mathematics_is_not_parsed(tmp_path):
    tokens = r"$x_1$ $\frac{1 a_b^c $ $$ \alpha"
    shown = Picture("$y_2$", plain(tokens), plain("$z^3$"), ((Panel("$", np.ones((1, 6))),),))
    save_figure(draw(shown), tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert all(f">{token}</text>" in svg for token in (*tokens.split(), "$y_2$", "$z^3$"))


FIRST = frozenset({(0, 0)})


def several(size, word="wort", rows=1, columns=2):
    side, panel = plain(" ".join([word] * size)), Panel("layer 0, head 0", np.ones((size, size)), FIRST)
    return Picture("several maps", side, side, ((panel,) * columns,) * rows, bar="weights")


LONG = Picture("long words " * 12, *(plain("a b c"),) * 2, ((Panel("", np.ones((3, 3)), FIRST),),))


@pytest.mark.parametrize(
    ("drawn", "asked", "width", "maps"),
    [
        (picture("wort " * 15, "wort " * 15, GoldSentence(FIRST)), None, COLUMN, (1, 1)),
        (several(10), 8 / 2.54, 8 / 2.54, (1, 2)),
        (several(50), None, PAGE, (2, 1)),
        (picture("word " * 66, "wort " * 60, predicted=FIRST), None, PAGE, (1, 1)),
        (several(14, rows=3, columns=5), None, PAGE, (4, 4)),
        (several(12, rows=2, columns=9), None, PAGE, (4, 5)),
        (several(12, rows=11, columns=1), None, COLUMN, (6, 2)),
        (LONG, None, COLUMN, (1, 1)),
    ],
)
def test_it_is_no_wider_than_said_and_its_text_is_large_enough_inside_and_apart(drawn, asked, width, maps, recwarn):
    figure = draw(drawn, FigureOptions(width=asked))
    check_print(figure, least=SMALLEST_TYPE)
    assert min(width, COLUMN) - 0.01 <= figure.get_figwidth() <= width + 0.01
    assert figure.get_figheight() <= HEIGHT
    places = {tuple(int(n) for n in name.split("-")[1:]) for axes in figure.axes for name in marks_of(axes)}
    assert tuple(1 + max(of_axis) for of_axis in zip(*places)) == maps
    assert not recwarn


def test_words_that_overlap_are_told():
    with pytest.warns(AlignmentWarning, match=r"overlap in 5\.1 × 24 cm"):
        draw(several(30), FigureOptions(width=2.0))
    with pytest.warns(AlignmentWarning, match="words overlap"):
        draw(several(25, rows=12))
    with pytest.raises(InputError, match="600 maps do not fit"):
        draw(several(12, rows=30, columns=20))


def test_type_is_that_of_rc_params_and_two_maps_fit_one_figure():
    sides, panel = (plain("a b"), plain("x y")), Panel("weights", np.eye(2))
    with mpl.rc_context({"font.size": 12, "figure.figsize": (9, 4)}):
        ((alone,),) = draw_maps(Picture("", *sides, [[panel]]))
        assert alone.figure.get_figwidth() < 4  # of 9: nothing is blank
        assert {label.get_fontsize() for label in alone.get_yticklabels()} == {12}
        figure, both = pyplot.subplots(1, 2)
        assert [draw_maps(Picture("", *sides, [[panel]], bar="weights"), ax) for ax in both] == [[[ax]] for ax in both]
    check_print(figure)


@pytest.mark.parametrize("words", [3, 40])
def test_marks_leave_the_shade_of_their_cell_visible(words):
    text = " ".join(["ab"] * words)
    links = frozenset({(0, 0)})
    (axes,) = draw(picture(text, text, gold=GoldSentence(links), predicted=links)).axes
    cell = min(axes.get_window_extent().size) / axes.figure.dpi * 72 / words
    for mark in axes.lines:
        (edge,) = map(vars, mark.get_path_effects())
        assert mark.get_markersize() + edge["_gc"]["linewidth"] <= cell
        assert mark.get_markersize() - edge["_gc"]["linewidth"] >= mark.get_markersize() / 2


def test_subwords_have_the_links_of_their_words(make_sentence):
    source, target = sides_of(make_sentence(source="<de> a@@ b </s>", target="x y@@ z </s>"), "token")
    assert set(cells({(0, 1)}, source, target)) == {(column, row) for column in (1, 2) for row in (1, 2)}


@given(number=st.integers(0, 30), setting=st.sampled_from(["awo", "awi"]), level=st.sampled_from(["word", "token"]))
def test_predicted_links_are_those_of_extract(make_sentence, number, setting, level):
    sentence = make_sentence(number)
    for rule, null in (("kobayashi2020", "allow"), ("kobayashi2020", "mask"), ("threshold=0.3", None)):
        options = ExtractionOptions("attn_n", "0", "mean", setting, rule, null)
        assert panel_of(sentence, options, level, "").predicted == extract(sentence, options)
