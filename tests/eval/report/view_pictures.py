"""What was drawn on Axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def picture_texts(axes: Axes) -> tuple[list[str], list[str], str]:
    """Labels of the columns and rows, and the title."""
    columns = [label.get_text() for label in axes.get_xticklabels()]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    return columns, rows, axes.get_title(loc="left")
