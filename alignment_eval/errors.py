"""The one family of errors that bad input raises, and warnings."""

from __future__ import annotations

import sys


class InputError(ValueError):
    """Bad input: a file, an option or a model that cannot be used as given.

    The text is one sentence in the order *where* (``file:line:``), *what was found*,
    *what was expected*, *what to do*.  ``align-eval`` prints it and exits with status 1.
    """


class UsageError(InputError):
    """Options that contradict each other or name nothing known; ``align-eval`` exits with status 2."""


def warn_on_stderr(message: str) -> None:
    """Print a warning."""
    print(f"warning: {message}", file=sys.stderr)
