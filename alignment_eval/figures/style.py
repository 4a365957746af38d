"""The look of all figures: type, colours and sizes for print.  Matplotlib is imported only when needed.

Figures are made at the width at which they are printed, so that a point of type is a point on paper.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from alignment_eval.figures.fonts import FONT

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

Drawing = TypeVar("Drawing", bound=Callable[..., Any])

#: Units of a width -> inches.
UNITS = {"cm": 1 / 2.54, "in": 1.0}
#: Widths of one and two columns of a paper, in inches.
COLUMN, PAGE = 8.5 * UNITS["cm"], 17.5 * UNITS["cm"]
#: Resolution of bitmaps, dots per inch.
DPI = 300
#: Sizes of type in points: all text, and headings.  None is smaller than the first.
TYPE, HEADING = 7.0, 8.0
#: Colours of Okabe and Ito (2008), which colour-blind people can tell apart; dark and light ones alternate, so that
#: neighbours also differ in grey.  Series differ in marker or line, too.
COLOURS = ("#000000", "#E69F00", "#0072B2", "#56B4E9", "#D55E00", "#CC79A7", "#009E73")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Colour of what is marked: visible on light and on dark cells.
ACCENT = "#D55E00"
#: Colour maps whose lightness rises or falls steadily: of maps, of shares and scores, and of a series of layers.
MAP_COLOURS, SCORE_COLOURS, LAYER_COLOURS = "Blues", "cividis", "viridis"

#: Matplotlib's settings.
_SETTINGS: dict[Any, Any] = {
    "font.family": FONT,
    "font.size": TYPE,
    "text.hinting": "none",  # else text is up to 7 % wider or narrower, by the resolution, than it was measured
    "axes.titlesize": HEADING,
    "axes.titlelocation": "left",
    "axes.labelsize": TYPE,
    "xtick.labelsize": TYPE,
    "ytick.labelsize": TYPE,
    "legend.fontsize": TYPE,
    "figure.titlesize": HEADING,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "axes.titlepad": 4,
    "axes.labelpad": 2,
    "axes.axisbelow": True,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "legend.handlelength": 2.2,
    "legend.columnspacing": 1.2,
    "figure.constrained_layout.h_pad": 0.03,
    "figure.constrained_layout.w_pad": 0.03,
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "align-eval",
    "pdf.fonttype": 42,  # TrueType: text can be searched, and publishers accept it
}


@dataclass(frozen=True)
class FigureOptions:
    """What a user may say of a figure.

    Attributes:
        width: the printed width in inches; None: one column, or two where one is too narrow.
        title: the heading; None: the figure's own.
        heading: whether there is a heading.
        dpi: dots per inch of bitmaps.
        colormap: a colour map of Matplotlib; None: the figure's own.
        unit: one of :data:`UNITS`, in which the user is told of widths.
    """

    width: float | None = None
    title: str | None = None
    heading: bool = True
    dpi: int = DPI
    colormap: str | None = None
    unit: str = "cm"

    def heading_of(self, own: str) -> str:
        """The heading of a figure whose own one is ``own``; empty: none."""
        return (own if self.title is None else self.title) if self.heading else ""

    def width_for(self, needed: float) -> float:
        """The width in inches of a figure that needs ``needed``."""
        return self.width or (COLUMN if needed <= COLUMN else PAGE)

    def shown(self, inches: float) -> str:
        """A width as ``--width`` takes it, in the user's unit, rounded up so that what needs it fits."""
        return f"{math.ceil(10 * inches / UNITS[self.unit] - 1e-6) / 10:g}{self.unit}"


#: Options that change nothing.
DEFAULT = FigureOptions()


def styled(draw: Drawing) -> Drawing:
    """Let a function draw or save in this style; Matplotlib's settings are as before when it returns."""

    @functools.wraps(draw)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        import matplotlib

        with matplotlib.rc_context(_SETTINGS):
            return draw(*args, **kwargs)

    return wrapper  # type: ignore[return-value]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, laid out so that nothing is cut off or overlaps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def layer_colours(layers: Sequence[int], colormap: str | None = None) -> dict[int, tuple[float, ...]]:
    """A colour for each layer, from dark to light; the lightest part of the colour map, which fades, is left out."""
    from matplotlib import colormaps

    colours = colormaps[colormap or LAYER_COLOURS]
    return {layer: colours(0.87 * n / max(1, len(layers) - 1)) for n, layer in enumerate(layers)}


def contrasting(colours: Colormap, share: float) -> str:
    """Black or white, whichever is readable on the colour at ``share`` of a colour map (contrast as in WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colours(share)[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
