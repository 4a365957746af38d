"""Notebook cells of maps and alignments in a real browser: they can be read, and run and load nothing.

Skipped with a reason where there is no browser (fixture ``chromium``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from alignment_eval.figures.names import label_of
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.report.alignment_view import Alignment, Alignments
from alignment_eval.report.map_view import DisplayMaps
from tests.eval.browser import requested
from tests.eval.report.view_pages import HOSTILE

#: They would run or load something if they were markup, at once or when the page is used.
TOKENS = (*HOSTILE, "<img/src=http://127.0.0.1:9/x>", "<style>*{display:none}</style>", "<iframe/srcdoc=x>")
_TABLES = """return [...document.querySelectorAll('table')].map((table) => [...table.rows].map(
    (row) => [...row.cells].map((cell) => cell.textContent)))"""
_CELL = """const cell = document.querySelectorAll('table')[arguments[0]].rows[arguments[1]].cells[arguments[2]];
    const box = cell.getBoundingClientRect(), style = getComputedStyle(cell);
    return [style.backgroundColor, style.color, box.width, box.height]"""


def page_of(*cells: str, style: str = "") -> str:
    """A page with outputs of notebook cells, as a notebook has them: in a page that is not theirs."""
    return (
        f"<!doctype html><html><head><meta charset='utf-8'><title>notebook</title><style>{style}</style>"
        f"</head><body>{''.join(f'<div>{cell}</div>' for cell in cells)}</body></html>"
    )


@pytest.fixture
def open_page(chromium: Any, tmp_path: Path) -> Callable[..., Any]:
    """Open outputs of cells in the browser, which has then loaded the page and said nothing."""

    def opened(*cells: str, style: str = "") -> Any:
        path = tmp_path / "cells.html"
        path.write_text(page_of(*cells, style=style), encoding="utf-8")
        requested(chromium)
        chromium.get_log("browser")
        chromium.get(path.as_uri())
        assert requested(chromium) == {path.as_uri()}
        assert chromium.get_log("browser") == []
        return chromium

    return opened


def test_a_map_and_an_alignment_are_seen(
    open_page: Callable[..., Any], make_sentence: Callable[..., SentenceMaps]
) -> None:
    maps = DisplayMaps.of(make_sentence(0, "a@@ b c </s>", "x y </s>"))
    alignment = Alignment(("a", "b"), ("x", "y"), [(0, 0), (1, 1)], {(0, 0): 0.9, (1, 1): 0.2})
    browser = open_page(maps._repr_html_(), alignment._repr_html_(), style="body {background: #111; color: #eee}")
    of_map, of_alignment = browser.execute_script(_TABLES)
    assert of_map[0] == ["", "ab", "c", "(null)"]
    assert [row[0] for row in of_map[1:]] == ["x", "y"]
    assert of_alignment == [["", "a", "b"], ["x", "90", ""], ["y", "", "20"]]
    strong, weak, none = (browser.execute_script(_CELL, 1, *cell) for cell in ((1, 1), (2, 2), (1, 2)))
    opacity = [float(colour[0].rpartition(",")[2].rstrip(")")) for colour in (strong, weak, none)]
    assert opacity[0] > opacity[1] > opacity[2] == 0
    for _, colour, width, height in (strong, weak, none):
        assert colour == "rgb(238, 238, 238)"  # that of the page, which may be dark
        assert min(width, height) > 4
    assert strong[2] > 8


def test_hostile_words_are_words(open_page: Callable[..., Any], make_sentence: Callable[..., SentenceMaps]) -> None:
    text = " ".join(TOKENS)
    maps = DisplayMaps.of(make_sentence(0, f"{text} </s>", f"{text} </s>"))
    alignment = Alignment(TOKENS, TOKENS, [(0, 0)], {(0, 0): 0.5})
    left_out = Alignment(TOKENS, (), [], status=text)
    cells = [maps._repr_html_(), alignment._repr_html_(), left_out._repr_html_()]
    browser = open_page(*cells, Alignments([alignment, left_out], text)._repr_html_(), "<p id='last'>last</p>")
    tables = browser.execute_script(_TABLES)
    assert len(tables) == 3
    for table in tables[:2]:
        assert table[0][1 : 1 + len(TOKENS)] == [label_of(token) for token in TOKENS]
        assert [row[0] for row in table[1:]] == [label_of(token) for token in TOKENS]
    names = browser.execute_script("return [...document.body.querySelectorAll('*')].map((e) => e.localName)")
    assert set(names) == {"p", "div", "table", "tbody", "tr", "th", "td"}
    attributes = browser.execute_script(
        "return [...document.body.querySelectorAll('*')].flatMap((e) => e.getAttributeNames())"
    )
    assert set(attributes) == {"style", "dir", "scope", "id"}
    assert browser.find_element("css selector", "#last").is_displayed()
