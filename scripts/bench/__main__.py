"""Measure what everything costs: ``python scripts/bench [GROUP …] [--runs N]``, in the root of the repository.

A group is a module of this folder with ``measure(options)``, which yields rows: medians of the runs, with the range.
"""

import importlib
import platform
from pathlib import Path

import pandas as pd
import torch

from alignment_eval.options.common import CommandParser

#: Groups in the order in which they run.
GROUPS = ("blocks", "runs", "monitor", "raw_text")


def main() -> None:
    parser = CommandParser(prog="bench", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"of {', '.join(GROUPS)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="alternating runs of each side (default: 5)")
    parser.add_argument("--text", type=Path, metavar="PREFIX", help="raw_text: PREFIX.de, PREFIX.en (default: demo)")
    parser.add_argument("--eflomal-python", type=Path, metavar="FILE", help="raw_text: an interpreter with eflomal")
    options = parser.parse_args()
    print(f"{platform.platform()}, Python {platform.python_version()}, torch {torch.__version__}")
    for name in options.groups or GROUPS:
        group = importlib.import_module(name)
        print("", group.__doc__, pd.DataFrame(group.measure(options)).to_string(index=False), sep="\n", flush=True)


if __name__ == "__main__":
    main()
