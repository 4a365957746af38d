from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.colors import to_rgb

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.figures.saving import save_figure
from alignment_eval.figures.sentence import (
    NULL_LABEL,
    Panel,
    Picture,
    cells,
    draw,
    panel_of,
    sides_of,
)
from alignment_eval.links.table import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from tests.facts import facts

Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]
HAN = "漢"

words = st.lists(st.integers(-1, 4), min_size=1, max_size=6).map(
    lambda numbers: SentenceSide(("x",) * len(numbers), np.array(numbers, dtype=np.int32))
)
links = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


def plain(tokens: str) -> SentenceSide:
    return SentenceSide(tuple(tokens.split()), np.arange(len(tokens.split()), dtype=np.int32))


def picture(source: str = "a b", target: str = "x y z", gold: GoldSentence | None = None, **panel: Any) -> Picture:
    """One panel, of 0.0, 0.1, … unless values are given."""
    sides = plain(source), plain(target)
    shape = len(sides[1].tokens), len(sides[0].tokens)
    panel = {"title": "attn_w", "values": np.arange(shape[0] * shape[1]).reshape(shape) / 10, **panel}
    return Picture("title", *sides, ((Panel(**panel),),), gold)


def texts(path: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]*)</text>", path.read_text(encoding="utf-8"))


# --- rows and columns


@given(links=links, source=words, target=words)
def test_cells_against_a_slow_loop(
    links: frozenset[tuple[int, int]], source: SentenceSide, target: SentenceSide
) -> None:
    slow = {
        (column, row)
        for row, j in enumerate(target.words.tolist())
        for column, i in enumerate(source.words.tolist())
        if (i, j) in links
    }
    found = cells(links, source, target)
    assert set(found) == slow
    assert len(found) == len(slow)


def test_sides_of_words(make_sentence: Factory) -> None:
    source, target = sides_of(make_sentence(), "word")
    assert source.tokens == ("ab", "c", ".", NULL_LABEL)
    assert source.words.tolist() == [0, 1, 2, -1]
    assert target.tokens == ("x", "yz", ".")
    assert target.words.tolist() == [0, 1, 2]


def test_sides_of_tokens(make_sentence: Factory) -> None:
    """The target's special tokens have no rows of their own; those of the source are columns."""
    source, target = sides_of(make_sentence(source="<de> a@@ b c </s>", target="<en> x y@@ z </s>"), "token")
    assert source.tokens == ("<de>", "a@@", "b", "c", "</s>")
    assert source.words.tolist() == [-1, 0, 0, 1, -1]
    assert target.tokens == ("x", "y@@", "z")
    assert target.words.tolist() == [0, 1, 1]


@pytest.mark.parametrize("setting", ["awo", "awi"])
@pytest.mark.parametrize("head", [0, 2, None])
@pytest.mark.parametrize("level", ["word", "token"])
def test_values_against_a_slow_loop(make_sentence: Factory, setting: str, head: int | None, level: str) -> None:
    sentence = make_sentence(source="<de> a@@ b c . </s>", target="x y@@ z@@ w . </s>")
    panel = panel_of(sentence, ExtractionOptions("attn_w", 1, head, setting), level, "title")
    maps = sentence.head_maps("attn_w")[1].astype(np.float64)
    map_ = maps.mean(axis=0) if head is None else maps[head]
    source, target = sides_of(sentence, level)
    later = {"awo": 0, "awi": 1}[setting]
    for row in range(len(target.tokens)):
        for column in range(len(source.tokens)):
            if level == "token":
                expected = map_[row + later, column]
            else:
                steps = [t + later for t, word in enumerate(sentence.target.words) if word == row]
                pieces = [s for s, word in enumerate(sentence.source.words) if word == source.words[column]]
                expected = sum(map_[t, s] for t in steps for s in pieces) / len(steps)
            assert panel.values[row, column] == pytest.approx(expected, rel=1e-6)
    assert panel.values.shape == (len(target.tokens), len(source.tokens))


@given(number=st.integers(0, 30), setting=st.sampled_from(["awo", "awi"]), level=st.sampled_from(["word", "token"]))
def test_predicted_links_are_those_of_extract(make_sentence: Factory, number: int, setting: str, level: str) -> None:
    sentence = make_sentence(number)
    for rule, null in (("kobayashi2020", "allow"), ("kobayashi2020", "mask"), ("threshold=0.3", None)):
        options = ExtractionOptions("attn_n", 0, None, setting, rule, null)
        assert panel_of(sentence, options, level, "").predicted == extract(sentence, options)


def test_given_links_replace_those_of_the_rule(make_sentence: Factory) -> None:
    given_ = frozenset({(0, 2)})
    assert panel_of(make_sentence(), ExtractionOptions("attn_w", 0), "word", "", given_).predicted == given_


def test_unknown_level(make_sentence: Factory) -> None:
    expected = facts("unknown level 'byte' … one of word, token")
    with pytest.raises(UsageError, match=expected):
        sides_of(make_sentence(), "byte")
    with pytest.raises(UsageError, match=expected):
        panel_of(make_sentence(), ExtractionOptions("attn_w", 0), "byte", "")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.zeros((2, 3)), "panel 'attn_w' … shape (2, 3) … (3, 2)"),
        (np.full((3, 2), np.nan), "panel 'attn_w' … NaN, infinite or negative values … 0 or more"),
        (np.full((3, 2), np.inf), "NaN, infinite or negative"),
        (np.full((3, 2), -1.0), "NaN, infinite or negative"),
    ],
)
def test_bad_values(values: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=facts(message)):
        picture(values=values)


def test_nothing_to_draw() -> None:
    with pytest.raises(InputError, match=facts("a map of 0×2 cells")):
        Picture("", plain("a b"), plain(""), ((Panel("", np.zeros((0, 2))),),))
    with pytest.raises(InputError, match="a map of 1×1 cells"):
        Picture("", plain("a"), plain("x"), ())


def test_mathematics_is_not_parsed(tmp_path: Path) -> None:
    tokens = r"$x_1$ $\frac{1 a_b^c $ $$ \alpha"
    shown = Picture("$y_2$", plain(tokens), plain("$z^3$"), ((Panel("attn_w", np.ones((1, 6))),),))
    save_figure(draw(shown), tmp_path / "a.svg")
    assert {*tokens.split(), "$y_2$", "$z^3$"} <= set(texts(tmp_path / "a.svg"))
    save_figure(draw(shown), tmp_path / "a.png")  # and broken mathematics is drawn


def test_texts_are_all_that_may_need_a_font() -> None:
    assert picture("a b", "x").texts == ("title", "a", "b", "x")


# --- what is drawn


def test_marks_values_and_labels() -> None:
    gold = GoldSentence(frozenset({(0, 0), (1, 2)}), frozenset({(1, 1), (0, 0)}))
    figure = draw(picture(gold=gold, predicted=frozenset({(0, 0), (0, 2)})))
    axes = figure.axes[0]
    marks = {line.get_gid(): list(zip(*line.get_data())) for line in axes.lines}
    assert marks == {"sure-0-0": [(0, 0), (1, 2)], "possible-0-0": [(1, 1)], "predicted-0-0": [(0, 0), (0, 2)]}
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), [[0, 0.1], [0.2, 0.3], [0.4, 0.5]])
    assert image.get_clim() == (0, 0.5)
    assert axes.get_title(loc="left") == "attn_w\nmax 0.5"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "b"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["x", "y", "z"]
    assert axes.get_ylim() == (2.5, -0.5)  # the first word on top
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["gold, sure", "gold, possible only", "predicted"]


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


def test_a_map_of_zeros_is_white() -> None:
    (image,) = draw(picture(values=np.zeros((3, 2)))).axes[0].images
    colours = {tuple(colour) for colour in image.to_rgba(image.get_array(), bytes=True).reshape(-1, 4).tolist()}
    assert colours == {(247, 251, 255, 255)}


def test_grid() -> None:
    """Panels stand where they are named; words beside the first column and under the last row."""
    panels = tuple(tuple(Panel(f"{r}{c}", np.full((3, 2), 1.0 + r + c)) for c in range(3)) for r in range(2))
    figure = draw(Picture("", plain("a b"), plain("x y z"), panels))
    assert len(figure.axes) == 6  # no colour bars: the maximum is in the title
    places = {}
    for axes in figure.axes:
        name, maximum = axes.get_title(loc="left").split("\n")
        places[name] = axes.get_position()
        assert maximum == f"max {1 + int(name[0]) + int(name[1])}"
        assert [label.get_text() for label in axes.get_xticklabels()] == (["a", "b"] if name[0] == "1" else [])
        assert [label.get_text() for label in axes.get_yticklabels()] == (["x", "y", "z"] if name[1] == "0" else [])
    assert places["00"].y0 > places["10"].y1
    assert places["00"].x1 < places["01"].x0 < places["02"].x0
    assert all(box.x0 >= 0 and box.x1 <= 1 and box.y0 >= -1e-9 and box.y1 <= 1 for box in places.values())


def test_large_panels_beside_each_other_have_labels_of_their_own() -> None:
    long = "x yy a-rather-long-word"
    figure = draw(Picture("", plain("a b"), plain(long), ((Panel("0", np.ones((3, 2))), Panel("1", np.ones((3, 2)))),)))
    left, bar, right = figure.axes[:3]
    for axes in (left, right):
        assert [label.get_text() for label in axes.get_yticklabels()] == long.split()
        assert axes.get_xlabel() == "source"
    assert [axes.get_ylabel() for axes in (left, right)] == ["target", ""]
    assert right.get_tightbbox().x0 > bar.get_tightbbox().x1


@pytest.mark.parametrize("size", [1, 12, 80])
def test_labels_keep_a_readable_size_and_do_not_overlap(size: int) -> None:
    tokens = " ".join(["wort"] * size)
    figure = draw(picture(tokens, tokens, values=np.ones((size, size))))
    axes = figure.axes[0]
    font = axes.get_yticklabels()[0].get_fontsize()
    pitch = axes.get_position().height * figure.get_size_inches()[1] * 72 / size
    assert 6 <= font <= 10
    assert font < pitch


def test_matplotlib_is_imported_only_to_draw() -> None:
    code = "import sys, alignment_eval.commands.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
