"""The look of all figures, and their files: type, colours and sizes for print.  Matplotlib is imported when needed.

Figures are made at the width at which they are printed, so that a point of type is a point on paper.
"""

from __future__ import annotations

import functools
import io
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from alignment_eval.errors import UsageError, warn_on_stderr
from alignment_eval.files import write_bytes

if TYPE_CHECKING:
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

Drawing = TypeVar("Drawing", bound=Callable[..., Any])

#: The font of all text; missing characters come from other fonts (:func:`use_fonts_for`).
FONT = "DejaVu Sans"
#: Points of an inch.
POINTS = 72
#: Units of a width -> inches.
UNITS = {"cm": 1 / 2.54, "in": 1.0}
#: Widths of one and two columns of a paper, in inches.
COLUMN, PAGE = 8.5 * UNITS["cm"], 17.5 * UNITS["cm"]
#: Resolution of bitmaps, dots per inch, also within vector files.
_DPI = 300
#: Longest side of a bitmap; a larger one gets a lower resolution (vector formats have no such limit).
_MAX_PIXELS = 12_000
#: Ending of a figure's file -> the metadata key for a description, and the metadata that suppresses dates.
_METADATA: dict[str, tuple[str, dict[str, None]]] = {
    "png": ("Description", {}),
    "svg": ("Description", {"Date": None}),
    "pdf": ("Subject", {"CreationDate": None}),
}
ENDINGS = tuple(_METADATA)
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
    """The options of a figure that a user sets.

    Attributes:
        width: the printed width in inches; None: one column, or two where one is too narrow.
        title: the heading; None: the figure's own; empty: none.
    """

    width: float | None = None
    title: str | None = None

    def heading_of(self, own: str) -> str:
        """The heading of a figure whose own one is ``own``; empty: none."""
        return own if self.title is None else self.title

    def width_for(self, needed: float) -> float:
        """The width in inches of a figure that needs ``needed``."""
        return self.width or (COLUMN if needed <= COLUMN else PAGE)


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


def use_fonts_for(texts: Iterable[str]) -> None:
    """Take characters that :data:`FONT` lacks from other installed fonts, until the styled function returns."""
    import matplotlib
    from matplotlib import font_manager

    missing = {ord(character) for text in texts for character in text if not character.isspace()}
    families = []
    installed = sorted((font.name, font.fname) for font in font_manager.fontManager.ttflist)
    for family, path in [(FONT, font_manager.findfont(FONT)), *installed]:
        # Last Resort has a box for every character
        if missing and not family.startswith("Last Resort"):
            has = missing & font_manager.get_font(path).get_charmap().keys()
            families += [family] if has else []
            missing -= has
    matplotlib.rcParams["font.family"] = list(dict.fromkeys((FONT, *families)))


def text_width(texts: Iterable[str]) -> float:
    """The width in inches of the longest of ``texts``, in a styled function."""
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.font_manager import FontProperties

    renderer: Any = RendererAgg(1, 1, POINTS)  # type: ignore[no-untyped-call]
    font = FontProperties(size=TYPE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # save_figure names characters without a glyph
        return max((renderer.get_text_width_height_descent(text, font, False)[0] for text in texts), default=0) / POINTS


def wrapped(text: str, width: float) -> str:
    """``text`` with line breaks at spaces, so that it is at most ``width`` inches wide where its words are."""
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if lines[-1] and text_width([longer]) > width:
            lines.append(word)
        else:
            lines[-1] = longer
    return "\n".join(lines)


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, laid out so that nothing is cut off or overlaps."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def add_heading(figure: Figure, heading: str) -> None:
    """Write a heading above a figure of :func:`new_figure`; an empty one is not drawn."""
    if heading:
        width = figure.get_figwidth()
        figure.suptitle(wrapped(heading, width - 0.1), x=0.03 / width, ha="left", fontsize=TYPE)


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> Legend:
    """Draw a legend under a figure of :func:`new_figure`, in as many columns as fit."""
    across = int((figure.get_figwidth() - 0.1) / (text_width(names) + 0.5))
    legend = figure.legend(handles, names, loc="outside lower left", ncols=max(1, min(across, len(names))))
    for text in legend.get_texts():
        text.set_parse_math(False)
    return legend


def figure_ending(path: str | Path) -> str:
    """The ending of ``path`` in lower case, without its dot."""
    ending = Path(path).suffix.lower().lstrip(".")
    if ending not in ENDINGS:
        raise UsageError(f"{path}: the ending {ending!r} is not one of .{', .'.join(ENDINGS)}; choose one of them")
    return ending


@styled
def save_figure(figure: Figure, path: str | Path, description: str | None = None) -> None:
    """Write ``figure`` to ``path`` in its own size; the ending decides the format.

    The file has no date and no random ids.  In SVG text stays text; in PDF fonts are embedded as TrueType.  A warning
    names characters that no font has.

    An existing file is replaced.  ``description`` is stored in the file's metadata.
    """
    ending = figure_ending(path)
    key, metadata = _METADATA[ending]
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(
            content,
            format=ending,
            dpi=min(_DPI, _MAX_PIXELS / max(figure.get_size_inches())),
            metadata={**metadata, **({key: description} if description else {})},
        )
    write_bytes(path, content.getvalue())
    matches = [re.match(r"Glyph ([0-9]+) .*missing from", str(warning.message)) for warning in caught]
    missing = sorted({chr(int(match[1])) for match in matches if match})
    if missing and ending != "svg":  # its text is drawn by the viewer and with the viewer's fonts
        warn_on_stderr(f"{path}: no installed font has {' '.join(missing)}: drawn as boxes; install one, or write .svg")


def layer_colours(layers: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """A colour for each layer, from dark to light; the lightest part of the colour map, which fades, is left out."""
    from matplotlib import colormaps

    colours = colormaps[LAYER_COLOURS]
    return {layer: colours(0.87 * n / max(1, len(layers) - 1)) for n, layer in enumerate(layers)}


def contrasting(colours: Colormap, share: float) -> str:
    """Black or white, whichever is readable on the colour at ``share`` of a colour map (contrast as in WCAG 2)."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colours(share)[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
