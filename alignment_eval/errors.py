"""The one family of errors that bad input raises, and warnings."""

from __future__ import annotations

import re
import reprlib
import sys
from typing import Any

#: The most characters of a foreign value in a message.
_SHOWN = 80
#: Longer words than any name of a file, which only a value can be; and the longest message.
_LONG_WORD, _LONGEST = re.compile(r"\S{256,}"), 2000
_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 2 * _SHOWN


class InputError(ValueError):
    """Bad input: a file, an option or a model that cannot be used as given.

    The text is one sentence in the order *where* (``file:line:``), *what was found*,
    *what was expected*, *what to do*.  ``align-eval`` prints it and exits with status 1.  It goes through
    :func:`one_line`, whichever files and arguments its text is from.
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class UsageError(InputError):
    """Options that contradict each other or name nothing known; ``align-eval`` exits with status 2."""


def shown(value: Any) -> str:
    """A value from a file, for a message: quoted, control characters escaped, cut to 80 characters."""
    text = printable(_REPR.repr(value))  # that of a tensor has several lines
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def printable(text: str, longest: int | None = None) -> str:
    """A text from a file, for a message: control characters escaped, and cut to ``longest`` characters."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:longest])
    return safe if longest is None or max(len(safe), len(text)) <= longest else f"{safe[:longest]}…"


def warn_on_stderr(message: str) -> None:
    """Print a warning."""
    say(f"warning: {one_line(message)}")


def say(message: str) -> None:
    """Print a line for the user on the standard error, with control characters escaped."""
    print(printable(message), file=sys.stderr)


def one_line(message: str) -> str:
    """A message as it is printed: control characters escaped, words that no file name can be cut to 80 characters."""
    return printable(_LONG_WORD.sub(lambda word: f"{word[0][:_SHOWN]}…", message), _LONGEST)
