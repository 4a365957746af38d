"""The look of all figures and their files.  ``style.mplstyle`` has type, lines and palette.

Matplotlib is imported when needed.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alignment_eval.errors import UsageError, warn_on_stderr
from alignment_eval.files import write_bytes
from alignment_eval.maps.kinds import KINDS, mixing_kinds

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

SHEET = "alignment_eval.figures.style"
#: Units of a width -> inches.
UNITS = {"cm": 1 / 2.54, "in": 1.0}
#: Widths of one and two columns of a paper, and the height of a page, in inches.
COLUMN, PAGE, HEIGHT = 8.5 * UNITS["cm"], 17.5 * UNITS["cm"], 24 * UNITS["cm"]
ENDINGS = ("png", "svg", "pdf")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: Colour of what is marked: visible on light and on dark cells.
ACCENT = "#D55E00"
#: Colour maps whose lightness rises or falls steadily: of maps, and of shares and scores.
MAP_COLOURS, SCORE_COLOURS = "Blues", "cividis"


@dataclass(frozen=True)
class FigureOptions:
    """What a user sets of a figure: the printed width in inches and the heading; None: the figure's own."""

    width: float | None = None
    title: str | None = None

    def heading_of(self, own: str) -> str:
        """The heading of a figure whose own one is ``own``; empty: none."""
        return own if self.title is None else self.title


#: Options that change nothing.
DEFAULT = FigureOptions()


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this style; Matplotlib's settings are as before afterwards.  ``@styled()`` decorates a function."""
    import matplotlib.style

    with matplotlib.style.context(SHEET):
        yield


def use_fonts_for(texts: Iterable[str]) -> None:
    """Take characters that the fonts of ``rcParams`` lack from other installed ones, until the style ends."""
    import matplotlib
    from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

    missing = {ord(character) for text in texts for character in text if not character.isspace()}
    families = list(matplotlib.rcParams["font.family"])
    own = [(name, findfont(FontProperties(family=[name]))) for name in families]
    for family, path in (*own, *sorted((font.name, font.fname) for font in fontManager.ttflist)):
        if missing and not family.startswith("Last Resort"):  # which has a box for every character
            has = missing & get_font(path).get_charmap().keys()
            families += [family] * (bool(has) and family not in families)
            missing -= has
    matplotlib.rcParams["font.family"] = families


def text_width(texts: Iterable[str], points: float) -> float:
    """The width in inches of the longest of ``texts`` in type of ``points``."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # save_figure names characters without a glyph
        return max((text_to_path.get_text_width_height_descent(text, font, False)[0] for text in texts), default=0) / 72


def new_figure(width: float, height: float, heading: str = "") -> Figure:
    """An empty figure of this size in inches, with a heading; Matplotlib lays it out so that nothing overlaps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    if heading:
        figure.suptitle(heading, x=0.03 / width, ha="left", wrap=True, parse_math=False)
    return figure


def add_legend(figure: Figure, handles: Sequence[Any], names: Sequence[str]) -> Legend:
    """Draw a legend under a figure, in as many columns as fit."""
    across = int((figure.get_figwidth() - 0.1) / (text_width(names, 7) + 0.4))
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


@styled()
def save_figure(figure: Figure, path: str | Path, description: str | None = None) -> None:
    """Write ``figure`` to ``path`` in its own size; the ending decides the format.

    ``description`` goes into its metadata.  The file has no date and no random ids.  In SVG text stays text; in PDF
    fonts are embedded as TrueType.  A warning names characters that no font has.
    """
    ending = figure_ending(path)
    dates = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[ending]
    described = {"Subject" if ending == "pdf" else "Description": description} if description else {}
    content = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(content, format=ending, metadata={**dates, **described})
    write_bytes(path, content.getvalue())
    matches = [re.match(r"Glyph ([0-9]+) .*missing from", str(warning.message)) for warning in caught]
    missing = sorted({chr(int(match[1])) for match in matches if match})
    if missing and ending != "svg":  # its text is drawn by the viewer and with the viewer's fonts
        warn_on_stderr(f"{path}: no installed font has {' '.join(missing)}: drawn as boxes; install one, or write .svg")


def layer_colours(layers: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """A colour for each layer, from dark to light; the lightest part of the colour map, which fades, is left out."""
    from matplotlib import colormaps

    colours = colormaps["viridis"]
    return {layer: colours(0.87 * n / max(1, len(layers) - 1)) for n, layer in enumerate(layers)}


def kind_look(kind: str) -> dict[str, Any]:
    """The colour and marker of a map kind that has mixing ratios: its row's, or the next of the palette."""
    place, row = mixing_kinds().index(kind), KINDS[kind]
    return {"color": row.colour or f"C{place}", "marker": row.marker or MARKERS[place % len(MARKERS)]}
