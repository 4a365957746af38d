"""What a user reads on the standard error of a command: refusals in a sentence, no warnings of fairseq's libraries."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from types import TracebackType

from alignment_eval.errors import InputError

#: Modules whose warnings, and texts of warnings, concern fairseq's developers only.
_NOISY_MODULES = r"hydra\."
_NOISE = (
    r"\s*'config' is validated against ConfigStore",
    r"'pin_memory' argument is set as true",
    r"Support for mismatched key_padding_mask",
)


def silence_libraries() -> None:
    """Hide what hydra and torch say of fairseq, which calls them as their older versions wanted."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=_NOISY_MODULES)
    for text in _NOISE:
        warnings.filterwarnings("ignore", message=text)


def is_fairseq_command(program: str) -> bool:
    """Whether ``sys.argv[0]`` is a command of fairseq: ``fairseq-generate``, ``python -m fairseq_cli.generate``."""
    path = Path(program)
    return path.name.startswith("fairseq-") or path.parent.name == "fairseq_cli"


def refuse_in_a_sentence(program: str) -> None:
    """Let an :class:`InputError` that nothing catches end the process with its sentence instead of a traceback.

    The exit status stays 1.  Other errors keep their tracebacks.
    """
    former = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, InputError):
            sys.stdout.flush()
            print(f"{Path(program).stem}: {error}", file=sys.stderr)
        else:
            former(kind, error, traceback)

    sys.excepthook = hook


def set_up(program: str) -> None:
    """Do both if ``program`` is a command of fairseq; a Python program that imports the plugin is left alone."""
    if is_fairseq_command(program):
        silence_libraries()
        refuse_in_a_sentence(program)
