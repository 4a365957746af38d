"""Protects the logging setup of a program that imports the plugin."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def kept_root_logger() -> Iterator[None]:
    """Keep imports in the block from setting up the root logger.

    Modules of fairseq call ``logging.basicConfig(level=logging.DEBUG)``.  Without this, the debug messages of every
    library would go to the standard error of a program that imports them.  fairseq's own commands set up logging first.
    """
    root = logging.getLogger()
    placeholder = logging.NullHandler()
    root.addHandler(placeholder)  # basicConfig does nothing if there is a handler
    try:
        yield
    finally:
        root.removeHandler(placeholder)
