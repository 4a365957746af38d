"""HTML tables for maps and links: no script, no style sheet, nothing that is loaded from elsewhere.

Colours are transparent and text has the colour of the page, so that a table is readable on light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from alignment_eval.figures.names import label_of, visible

#: Colour (red, green, blue) and opacity of a cell of the largest value.
_COLOUR, _STRONGEST = "66,133,244", 0.6
#: Colour of a word that is marked.
_MARK = "219,68,55"
_TABLE = "border-collapse:collapse;width:auto;font-size:85%;color:inherit;background:none"
_CELL = "padding:2px 4px;border:1px solid rgba(128,128,128,.3);color:inherit"
#: Larger tables would make a notebook slow.
_MOST_CELLS = 2500


def text_of(text: str) -> str:
    """``text`` as HTML: markup is escaped, and invisible characters are shown as escapes."""
    return escape(visible(text))


def heat_table(
    columns: Sequence[str],
    rows: Sequence[str],
    strengths: Sequence[Sequence[float]],
    texts: Sequence[Sequence[str]],
    marks: tuple[Sequence[float], Sequence[float]] | None = None,
) -> str:
    """A table with source words as columns and target words as rows, or a note that it would be too large.

    ``strengths`` are the opacities of the cells' colour, from 0 to 1; they and ``texts`` are [rows, columns].
    ``marks`` are those of the words of columns and of rows, which have another colour.
    """
    of_columns, of_rows = marks or ([0.0] * len(columns), [0.0] * len(rows))
    if len(columns) * len(rows) > _MOST_CELLS:
        size = f"{len(rows)} × {len(columns)}"
        return f"<p>A table of {size} words is too large for a notebook cell; use plot() or to_frame().</p>"
    heads = "".join(
        _tag("th", escape(label_of(name)), f"writing-mode:vertical-rl{_shade(mark, _MARK)}", "col")
        for name, mark in zip(columns, of_columns)
    )
    lines = [f"<tr><td></td>{heads}</tr>"]
    for name, mark, values, cells in zip(rows, of_rows, strengths, texts):
        first = _tag("th", escape(label_of(name)), f"text-align:right{_shade(mark, _MARK)}", "row")
        lines.append(f"<tr>{first}{''.join(_heat_cell(value, text) for value, text in zip(values, cells))}</tr>")
    return _table(lines)


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts with column headings."""
    lines = [f"<tr>{''.join(_tag('th', text_of(head), 'text-align:left', 'col') for head in heads)}</tr>"]
    lines += [f"<tr>{''.join(_tag('td', text_of(cell), 'text-align:left') for cell in row)}</tr>" for row in rows]
    return _table(lines)


def _table(lines: Sequence[str]) -> str:
    return f'<div style="overflow-x:auto"><table style="{_TABLE}">{"".join(lines)}</table></div>'


def _heat_cell(strength: float, text: str) -> str:
    return _tag("td", escape(text), f"text-align:center{_shade(strength, _COLOUR)}")


def _shade(strength: float, colour: str) -> str:
    return f";background:rgba({colour},{_STRONGEST * strength:.2f})" if strength > 0 else ""


def _tag(name: str, content: str, style: str, scope: str = "") -> str:
    scoped = f' scope="{scope}"' if scope else ""
    return f'<{name}{scoped} dir="auto" style="{_CELL};font-weight:normal;{style}">{content}</{name}>'
