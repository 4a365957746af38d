"""What was drawn on Axes."""

from __future__ import annotations

import io
import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def picture_texts(axes: Axes) -> tuple[list[str], list[str], str]:
    """Labels of the columns and rows, and the title."""
    columns = [label.get_text() for label in axes.get_xticklabels()]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    return columns, rows, axes.get_title(loc="left")


def check_nothing_is_cut_off(axes: Axes) -> None:
    """Save the figure plainly; every text of ``axes`` then lies within it."""
    figure = axes.figure.figure
    figure.savefig(io.BytesIO(), format="png")
    labels = [*axes.get_xticklabels(), *axes.get_yticklabels()]
    assert labels
    texts = [*labels, axes._left_title, axes.xaxis.label, axes.yaxis.label]  # type: ignore[attr-defined]
    for text in filter(lambda text: text.get_text(), texts):
        box = text.get_window_extent()
        assert box.x0 >= -0.5, text.get_text()
        assert box.y0 >= -0.5, text.get_text()
        assert box.x1 <= figure.bbox.x1 + 0.5, text.get_text()
        assert box.y1 <= figure.bbox.y1 + 0.5, text.get_text()


def check_labels_are_apart(axes: Axes) -> None:
    """Check, after :func:`check_nothing_is_cut_off`, that no two labels of a side overlap."""
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels]
        assert not any(one.shrunk(0.99, 0.99).overlaps(other) for one, other in itertools.pairwise(boxes))
