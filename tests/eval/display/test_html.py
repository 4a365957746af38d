from __future__ import annotations

import re
from xml.etree import ElementTree

from alignment_eval.display.html import heat_table, text_of, text_table


def rows_of(table: str) -> list[list[str]]:
    """The texts of the cells of a table, which must be well-formed."""
    found = ElementTree.fromstring(table)
    return [["".join(cell.itertext()) for cell in row] for row in found.iter("tr")]


def test_markup_and_invisible_characters_of_a_text_are_shown() -> None:
    assert text_of("<b>&") == "&lt;b&gt;&amp;"
    assert "\u200b" not in text_of("a\u200bb")


def test_a_heat_table_has_source_words_as_columns() -> None:
    table = heat_table(["das", "<b>"], ["the"], [[1.0, 0.0]], [["0.93", "<i>"]])
    assert rows_of(table) == [["", "das", "<b>"], ["the", "0.93", "<i>"]]
    assert re.findall(r"background:rgba\([\d,]+,([\d.]+)\)", table) == ["0.60"]  # a cell of nothing has no colour


def test_a_large_heat_table_says_so() -> None:
    words = ["a"] * 51
    text = heat_table(words, words, [[0.0] * 51] * 51, [["0"] * 51] * 51)
    assert "<table" not in text
    assert "51 × 51 words" in text


def test_a_table_of_texts() -> None:
    assert rows_of(text_table(["x", "y"], [["1", "<2>"]])) == [["x", "y"], ["1", "<2>"]]
