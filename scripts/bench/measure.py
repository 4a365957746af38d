"""The method of all benchmarks: ours and the baseline alternate; medians, spread, and ratios of neighbouring runs."""

from __future__ import annotations

import dataclasses
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar


@dataclasses.dataclass(frozen=True)
class Comparison:
    """One line of the table: what was measured on both sides, run by run.

    Attributes:
        group: heading under which the line stands.
        what, against: ours and the baseline, in words; ``against`` is empty where there is none.
        unit: of ``ours`` and ``baseline`` ("s CPU", "s", "MiB").
        ours, baseline: one value a run, in the order of the runs; ``baseline`` is empty where there is none.
        note: what else a reader must know.
    """

    group: str
    what: str
    against: str
    unit: str
    ours: Sequence[float]
    baseline: Sequence[float] = ()
    note: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ours over the baseline, run by run."""
        return [a / b for a, b in zip(self.ours, self.baseline)]


T = TypeVar("T")


def alternate(ours: Callable[[], T], baseline: Callable[[], T], runs: int) -> tuple[list[T], list[T]]:
    """Measure both ``runs`` times, alternating, so that a drift of the machine's speed affects both equally."""
    values: tuple[list[T], list[T]] = ([], [])
    sides = [(values[0], ours), (values[1], baseline)]
    for run in range(runs):
        for side, measure in sides if run % 2 else reversed(sides):
            side.append(measure())
    return values


def cpu_seconds(way: Callable[[], object]) -> float:
    """CPU seconds of this process, all threads, that one call takes."""
    start = time.process_time()
    way()
    return time.process_time() - start


_LAUNCHER = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)
sys.exit(status)
"""


def process(command: Sequence[str]) -> tuple[float, float]:
    """Run ``command`` to its end; its CPU seconds, and its largest resident size in MiB.

    Raises:
        RuntimeError: it failed; with the end of what it wrote to stderr.
    """
    # A small process in between, because the largest resident size counts from the fork and this process may be large.
    line = [sys.executable, "-c", _LAUNCHER, *command]
    child = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{child.stderr[-2000:]}")
    seconds, peak = map(float, child.stdout.split())
    return seconds, peak


def circumstances() -> dict[str, str]:
    """Commit, versions and machine: what every table of figures must name."""
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "commit": commit,
        "command": " ".join(["python", *sys.argv]),
        "machine": f"{models[0] if models else platform.machine()}, {os.cpu_count()} cores",
        "load": f"{os.getloadavg()[0]:.2f} when it ended",
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "ve-fairseq", "numpy", "pandas")},
    }


def table(comparisons: Iterable[Comparison]) -> str:
    """Markdown, one table per group: medians with the range over runs, and the same for the ratio."""
    lines: list[str] = []
    group = None
    for item in comparisons:
        if item.group != group:
            group = item.group
            lines += ["", f"### {group}", "", "| what | ours | baseline | ratio | |", f"|{5 * '---|'}"]
        ratio = spread(item.ratios) if item.baseline else ""
        theirs = f"{spread(item.baseline)} {item.unit} ({item.against})" if item.baseline else ""
        lines.append(f"| {item.what} | {spread(item.ours)} {item.unit} | {theirs} | {ratio} | {item.note} |")
    return "\n".join([*lines, ""])


def spread(values: Sequence[float]) -> str:
    """Median (least-most), three significant digits."""
    middle = f"{statistics.median(values):.3g}"
    return middle if len(values) == 1 else f"{middle} ({min(values):.3g}–{max(values):.3g})"
