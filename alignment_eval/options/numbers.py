"""Values of options that are numbers."""

from __future__ import annotations

import argparse
import math
from contextlib import suppress


def finite_number(text: str) -> float:
    """The value of an option that is a number, neither NaN nor infinite."""
    with suppress(ValueError):
        if math.isfinite(value := float(text)):
            return value
    raise argparse.ArgumentTypeError(f"{text!r}: expected a finite number")


def positive_integer(text: str) -> int:
    """The value of an option that is a whole number, 1 or more."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: expected a number, 1 or more")
    return int(text)
