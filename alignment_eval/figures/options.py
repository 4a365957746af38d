"""The options of how figures look, the same for every command that draws."""

from __future__ import annotations

import argparse
import re

from alignment_eval.cli import add_list, names
from alignment_eval.figures.style import ENDINGS, UNITS, FigureOptions

_WIDTH = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(cm|in)")
#: The narrowest figure, in inches.
_NARROWEST = 1.5


def add_figure_options(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Declare ``--width`` and ``--title``, which :func:`figure_options` reads; their group, for further options."""
    group = parser.add_argument_group(
        "look of the figures", "type has 7 points at the printed width; words have 5.5 where more would overlap"
    )
    group.add_argument(
        "--width",
        type=width_of,
        metavar="WIDTH",
        help="printed width, such as 8.5cm or 3.3in (default: 8.5cm, one column; where that is too narrow, 17.5cm)",
    )
    group.add_argument("--title", metavar="TEXT", help="heading (default: what is drawn; '': none)")
    return group


def add_figure_formats(group: argparse._ActionsContainer) -> None:
    """Declare ``--figure-formats``, for commands that write a directory of figures."""
    help_ = f"files of each figure, some of {', '.join(ENDINGS)} (default: png,svg)"
    add_list(group, "--figure-formats", help_, metavar="FORMAT", default=("png", "svg"), type=_formats)


def figure_options(args: argparse.Namespace) -> FigureOptions:
    """The options of :func:`add_figure_options`."""
    return FigureOptions(args.width, args.title)


def width_of(text: str) -> float:
    """The value of ``--width``, in inches."""
    match = _WIDTH.fullmatch(text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number with cm or in, such as 8.5cm or 3.3in")
    inches = float(match[1]) * UNITS[match[2]]
    if inches < _NARROWEST:
        raise argparse.ArgumentTypeError(f"{text!r}: expected {_NARROWEST:g}in or more")
    return inches


def _formats(text: str) -> tuple[str, ...]:
    endings = names(text)
    if unknown := [ending for ending in endings if ending not in ENDINGS]:
        raise argparse.ArgumentTypeError(f"{unknown[0]!r}: expected some of {', '.join(ENDINGS)}")
    return endings
