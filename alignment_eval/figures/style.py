"""The look of all figures, its options, and their files; what figures and pages call maps, layers and words.

``style.mplstyle`` has type, lines and palette.  Matplotlib is imported when needed.
"""

from __future__ import annotations

import argparse
import io
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alignment_eval.command_line import add_list, names
from alignment_eval.errors import UsageError, printable, warn_user
from alignment_eval.files import write_bytes
from alignment_eval.maps.sentence import KINDS, mixing_kinds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend

#: Units of a width -> inches.
_UNITS = {"cm": 1 / 2.54, "in": 1.0}
#: Widths of one and two columns of a paper, and the height of a page, in inches.
COLUMN, PAGE, HEIGHT = 8.5 / 2.54, 17.5 / 2.54, 24 / 2.54
#: The narrowest figure, in inches.
_NARROWEST = 1.5
ENDINGS = ("png", "svg", "pdf")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
#: How Matplotlib says that no font has a character.
_NO_GLYPH = r"Glyph ([0-9]+) .*missing from"
#: Colour of what is marked: visible on light and on dark cells.
ACCENT = "#D55E00"


# ---- names


def kind_name(kind: str) -> str:
    """A kind of map in words: ``norms`` for ``attn_n``."""
    return KINDS[kind].label if kind in KINDS else kind


def rule_name(rule: str, null: str) -> str:
    """A rule with its treatment of null."""
    return f"rule {rule}, null {'allowed' if null == 'allow' else 'masked'}"


def place_name(layer: int, head: int | None = None) -> str:
    """``layer 2, head 3`` or ``layer 2``, both counted from 0."""
    return f"layer {layer}" if head is None else f"layer {layer}, head {head}"


def layer_label(layer: int) -> str:
    """``layer 1 (2nd)``: the number that fairseq counts from 0, and the place that papers count from 1."""
    place = layer + 1
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"layer {layer} ({place}{ending})"


def label_of(text: str, longest: int = 30) -> str:
    """``text`` as it is shown (:func:`visible`), shortened if it is long."""
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def visible(text: str) -> str:
    r"""``text`` with characters that are invisible or reorder text written like ``\u200b``, but for joiners."""
    return "".join(c if c in "\u200c\u200d" else printable(c) for c in text)


# ---- what a user sets


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


def add_figure_options(parser: argparse.ArgumentParser, several: bool = False) -> None:
    """Declare ``--width`` and ``--title``, which :func:`figure_options` reads.

    ``several``: also ``--figure-formats``, for a command that writes a directory of figures.
    """
    group = parser.add_argument_group(
        "look of the figures", "letters have 7 points at the printed width, words 5.5 where they would overlap"
    )
    help_ = "printed width, such as 8.5cm or 3.3in (default: 8.5cm, one column; where that is too narrow, 17.5cm)"
    group.add_argument("--width", type=_width, metavar="WIDTH", help=help_)
    group.add_argument("--title", metavar="TEXT", help="heading (default: what is drawn; '': none)")
    if several:
        help_ = f"files of each figure, some of {', '.join(ENDINGS)} (default: png,svg)"
        add_list(group, "--figure-formats", help_, metavar="FORMAT", default=("png", "svg"), type=_formats)


def figure_options(args: argparse.Namespace) -> FigureOptions:
    """The options of :func:`add_figure_options`."""
    return FigureOptions(args.width, args.title)


def _width(text: str) -> float:
    """The value of ``--width``, in inches."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(cm|in)", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number with cm or in, such as 8.5cm or 3.3in")
    inches = float(match[1]) * _UNITS[match[2]]
    if inches < _NARROWEST:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {_NARROWEST:g}in or more")
    return inches


def _formats(text: str) -> tuple[str, ...]:
    endings = names(text)
    if unknown := [ending for ending in endings if ending not in ENDINGS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: expected some of {', '.join(ENDINGS)}")
    return endings


# ---- drawing


@contextmanager
def styled() -> Iterator[None]:
    """Draw in this style; Matplotlib's settings are as before afterwards.  ``@styled()`` decorates a function."""
    import matplotlib.style

    with matplotlib.style.context("alignment_eval.figures.style"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _NO_GLYPH)  # save_figure names the characters, once
        yield


def use_fonts_for(texts: Iterable[str]) -> None:
    """Take characters that the fonts of ``rcParams`` lack from other installed ones, until the style ends."""
    import matplotlib
    from matplotlib.font_manager import FontProperties, findfont, findSystemFonts, fontManager, get_font

    missing = {ord(character) for text in texts for character in text if not character.isspace()}
    families = list(matplotlib.rcParams["font.family"])
    missing -= {code for name in families for code in get_font(findfont(FontProperties(family=[name]))).get_charmap()}
    listed = {font.fname for font in fontManager.ttflist}  # since when others may have been installed
    for path in sorted(listed.union(findSystemFonts())) if missing else ():
        with suppress(OSError, RuntimeError, ValueError):  # a file that is no font, or one of bitmaps
            font = get_font(path)
            has = missing & font.get_charmap().keys()
            if has and not font.family_name.startswith("Last Resort"):  # which has a box for every character
                if path not in listed:
                    fontManager.addfont(path)
                families.append(font.family_name)
                missing -= has
    matplotlib.rcParams["font.family"] = families


def text_width(texts: Iterable[str], points: float) -> float:
    """The width in inches of the longest of ``texts`` in type of ``points``."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=points)
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
    write_bytes(path, [content.getvalue()])
    matches = [re.match(_NO_GLYPH, str(warning.message)) for warning in caught]
    missing = sorted({chr(int(match[1])) for match in matches if match})
    if missing and ending != "svg":  # its text is drawn by the viewer and with the viewer's fonts
        warn_user(f"{path}: no installed font has {' '.join(missing)}: drawn as boxes; install one, or write .svg")


def save_figures(figures: Mapping[str, Figure], directory: Path, formats: Iterable[str]) -> None:
    """Write figures by name into a directory, each in all ``formats``."""
    for ending in formats:
        for name, figure in figures.items():
            save_figure(figure, directory / f"{name}.{ending}")


def layer_colours(layers: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """A colour for each layer, from dark to light; the lightest part of the colour map, which fades, is left out."""
    from matplotlib import colormaps

    colours = colormaps["viridis"]
    return {layer: colours(0.87 * n / max(1, len(layers) - 1)) for n, layer in enumerate(layers)}


def kind_look(kind: str) -> dict[str, Any]:
    """The colour of a map kind that has mixing ratios, its row's or the next of the palette, and its marker."""
    place, row = mixing_kinds().index(kind), KINDS[kind]
    return {"color": row.colour or f"C{place}", "marker": MARKERS[place % len(MARKERS)]}


@styled()
def draw_heatmap(
    table: pd.DataFrame,
    heading: str,
    limits: tuple[float, float] | None = None,
    scale: str = "AER %",
    options: FigureOptions = DEFAULT,
    mark_lowest: bool = True,
) -> Figure:
    """A figure of a table of values in % with the number in each cell; NaN is left empty.

    The index names the rows, the columns and their name what stands below.  ``limits`` are the values of the first and
    the last colour of the ``scale``; None: the lowest and the highest.  ``mark_lowest``: the lowest value has a frame.
    """
    from matplotlib.patches import Rectangle
    from matplotlib.patheffects import withStroke

    values, rows = table.to_numpy(dtype=np.float64), [str(name) for name in table.index]
    low, high = limits or (float(np.nanmin(values)), float(np.nanmax(values)))
    needed = 0.75 + text_width(rows, 7) + (text_width(["88.8"], 7) + 0.06) * values.shape[1]
    width = options.width or (COLUMN if needed <= COLUMN else PAGE)
    figure = new_figure(width, 0.85 + 0.19 * len(rows), options.heading_of(heading))
    axes = figure.add_subplot()
    edges = [np.arange(count + 1) - 0.5 for count in values.shape[::-1]]
    cells = axes.pcolormesh(*edges, values, cmap="cividis", vmin=low, vmax=high)
    axes.invert_yaxis()
    axes.set_xticks(range(values.shape[1]), [str(name) for name in table.columns])
    axes.set_yticks(range(len(rows)), rows)
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    axes.set_xlabel(str(table.columns.name))
    for row, column in np.argwhere(np.isfinite(values)) if needed <= width else ():
        value = values[row, column]
        colour = "black" if value - low > 0.47 * (high - low) else "white"  # as the colour is light or dark
        axes.text(column, row, f"{value:.1f}", ha="center", va="center", color=colour, in_layout=False)
    if mark_lowest:
        row, column = np.unravel_index(np.nanargmin(values), values.shape)
        edge: dict[str, Any] = {"path_effects": [withStroke(linewidth=3, foreground="white")], "clip_on": False}
        corner = float(column) - 0.5, float(row) - 0.5
        axes.add_patch(Rectangle(corner, 1, 1, fill=False, edgecolor=ACCENT, linewidth=1.6, **edge))
    figure.colorbar(cells, label=scale, aspect=25, pad=0.02).outline.set_visible(False)
    return figure
