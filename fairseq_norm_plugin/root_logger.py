"""The log of a program that imports the plugin stays as the program has it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_root_logger() -> Iterator[None]:
    """Keep imports in the block from setting up the root logger.

    Modules of fairseq call ``logging.basicConfig(level=logging.DEBUG)``: every library's debugging messages would then
    go to the standard error of a program that imports them.  Fairseq's own commands set up the log before.
    """
    root = logging.getLogger()
    placeholder = logging.NullHandler()
    root.addHandler(placeholder)  # basicConfig does nothing where there is a handler
    try:
        yield
    finally:
        root.removeHandler(placeholder)
