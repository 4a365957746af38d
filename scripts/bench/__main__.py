"""Measure what everything costs: ``python scripts/bench [GROUP …] [--runs N] [--out FILE]``.

Each module of this folder that has ``measure(options)`` yields comparisons; they are printed as they come and written
to FILE.  Nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from measure import Comparison, circumstances, table

#: Groups in the order in which they run: modules of this folder.
GROUPS = ["blocks", "runs", "monitor", "raw_text"]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ", ".join(GROUPS)
    parser.add_argument("groups", nargs="*", metavar="GROUP", default=GROUPS, help=f"of {names} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="alternating runs of each side (default: 5)")
    parser.add_argument("--data", type=Path, default=Path("out/bench"), help="output of scripts/demo.sh (bin, …)")
    parser.add_argument("--out", type=Path, default=Path("out/bench/benchmarks.md"), help="file for the tables")
    parser.add_argument("--text", type=Path, metavar="PREFIX", help="raw_text: PREFIX.de, PREFIX.en (default: demo)")
    parser.add_argument("--pairs", type=int, default=2000, metavar="N", help="raw_text: its first N pairs (2000)")
    parser.add_argument("--eflomal-python", type=Path, metavar="FILE", help="raw_text: an interpreter with eflomal")
    options = parser.parse_args()
    if unknown := sorted(set(options.groups) - set(GROUPS)):
        parser.error(f"no group {unknown[0]!r}: choose of {names}")
    comparisons: list[Comparison] = []
    for group in options.groups:
        for comparison in importlib.import_module(group).measure(options):
            comparisons.append(comparison)
            print(table([comparison]), flush=True)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    heading = "\n".join(f"- {name}: {value}" for name, value in circumstances().items())
    options.out.write_text(f"{heading}\n{table(comparisons)}", encoding="utf-8")


if __name__ == "__main__":
    main()
