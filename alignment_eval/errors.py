"""What a user is told: errors of bad input, one family; warnings; and progress.

In Python they are exceptions, warnings and log messages.  A command prints them on the standard error
(:func:`on_stderr`).

Progress is shown of loops that may take more than a second: a bar on a terminal, else a line every 30 seconds.  A loop
over items uses :func:`progress_bar`, work that comes in steps :func:`progress_meter`.
"""

from __future__ import annotations

import contextlib
import logging
import re
import reprlib
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

T = TypeVar("T")
logger = logging.getLogger(__name__)
#: The packages whose messages a command prints, and whose own lines no warning names.
_PACKAGES = ("alignment_eval", "fairseq_norm_plugin")
#: Seconds before a bar appears: what is done sooner shows none.
_DELAY = 1.0
#: Seconds from one line to the next, where stderr is not a terminal.
_INTERVAL = 30.0
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


class AlignmentWarning(UserWarning):
    """Something in the data, or in a result, that may be wrong."""


def require_known(what: str, name: str, known: Iterable[str]) -> None:
    """Check an option's value; raises UsageError if ``name`` is not among ``known``."""
    if name not in (names := list(known)):
        raise UsageError(f"unknown {what} {shown(name)}; choose one of {', '.join(names)}")


def shown(value: Any) -> str:
    """A value from a file, for a message: quoted, control characters escaped, cut to 80 characters."""
    return printable(_REPR.repr(value), _SHOWN)  # that of a tensor has several lines


def printable(text: str, longest: int | None = None) -> str:
    """A text from a file, for a message: control characters escaped, and cut to ``longest`` characters."""
    safe = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[:longest])
    return safe if longest is None or max(len(safe), len(text)) <= longest else f"{safe[:longest]}…"


def warn_user(message: str) -> None:
    """Warn the program's line that called these packages (:class:`AlignmentWarning`); a command prints the warning."""
    calls = enumerate(traceback.walk_stack(sys._getframe(1)), 3)  # 2 would name the caller of this function
    own = (level for level, (frame, _) in calls if frame.f_globals.get("__name__", "").split(".")[0] in _PACKAGES)
    warnings.warn(one_line(message), AlignmentWarning, stacklevel=max(own, default=2))


def warn_skipped(skipped: Mapping[int, str], size: int, consequence: str, unit: str = "number") -> None:
    """Warn how many sentences cannot be aligned, why, and which is the first; numbers of a line are from 1."""
    if skipped:
        first = {status: number + (unit == "line") for number, status in reversed([*skipped.items()])}
        counts = Counter(skipped.values()).most_common()
        reasons = ", ".join(f"{count} {status} (the first is {unit} {first[status]})" for status, count in counts)
        warn_user(f"{len(skipped)} of {size} sentences cannot be aligned, {consequence}: {reasons}")


@contextlib.contextmanager
def on_stderr(program: str) -> Iterator[None]:
    """Print warnings, each time, and log messages as the command ``program`` does."""
    handler, loggers = _Printer(), [logging.getLogger(name) for name in _PACKAGES]
    levels = [each.level for each in loggers]
    with warnings.catch_warnings():
        print_warnings(program)
        try:
            for each in loggers:
                each.addHandler(handler)
                each.setLevel(logging.INFO)
                each.propagate = False  # a library may have given the root logger a handler
            yield
        finally:
            for each, level in zip(loggers, levels):
                each.removeHandler(handler)
                each.setLevel(level)
                each.propagate = True


def print_warnings(program: str) -> None:
    """Print each :class:`AlignmentWarning` on a line of its own from now on, which names the ``program``."""
    former = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, AlignmentWarning):
            say(f"{program}: warning: {message}")
        else:
            former(message, category, *place, **more)

    warnings.simplefilter("always", AlignmentWarning)
    warnings.showwarning = show


class _Printer(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(record.getMessage())


def say(message: str) -> None:
    """Print a line for the user on the standard error, with control characters escaped."""
    print(printable(message), file=sys.stderr)


def one_line(message: str) -> str:
    """A message as it is printed: control characters escaped, words that no file name can be cut to 80 characters."""
    return printable(_LONG_WORD.sub(lambda word: f"{word[0][:_SHOWN]}…", message), _LONGEST)


#: Goes through items, so many of them, each a unit (a plural noun), and shows how far it is; gives the same items.
Progress = Callable[[Iterable[Any], int, str], Iterable[Any]]


def no_progress(items: Iterable[T], total: int, unit: str) -> Iterable[T]:
    """Show nothing; the default of functions that are not commands."""
    return items


def progress_bar(items: Iterable[T], total: int, unit: str) -> Iterator[T]:
    """Show how many of the items are done."""
    with progress_meter(total, unit) as done:
        for item in items:
            yield item
            done(1)


@contextlib.contextmanager
def progress_meter(total: int, unit: str) -> Iterator[Callable[[int], object]]:
    """Show how much of ``total`` units is done; yields a function that takes the number done since its last call."""
    if not sys.stderr.isatty():
        yield _lines(total, unit)
        return
    from tqdm import tqdm

    with tqdm(total=total, unit=f" {unit}", file=sys.stderr, delay=_DELAY) as bar:
        yield bar.update


def _lines(total: int, unit: str) -> Callable[[int], None]:
    """Log a line like ``1,200 of 5,000 sentences (24 %), 60 s`` every :data:`_INTERVAL` seconds."""
    count = 0
    start = time.monotonic()
    following = start + _INTERVAL

    def done(more: int) -> None:
        nonlocal count, following
        count += more
        if (now := time.monotonic()) >= following:
            following = now + _INTERVAL
            share = f" ({100 * count // total} %)" if total else ""
            logger.info("%s", f"{count:,} of {total:,} {unit}{share}, {now - start:.0f} s")

    return done
