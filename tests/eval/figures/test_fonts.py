from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import font_manager
from matplotlib.figure import Figure

from alignment_eval.errors import InputError
from alignment_eval.figures.fonts import FONT, font_families, label_of, set_in_disorder, visible
from alignment_eval.figures.saving import save_figure

Writer = Callable[..., Path]
HAN = "漢"


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("Haus", "Haus"),
        ("$x_1$", "$x_1$"),
        ("x" * 30, "x" * 30),
        ("x" * 31, "x" * 29 + "…"),
        ("a\u200bb", r"a\u200bb"),  # zero-width space
        ("\u202eab", r"\u202eab"),  # override: would turn the label around
        ("a\tb\nc", r"a\tb\nc"),
        ("\x00", r"\x00"),
        ("a\u00a0b", r"a\xa0b"),
        ("\u2028", r"\u2028"),
        ("\ue000", r"\ue000"),  # private use: any glyph or none
        ("\U000e0001", r"\U000e0001"),
        ("\ud800", r"\ud800"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # joiners shape letters
        ("\U0001f469\u200d\U0001f4bb", "\U0001f469\u200d\U0001f4bb"),
        ("New York", "New York"),
    ],
)
def test_labels(token: str, label: str) -> None:
    assert label_of(token) == label


@given(st.text())
def test_labels_show_every_character(token: str) -> None:
    label = label_of(token)
    assert len(label) <= 30
    assert all(c in " \u200c\u200d" or unicodedata.category(c)[0] not in "CZ" for c in label)
    assert "\n" not in visible(token)
    if token.isascii() and token.isprintable() and len(token) <= 30:
        assert label == token


@pytest.fixture
def fonts(monkeypatch: pytest.MonkeyPatch) -> Iterator[font_manager.FontManager]:
    """The font manager, which knows one font; what a test adds is forgotten after it."""
    manager = font_manager.fontManager
    monkeypatch.setattr(manager, "ttflist", [entry for entry in manager.ttflist if entry.name == FONT])
    yield manager
    manager._findfont_cached.cache_clear()  # type: ignore[attr-defined]  # private


def test_plain_text_asks_for_one_font(fonts: font_manager.FontManager) -> None:
    assert font_families(["Häuser, σπίτι, дом, שלום, سلام", "a b\u200cc", "two\nlines"]) == (FONT,)


def test_an_installed_font_is_found(fonts: font_manager.FontManager, tmp_path: Path, make_font: Writer) -> None:
    fonts.addfont(make_font(tmp_path / "tiny.ttf", "Tiny", HAN))
    assert font_families(["a"]) == (FONT,)
    assert font_families(["a", HAN]) == (FONT, "Tiny")


def test_a_font_given_comes_first(fonts: font_manager.FontManager, tmp_path: Path, make_font: Writer) -> None:
    path = make_font(tmp_path / "tiny.ttf", "Tiny", HAN)
    assert font_families(["a字", HAN], path) == ("Tiny", FONT)


def test_the_file_given_is_the_one_drawn(fonts: font_manager.FontManager, tmp_path: Path, make_font: Writer) -> None:
    """Although a regular font of its family is installed."""
    fonts.addfont(make_font(tmp_path / "regular.ttf", "Tiny", "a"))
    bold = make_font(tmp_path / "bold.ttf", "Tiny", HAN, "Bold")
    assert font_families([HAN], bold) == ("Tiny", FONT)
    assert Path(str(font_manager.findfont("Tiny"))).name == "bold.ttf"


def test_a_font_that_has_gone_is_left_out(fonts: font_manager.FontManager, tmp_path: Path, make_font: Writer) -> None:
    path = make_font(tmp_path / "tiny.ttf", "Tiny", HAN)
    fonts.addfont(path)
    path.unlink()
    assert font_families([HAN]) == (FONT,)


@pytest.mark.parametrize("content", [None, b"", b"no font"])
def test_no_font(fonts: font_manager.FontManager, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "x.ttf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=r"x\.ttf: cannot read a font"):
        font_families(["a"], path)


def test_fonts_are_drawn(fonts: font_manager.FontManager, tmp_path: Path, make_font: Writer) -> None:
    """What the list of fonts lacks is named, once, but not of SVG."""
    text = HAN * 2 + "a字"
    families = font_families([text], make_font(tmp_path / "tiny.ttf", "Tiny", HAN))
    pictures = {"with": Figure(), "without": Figure()}
    pictures["with"].text(0, 0, text, family=list(families))
    pictures["without"].text(0, 0, text, family=FONT)
    assert save_figure(pictures["with"], tmp_path / "with.png") == "字"
    assert save_figure(pictures["without"], tmp_path / "without.png") == "字" + HAN
    assert (tmp_path / "with.png").read_bytes() != (tmp_path / "without.png").read_bytes()
    assert save_figure(pictures["with"], tmp_path / "with.svg") == ""
    assert f"'Tiny', '{FONT}'" in (tmp_path / "with.svg").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        *(("Häuser, 12", False), ("漢字かな한국어", False), ("дом σπίτι", False), ("e\u0301", False), ("ไทย", False)),
        *(("a שלום", True), ("سلام", True), ("हि", True), ("வணக்கம்", True), ("वक्त", True), ("\u0710", True)),
    ],
)
@pytest.mark.parametrize(("version", "shapes"), [((3, 10, 9), False), ((3, 11, 0), True), ((4, 0, 0), True)])
def test_matplotlib_orders_and_shapes_text_from_3_11_on(
    monkeypatch: pytest.MonkeyPatch, text: str, needed: bool, version: tuple[int, ...], shapes: bool
) -> None:
    monkeypatch.setattr(matplotlib, "__version_info__", version)
    assert set_in_disorder(["a", text]) == (needed and not shapes)
