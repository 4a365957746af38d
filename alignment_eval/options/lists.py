"""The parser of every command, and options whose value is a list: ``--kinds a,b``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

HOW = "separated by commas"


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one sentence, and whose description and examples keep their lines."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **options)

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, without the usage, which would fill a screen."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_list(
    group: argparse._ActionsContainer,
    option: str,
    help: str,
    *,
    also: Sequence[str] = (),
    metavar: str = "NAME",
    default: Sequence[str] | None = None,
    type: Callable[[str], Any] | None = None,
) -> None:
    """Declare an option that takes a list.

    Args:
        group: where to declare it.
        option: its name, with dashes.
        help: what it is; how a list is given is added.
        also: other names of the option.
        metavar: what the help calls an entry.
        default: the value where the option is not given.
        type: from the text to the value; default: a tuple of the different entries.
    """
    group.add_argument(
        *(option, *also), default=default, type=type or names, metavar=f"{metavar},…", help=f"{help}; {HOW}"
    )


def names(text: str) -> tuple[str, ...]:
    """The different entries of ``a,b``, in their order."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names, {HOW}")
    return tuple(dict.fromkeys(entries))
