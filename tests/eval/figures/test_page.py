"""Pictures of sentences: what is drawn, and that it fits its printed width."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.figures.page import draw, layout
from alignment_eval.figures.saving import save_figure
from alignment_eval.figures.sentence import Panel, Picture, panel_of, sides_of
from alignment_eval.figures.style import COLUMN, PAGE, FigureOptions, styled
from alignment_eval.links.table import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from tests.drawn import meshes
from tests.eval.figures.printed import check_print

Factory = Callable[..., SentenceMaps]


def plain(tokens: str) -> SentenceSide:
    """Words, and at the end specials in angle brackets."""
    numbers = [-1 if token.startswith("<") else n for n, token in enumerate(tokens.split())]
    return SentenceSide(tuple(tokens.split()), np.array(numbers, dtype=np.int32))


def picture(source: str = "a b", target: str = "x y z", gold: GoldSentence | None = None, **panel: Any) -> Picture:
    """One panel, of 0.0, 0.1, … unless values are given."""
    sides = plain(source), plain(target)
    shape = len(sides[1].tokens), len(sides[0].tokens)
    panel = {"title": "weights", "values": np.arange(shape[0] * shape[1]).reshape(shape) / 10, **panel}
    return Picture("title", *sides, ((Panel(**panel),),), gold)


def grid(rows: int, columns: int, words: int = 3) -> Picture:
    side = plain(" ".join(["wort"] * words))
    panels = tuple(
        tuple(Panel(f"head {c}", np.full((words, words), 1.0 + 10 * r + c)) for c in range(columns))
        for r in range(rows)
    )
    return Picture("", side, side, panels, rows=tuple(f"layer {r}" for r in range(rows)))


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


def test_mathematics_is_not_parsed(tmp_path: Path) -> None:
    tokens = r"$x_1$ $\frac{1 a_b^c $ $$ \alpha"
    shown = Picture("$y_2$", plain(tokens), plain("$z^3$"), ((Panel("weights", np.ones((1, 6))),),))
    save_figure(draw(shown), tmp_path / "a.svg")
    assert {*tokens.split(), "$y_2$", "$z^3$"} <= set(texts(tmp_path / "a.svg"))
    save_figure(draw(shown), tmp_path / "a.png")  # and broken mathematics is drawn


def test_marks_values_and_labels() -> None:
    gold = GoldSentence(frozenset({(0, 0), (1, 2)}), frozenset({(1, 1), (0, 0)}))
    figure = draw(picture(gold=gold, predicted=frozenset({(0, 0), (0, 2)})))
    axes = figure.axes[0]
    marks = {line.get_gid(): list(zip(*line.get_data())) for line in axes.lines}
    assert marks == {"sure-0-0": [(0, 0), (1, 2)], "possible-0-0": [(1, 1)], "predicted-0-0": [(0, 0), (0, 2)]}
    (image,) = meshes(axes)
    np.testing.assert_array_equal(image.get_array(), [[0, 0.1], [0.2, 0.3], [0.4, 0.5]])
    assert image.get_clim() == (0, 0.5)
    assert axes.get_title(loc="left") == "weights"  # the largest value stands at the colour bar alone
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (2.5, -0.5)  # the first word on top
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["gold, sure", "gold, possible only", "predicted"]


def test_special_tokens_are_set_apart() -> None:
    figure = draw(picture("<de> a b <e>", "x", values=np.array([[1.0, 2, 3, 4]]), predicted=frozenset({(2, 0)})))
    axes = figure.axes[0]
    assert [image.get_array().tolist() for image in meshes(axes)] == [[[1]], [[2, 3]], [[4]]]
    assert all(image.get_clim() == (0, 4) for image in meshes(axes))  # one scale
    sides = [image.get_coordinates()[0, [0, -1], 0] for image in meshes(axes)]
    assert sides[0][1] < sides[1][0]
    assert sides[1][1] < sides[2][0]
    places = axes.get_xticks()
    assert (places[1], places[2]) == pytest.approx((sides[1][0] + 0.5, sides[1][1] - 0.5))
    assert axes.lines[0].get_xdata()[0] == places[2]  # a mark stands on its word


def test_series_differ_in_shape_and_not_in_colour_alone() -> None:
    figure = draw(picture(gold=GoldSentence(frozenset({(0, 0)}))))
    lines = figure.axes[0].lines
    assert len({line.get_marker() for line in lines}) == 3
    outlined = [line for line in lines if line.get_gid() != "predicted-0-0"]
    assert all(to_rgb(line.get_markeredgecolor()) == (0, 0, 0) for line in outlined)


def test_marks_cover_all_tokens_of_a_word(make_sentence: Factory) -> None:
    sentence = make_sentence(source="a@@ b c </s>", target="x y@@ z </s>")
    panel = panel_of(sentence, ExtractionOptions("attn_w", 0), "token", "", frozenset({(0, 1)}))
    figure = draw(Picture("", *sides_of(sentence, "token"), ((panel,),)))
    (line,) = figure.axes[0].lines
    assert sorted(zip(*line.get_data())) == [(0, 1), (0, 2), (1, 1), (1, 2)]


def test_without_gold_no_word_of_gold() -> None:
    figure = draw(picture())
    assert [line.get_gid() for line in figure.axes[0].lines] == ["predicted-0-0"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["predicted"]


def test_a_map_of_zeros_is_light() -> None:
    (image,) = meshes(draw(picture(values=np.zeros((3, 2)))).axes[0])
    colours = {tuple(colour) for colour in image.to_rgba(image.get_array(), bytes=True).reshape(-1, 4).tolist()}
    assert colours == {(247, 251, 255, 255)}


def test_grid() -> None:
    """Names stand once, at the first row and column; words beside the first column and under the last row."""
    figure = draw(grid(2, 3))
    assert len(figure.axes) == 6  # no colour bars: the largest value is above each panel
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["head 0\nmax 1", "head 1\nmax 2", "head 2\nmax 3", "max 11", "max 12", "max 13"]
    assert [text.get_text() for text in figure.texts] == ["layer 0", "layer 1"]
    for n, axes in enumerate(figure.axes):
        assert bool(axes.get_xticklabels()) == (n >= 3)
        assert bool(axes.get_yticklabels()) == (n in (0, 3))
    boxes = [axes.get_position() for axes in figure.axes]
    assert boxes[0].y0 > boxes[3].y1
    assert boxes[0].x1 < boxes[1].x0 < boxes[2].x0


def two(size: int) -> Picture:
    side = plain(" ".join(["wort"] * size))
    return Picture("two maps", side, side, (tuple(Panel(name, np.ones((size, size))) for name in ("a", "b")),))


PICTURES = {
    "a short sentence": (picture("a b", "x"), {}, COLUMN),
    "a column": (picture("wort " * 15, "wort " * 15, GoldSentence(frozenset({(0, 0)}))), {}, COLUMN),
    "a page": (two(20), {}, PAGE),
    "a page is too narrow": (two(60), {}, None),
    "a grid": (grid(3, 4, 5), {}, COLUMN),
    "a width": (two(8), {"width": 4.0}, 4.0),
    "no room for words": (two(30), {"width": 3.0}, 3.0),
    "heads without room for words": (grid(2, 9, 12), {"width": PAGE}, PAGE),
    "a long heading": (
        Picture("long words " * 12, *(plain("a b c"),) * 2, ((Panel("", np.ones((3, 3))),),)),
        {},
        COLUMN,
    ),
}


@pytest.mark.parametrize("name", PICTURES)
def test_it_is_as_wide_as_said_and_all_its_text_is_large_enough_and_inside(name: str) -> None:
    drawn, options, width = PICTURES[name]
    placed = layout(drawn, options=FigureOptions(**options))
    figure: Figure = draw(drawn, options=FigureOptions(**options))
    assert figure.get_figwidth() == pytest.approx(width or placed.needed)
    assert placed.labelled == ("no room" not in name and "without room" not in name)
    check_print(figure)


def test_a_heading_is_inside_at_every_resolution() -> None:
    """Text that is hinted is wider at some resolutions than measured: a heading was cut off in PDF."""
    heading = "Sentence 12, layer 1 (2nd), AWO; predicted: rule kobayashi2020, null allowed"
    side = plain("a b c")
    figure = draw(Picture(heading, side, side, ((Panel("", np.ones((3, 3))),),)))

    @styled  # as it is saved
    def right(dpi: int) -> float:
        figure.set_dpi(dpi)
        return float(figure.texts[0].get_window_extent(FigureCanvasAgg(figure).get_renderer()).x1 / dpi)

    assert max(map(right, (72, 110, 150, 300, 720))) <= figure.get_figwidth()


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, alignment_eval.commands.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
