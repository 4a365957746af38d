"""How a command ends: its exit status, one line for an error or Ctrl-C, and quietly if nobody reads its output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from alignment_eval.errors import InputError, UsageError

#: What a shell says of a program that a closed pipe has ended: 128 + SIGPIPE.
CLOSED_PIPE = 141
#: What it says of a program that Ctrl-C has ended: 128 + SIGINT.
STOPPED = 130


def exit_status(name: str, parse: Callable[[], Any], run: Callable[[Any], object]) -> int:
    """Parse the command line and run it: 0 success, 1 bad data, 2 bad usage, 130 Ctrl-C, 141 nobody reads the output.

    Args:
        name: the program, for messages; the subcommand is added.
        parse: gives the arguments, an ``argparse.Namespace``.
        run: takes them.
    """
    try:
        try:
            args = parse()
            name = " ".join([name, *([args.command] if hasattr(args, "command") else [])])
            run(args)
        finally:  # also after --help, which ends by SystemExit
            sys.stdout.flush()
    except (InputError, UsageError) as error:
        print(f"{name}: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    except KeyboardInterrupt:
        print(f"{name}: stopped by Ctrl-C", file=sys.stderr)
        return STOPPED
    except BrokenPipeError:  # head or less has gone: no error of ours
        _discard_output(sys.stdout, sys.stderr)
        return CLOSED_PIPE
    except OSError as error:  # the disk is full, a file has gone
        place = error.filename
        if _output_fails():
            place = place or "standard output"
            _discard_output(sys.stdout)
        print(": ".join(map(str, filter(None, (name, place, error.strerror or error)))), file=sys.stderr)
        return 1
    return 0


def _output_fails() -> bool:
    """Whether what is still in the buffer of the standard output cannot be written."""
    try:
        sys.stdout.flush()
    except OSError:
        return True
    return False


def _discard_output(*streams: TextIO) -> None:
    """Let what is still in the buffers go nowhere, so that the interpreter does not fail to write it in the end.

    As https://docs.python.org/3/library/signal.html#note-on-sigpipe advises.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())
