"""The options of how figures look, the same for every command that draws."""

from __future__ import annotations

import argparse
import re
import sys
from typing import TYPE_CHECKING, NamedTuple

from alignment_eval.arguments.lists import add_list, names
from alignment_eval.arguments.numbers import positive_integer
from alignment_eval.errors import warn_on_stderr
from alignment_eval.figures.saving import ENDINGS
from alignment_eval.figures.style import COLUMN, DPI, PAGE, UNITS, FigureOptions

if TYPE_CHECKING:
    from alignment_eval.figures.page import Layout

#: Formats of the figures of a directory, unless others are named.
DEFAULT_FORMATS = ("png", "svg")
_WIDTH = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(cm|in)")
#: The narrowest and the widest figure, in inches.
_NARROWEST, _WIDEST = 1.5, 100.0


class Width(NamedTuple):
    """A value of ``--width``, and the unit that it was given in."""

    inches: float
    unit: str


def add_figure_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare ``--width``, ``--title``, ``--no-heading``, ``--dpi`` and ``--colormap``; read by :func:`figure_options`.

    Returns:
        The group, for further options.
    """
    group = parser.add_argument_group("look of the figures", "their type has at least 7 points at the printed width")
    group.add_argument(
        "--width",
        type=width_of,
        metavar="WIDTH",
        help="printed width, such as 8.5cm or 3.3in (default: 8.5cm, one column; where that is too narrow, 17.5cm)",
    )
    group.add_argument("--title", metavar="TEXT", help="heading (default: what is drawn)")
    group.add_argument("--no-heading", action="store_true", help="no heading, as for a paper that has a caption")
    group.add_argument(
        "--dpi", type=positive_integer, default=DPI, metavar="N", help=f"resolution of PNG (default: {DPI})"
    )
    group.add_argument(
        "--colormap",
        type=colormap_name,
        metavar="NAME",
        help="colours of Matplotlib, such as Greys (default: by figure)",
    )
    return group


def add_figure_formats(group: argparse._ActionsContainer) -> None:
    """Declare ``--figure-formats``, for commands that write a directory of figures."""
    default = ",".join(DEFAULT_FORMATS)
    help_ = f"files of each figure, some of {', '.join(ENDINGS)} (default: {default})"
    add_list(group, "--figure-formats", help_, metavar="FORMAT", default=DEFAULT_FORMATS, type=_formats)


def figure_options(args: argparse.Namespace) -> FigureOptions:
    """The options of :func:`add_figure_options`."""
    width, unit = args.width or (None, FigureOptions.unit)
    return FigureOptions(width, args.title, not args.no_heading, args.dpi, args.colormap, unit)


def width_of(text: str) -> Width:
    """The value of ``--width``."""
    match = _WIDTH.fullmatch(text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number with cm or in, such as 8.5cm or 3.3in")
    inches = float(match[1]) * UNITS[match[2]]
    if not _NARROWEST <= inches <= _WIDEST:
        least, most = (f"{limit / UNITS[match[2]]:.3g}{match[2]}" for limit in (_NARROWEST, _WIDEST))
        raise argparse.ArgumentTypeError(f"{text!r}: expected a width from {least} to {most}")
    return Width(inches, match[2])


def colormap_name(text: str) -> str:
    """The value of ``--colormap``."""
    from matplotlib import colormaps

    if text not in colormaps:
        raise argparse.ArgumentTypeError(f"{text!r}: no colour map of Matplotlib; choose one such as Greys")
    return text


def _formats(text: str) -> tuple[str, ...]:
    found = names(text)
    for name in found:
        if name not in ENDINGS:
            raise argparse.ArgumentTypeError(f"{name!r}: expected some of {', '.join(ENDINGS)}")
    return found


def warn_of_width(placed: Layout, output: str, look: FigureOptions) -> None:
    """Say if words are left out, or if the picture has become wider than a column so that they can be read."""
    needed, page = look.shown(placed.needed), look.shown(PAGE)
    if not placed.labelled:
        warn_on_stderr(f"{output}: the words do not fit at this width and are left out; they need --width {needed}")
    elif look.width is None and placed.width > PAGE:
        warn_on_stderr(f"{output}: {needed} wide, so that the words can be read; --width {page} leaves them out")
    elif look.width is None and placed.width > COLUMN and needed != page:
        print(f"{output}: {page} wide, two columns; the words fit from --width {needed} on", file=sys.stderr)
