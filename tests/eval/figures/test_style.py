"""The look of figures and their files: names, fonts, and the same bytes for the same figure."""

import argparse
import unicodedata
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import font_manager
from matplotlib.figure import Figure
from PIL import Image

from alignment_eval.command_line import CommandParser
from alignment_eval.figures.style import (
    ENDINGS,
    FigureOptions,
    add_figure_options,
    figure_options,
    label_of,
    save_figure,
    styled,
    use_fonts_for,
    visible,
)

#: Fonts that Matplotlib brings; a letter that the other has alone, and one that neither has.
FONT, OTHER = "DejaVu Sans", "STIXGeneral"
HOOK, HAN = "\u1d81", "漢"


def figure(text="some text", **style):
    made = Figure(figsize=(2, 1))
    axes = made.add_subplot(label=text)
    axes.plot([0, 1], [1, 0], marker="o", clip_on=True)  # clip paths and markers get ids in SVG
    axes.set_title(text, **style)
    return made


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_figure_same_bytes(tmp_path, monkeypatch, ending):
    before = dict(matplotlib.rcParams)
    save_figure(figure(), tmp_path / f"a.{ending}", "described")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")  # another date
    save_figure(figure(), tmp_path / f"b.{ending}", "described")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    save_figure(figure("other"), tmp_path / f"b.{ending}", "described")
    assert (tmp_path / f"a.{ending}").read_bytes() != (tmp_path / f"b.{ending}").read_bytes()
    assert dict(matplotlib.rcParams) == before


def test_description_text_and_size(tmp_path):
    for ending in ENDINGS:
        save_figure(figure(), tmp_path / f"a.{ending}", "kind:attn_n|layer:1")
    with Image.open(tmp_path / "a.png") as image:
        assert image.text["Description"] == "kind:attn_n|layer:1"  # type: ignore[attr-defined]
        assert image.size == (600, 300)
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<dc:description>kind:attn_n|layer:1</dc:description>" in svg
    assert "<dc:date>" not in svg
    assert ">some text</text>" in svg
    assert 'width="144pt" height="72pt"' in svg
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Subject (kind:attn_n|layer:1)" in pdf
    assert b"/MediaBox [ 0 0 144 72 ]" in pdf
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf  # which some publishers refuse


@pytest.fixture
def fonts(monkeypatch):
    """The files of fonts that were installed after Matplotlib made its list, which has one other font."""
    manager, installed = font_manager.fontManager, []
    monkeypatch.setattr(manager, "ttflist", [entry for entry in manager.ttflist if entry.name == FONT])
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: installed)
    yield installed
    manager._findfont_cached.cache_clear()  # type: ignore[attr-defined]  # private


def test_missing_characters_come_from_installed_fonts_and_are_named_where_there_are_none(fonts, tmp_path, recwarn):
    @styled()
    def families(*texts):
        use_fonts_for(texts)
        return list(matplotlib.rcParams["font.family"])

    assert families("Häuser, σπίτι, дом, שלום, سلام", "two\nlines", HAN) == [FONT]
    (tmp_path / "damaged.ttf").write_text("")
    fonts += [str(tmp_path / "damaged.ttf"), str(Path(matplotlib.get_data_path()) / "fonts/ttf" / f"{OTHER}.ttf")]
    assert families("a") == [FONT]
    assert families("a", HOOK, HAN) == [FONT, OTHER]
    for name in ("a.png", "a.pdf", "a.svg"):
        save_figure(figure(f"a{HOOK}字字", family=[FONT, OTHER]), tmp_path / name)
    assert len(recwarn) == 2  # SVG has the fonts of its viewer
    assert all("no installed font has 字: " in str(warning.message) for warning in recwarn)


def test_joiners_shape_letters():
    assert label_of("می\u200cخواهم") == "می\u200cخواهم"
    assert label_of("a\u200bb") == r"a\u200bb"  # zero-width space


@given(st.text())
def test_labels_show_every_character(token):
    label = label_of(token)
    assert len(label) <= 30
    assert all(c in " \u200c\u200d" or unicodedata.category(c)[0] not in "CZ" for c in label)
    assert "\n" not in visible(token)
    if token.isascii() and token.isprintable() and len(token) <= 30:
        assert label == token


# ---- options


def parsed(*words):
    parser = CommandParser(exit_on_error=False)
    add_figure_options(parser, several=True)
    return parser.parse_args(words)


def test_options():
    assert figure_options(parsed()) == FigureOptions()
    args = parsed("--width", "8.89 CM", "--title", "a b", "--figure-formats", "pdf,svg")
    assert (figure_options(args), args.figure_formats) == (FigureOptions(pytest.approx(3.5), "a b"), ("pdf", "svg"))
    assert parsed("--width", "3.3in").width == pytest.approx(3.3)
    for option, fact in (
        ("--width=8.5", r"8\.5cm"),
        ("--width=1in", "1.5in or more"),
        ("--figure-formats=gif", "png, svg"),
    ):
        with pytest.raises(argparse.ArgumentError, match=fact):
            parsed(option)
