"""The method of all benchmarks: ours and the baseline alternate; medians, spread, and ratios of neighbouring runs."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

#: What scripts/demo.sh made for the benchmarks, its text, and the model.
DATA, TEXT, CHECKPOINT = "out/bench/bin", Path("data/demo/demo"), "data/demo/checkpoint.pt"
#: A line of a table, by column.
Row = dict[str, str]


def row(what: str, unit: str, ours: Sequence[float], baseline: Sequence[float] = ()) -> Row:
    """Medians with the range over runs, and the same for the ratios, run by run; a baseline may be missing."""
    sides = {"ours": ours, "baseline": baseline, "ratio": [a / b for a, b in zip(ours, baseline)]}
    return {"what": what, "unit": unit, **{name: spread(values) for name, values in sides.items()}}


def spread(values: Sequence[float]) -> str:
    """Median (least–most), three significant digits."""
    return f"{statistics.median(values):.3g} ({min(values):.3g}–{max(values):.3g})" if values else ""


def timed(what: str, ours: Callable[[], object], baseline: Callable[[], object], runs: int) -> Row:
    """CPU seconds of this process, all threads, after a first call of each, which may fill caches."""
    for way in (ours, baseline):
        way()
    return row(what, "s CPU", *alternate(partial(cpu_seconds, ours), partial(cpu_seconds, baseline), runs))


def alternate(ours: Callable[[], float], baseline: Callable[[], float], runs: int) -> tuple[list[float], list[float]]:
    """Measure both ``runs`` times, alternating, so that a drift of the machine's speed affects both equally."""
    values: tuple[list[float], list[float]] = ([], [])
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


def process(*command: object) -> tuple[float, float]:
    """Run ``command`` to its end; its CPU seconds, and its largest resident size in MiB."""
    # A small process in between, because the largest resident size counts from the fork and this process may be large.
    line = [sys.executable, "-c", _LAUNCHER, *map(str, command)]
    child = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if child.returncode:
        raise RuntimeError(child.stderr[-2000:])
    seconds, peak = map(float, child.stdout.split())
    return seconds, peak


def configured(*words: str) -> Any:
    """The configuration of ``fairseq-train`` with these options, for a Transformer on the demo's data."""
    words = (DATA, "--arch", "transformer", "--criterion", "label_smoothed_cross_entropy", *words)
    return convert_namespace_to_omegaconf(options.parse_args_and_arch(options.get_training_parser(), list(words)))
