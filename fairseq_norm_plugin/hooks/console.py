"""What a user reads on the standard error of a command: refusals in a sentence, no warnings of fairseq's libraries."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from types import TracebackType

from alignment_eval.errors import InputError

#: Texts of warnings that concern fairseq's developers only.
_NOISE = (
    r"\s*'config' is validated against ConfigStore",
    r"'pin_memory' argument is set as true",
    r"Support for mismatched key_padding_mask",
)


def silence_libraries() -> None:
    """Hide what hydra and torch say of fairseq, which calls them as their older versions wanted."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"hydra\.")
    for text in _NOISE:
        warnings.filterwarnings("ignore", message=text)


def set_up(program: str) -> None:
    """Do so for a command of fairseq, ``sys.argv[0]``, and let an :class:`InputError` end it with its sentence.

    The exit status stays 1, and other errors keep their tracebacks.  A Python program that imports the plugin is left
    alone.
    """
    path, former = Path(program), sys.excepthook
    if not (path.name.startswith("fairseq-") or path.parent.name == "fairseq_cli"):
        return
    silence_libraries()

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, InputError):
            sys.stdout.flush()
            print(f"{path.stem}: {error}", file=sys.stderr)
        else:
            former(kind, error, traceback)

    sys.excepthook = hook
