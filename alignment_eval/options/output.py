"""The options of what a command writes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable


def add_output(
    group: argparse._ActionsContainer,
    help: str,
    *,
    metavar: str = "FILE",
    required: bool = False,
    standard: bool = False,
    also: tuple[str, ...] = (),
) -> None:
    """Declare ``-o``, ``--output`` and ``--overwrite``.

    Args:
        group: where to declare them.
        help: what is written.
        metavar: what the help calls it.
        required: whether it must be given.
        standard: whether it is the standard output where it is not given.
        also: other names that the option once had.
    """
    default = "-" if standard else None
    group.add_argument(
        *("-o", "--output", *also),
        dest="output",
        required=required,
        default=default,
        metavar=metavar,
        help=f"{help} (default: -, the standard output)" if standard else help,
    )
    add_overwrite(group)


def add_overwrite(group: argparse._ActionsContainer) -> None:
    """Declare ``--overwrite`` alone."""
    group.add_argument("--overwrite", action="store_true", help="replace output that exists")


def add_format(group: argparse._ActionsContainer, formats: Iterable[str]) -> None:
    """Declare ``--format``, of what is printed; a person reads ``text``."""
    group.add_argument("--format", choices=tuple(formats), default="text", help="of the output (default: text)")
