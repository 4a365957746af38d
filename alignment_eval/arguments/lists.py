"""Options whose value is a list: ``--kinds a,b`` and ``--kinds a b`` are one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

HOW = "separated by commas or spaces"


def add_list(
    group: argparse._ActionsContainer,
    option: str,
    help: str,
    *,
    also: Sequence[str] = (),
    metavar: str = "NAME",
    known: Iterable[str] = (),
    default: Sequence[str] | None = None,
    type: Callable[[str], Any] | None = None,
) -> None:
    """Declare an option that takes a list; its parser is a :class:`ListParser`.

    Args:
        group: where to declare it.
        option: its name, with dashes.
        help: what it is; how a list is given is added.
        also: other names of the option.
        metavar: what the help calls one entry.
        known: names that always belong to the list, even if there is a file of that name.
        default: the value where the option is not given.
        type: from the entries, with commas between them, to the value; default: a tuple of the different ones.
    """
    group.add_argument(
        *(option, *also),
        action=_ListAction,
        known=frozenset(known),
        default=default,
        type=type or names,
        metavar=f"{metavar},…",
        help=f"{help}; {HOW}",
    )


def names(text: str) -> tuple[str, ...]:
    """The different entries of ``a,b``, in their order."""
    entries = [entry.strip() for entry in text.split(",")]
    if not all(entries):
        raise argparse.ArgumentTypeError(f"{text!r}: expected names, {HOW}")
    return tuple(dict.fromkeys(entries))


class _ListAction(argparse.Action):
    """Stores a list."""

    def __init__(self, *words: Any, known: frozenset[str], **options: Any) -> None:
        super().__init__(*words, **options)
        self.known = known

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        setattr(namespace, self.dest, values)


class ListParser(argparse.ArgumentParser):
    """A parser that lets the lists of :func:`add_list` be given with spaces, too, and whose errors are one sentence.

    A list ends before the next option, and before a file or directory, which is then an argument of its own.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{**options, "allow_abbrev": False})  # --head is not --heads

    def error(self, message: str) -> NoReturn:
        """Exit with status 2, without the usage, which would fill a screen."""
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ``argparse`` does, once the entries of each list are joined by commas."""
        words = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(self._joined(words), namespace)

    def _joined(self, words: Sequence[str]) -> list[str]:
        joined: list[str] = []
        current: _ListAction | None = None  # the list that the next word may belong to
        for place, word in enumerate(words):
            if word == "--":
                return [*joined, *words[place:]]
            action = self._option_string_actions.get(word)
            if action is not None or word.startswith("-"):
                current = action if isinstance(action, _ListAction) else None
            elif current is not None and joined[-1] not in current.option_strings:
                if word in current.known or not os.path.lexists(word):
                    joined[-1] += f",{word}"
                    continue
                current = None
            joined.append(word)
        return joined
