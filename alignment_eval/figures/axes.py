"""Draws one map on Matplotlib Axes: the caller's or new ones.  Matplotlib is imported only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alignment_eval.figures.fonts import font_families, label_of, text_width
from alignment_eval.figures.panel import LARGEST, SMALLEST, column_places, draw_panel, label_axes
from alignment_eval.figures.sentence import Panel, Picture
from alignment_eval.figures.style import COLUMN, TYPE, styled
from alignment_eval.maps.sentence import SentenceSide

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Inches around a map for titles, axis labels, the colour bar and the figure's margin.
_BESIDE, _ABOVE = 0.75, 0.65


@styled
def draw_map(
    panel: Panel, source: SentenceSide, target: SentenceSide, ax: Axes | None = None, colorbar: str | None = None
) -> Axes:
    """Draw one map with its words and links.

    A figure without a layout gets Matplotlib's constrained layout, so that ``savefig`` does not crop it.

    Args:
        panel: the map, its title and its links.
        source: the columns; a column of no word (-1) gets no marks.
        target: the rows.
        ax: the Axes to draw on; None: a new figure of ``matplotlib.pyplot``, one column of a paper wide or as wide as
            the sentence needs.
        colorbar: the label of a colour bar; None: no colour bar.

    Returns:
        The Axes.

    Raises:
        InputError: as for :class:`~alignment_eval.figures.sentence.Picture`.
    """
    picture = Picture(panel.title, source, target, ((panel,),))
    columns, rows = ([label_of(token) for token in side.tokens] for side in (source, target))
    families = font_families(picture.texts)
    axes = _new_axes(picture, columns, rows, families) if ax is None else ax
    _keep_labels_inside(axes)
    image = draw_panel(axes, picture, panel, _cell_of(axes, len(rows), column_places(source)[-1] + 1))
    label_axes(axes, source, columns, rows, families)
    axes.set_xlabel("source", fontsize=TYPE)
    axes.set_ylabel("target", fontsize=TYPE)
    axes.set_title(panel.title, fontsize=TYPE, loc="left", parse_math=False, family=list(families), wrap=True)
    if colorbar is not None:
        bar = axes.figure.colorbar(image, ax=axes, label=colorbar, aspect=30, pad=0.02)
        bar.outline.set_visible(False)
    return axes


def _new_axes(picture: Picture, columns: list[str], rows: list[str], families: tuple[str, ...]) -> Axes:
    from matplotlib import pyplot

    beside = text_width(rows, TYPE, families) + _BESIDE
    across = column_places(picture.source)[-1] + 1
    width = max(COLUMN, across * SMALLEST + beside)
    cell = min(LARGEST, (width - beside) / across)
    height = cell * len(rows) + text_width(columns, TYPE, families) + _ABOVE
    _, axes = pyplot.subplots(figsize=(width, height), layout="constrained")
    return axes


def _keep_labels_inside(axes: Axes) -> None:
    figure = _figure_of(axes)
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")


def _cell_of(axes: Axes, rows: int, columns: float) -> float:
    """The side of a cell in inches, as the size of its marks: at most :data:`LARGEST`, however few the words."""
    extent = axes.get_window_extent()
    return min(LARGEST, min(extent.width / columns, extent.height / rows) / _figure_of(axes).dpi)


def _figure_of(axes: Axes) -> Figure:
    """The whole figure, also for Axes on a subfigure (Matplotlib 3.9 has no ``get_figure(root=True)``)."""
    return axes.figure.figure
