"""What ``align-eval`` costs: a sweep, the score of a large file, the help.

Each command runs in a process of its own, and times are its CPU seconds.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from measure import Comparison, process

GROUP = "align-eval"
SCORED_LINES, DISTINCT = 10**6, 10**4
_ALIGN_EVAL = (sys.executable, "-m", "alignment_eval")


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs`` and ``data``."""
    with tempfile.TemporaryDirectory() as directory:
        words = ("sweep", options.data / "forced", "--gold", "data/demo/demo.talp", "--gold-base", 1, "--overwrite")
        command = [*_ALIGN_EVAL, *map(str, words), "-o", f"{directory}/sweep"]
        taken = [process(command) for _ in range(options.runs)]
        what = (
            "`align-eval sweep` of the demo's records: 60 sentences, 3 layers × 4 heads, all kinds, settings and rules"
        )
        yield Comparison(GROUP, what, "", "s CPU", [run.cpu for run in taken])
        yield Comparison(GROUP, f"{what}: largest resident size", "", "MiB", [run.peak for run in taken])
        yield _score(Path(directory), options.runs)
    times = [process([*_ALIGN_EVAL, "--help"]).cpu for _ in range(options.runs)]
    yield Comparison(GROUP, "`align-eval --help`", "", "s CPU", times, reach="≤ 0.5 s")


def _score(directory: Path, runs: int) -> Comparison:
    rng = np.random.default_rng(0)
    gold, hypothesis = directory / "gold.talp", directory / "hypothesis.pharaoh"
    for path, marks in ((gold, "--p"), (hypothesis, "---")):
        lines = [_line(rng, int(length), marks) for length in rng.integers(5, 36, DISTINCT)]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        path.write_text(path.read_text(encoding="utf-8") * (SCORED_LINES // DISTINCT), encoding="utf-8")
    words = (*_ALIGN_EVAL, "score", "--gold", str(gold), "--gold-base", "0", str(hypothesis))
    times = [process(words).cpu for _ in range(runs)]
    return Comparison(GROUP, f"`align-eval score`, {SCORED_LINES} lines", "", "s CPU", times, reach="≤ 60 s")


def _line(rng: np.random.Generator, length: int, marks: str) -> str:
    """Links near the diagonal, one a target word; each has one of ``marks``."""
    sources = np.clip(np.arange(length) + rng.integers(-2, 3, length), 0, length - 1)
    return " ".join(f"{i}{mark}{j}" for j, (i, mark) in enumerate(zip(sources, rng.choice([*marks], length))))
