"""CPU time and memory of the norms of one attention against length and batch: ``python scripts/bench/lengths.py``.

Writes docs/figures/bench-length.png and prints its figures.  ``--measured PAGE`` draws the figures that a page has
instead of measuring.  The line drawn through the memory is no fit: it is what must be there (the results, the factor,
W_OᵀW_O) plus one chunk.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
from matplotlib.figure import Figure
from measure import cpu_seconds
from norms import DIM, HEADS, case_of, extra_memory, plugin_way

from alignment_eval.figures.style import COLOURS, PAGE, TYPE, new_figure, save_figure, styled
from fairseq_norm_plugin.maps.norms import CHUNK_BYTES

LENGTHS, BATCHES = (25, 50, 100, 200, 400, 800), (1, 2, 4, 8, 16, 32, 64)
FIXED_BATCH, FIXED_LENGTH = 8, 100
HEAD = "| B | T = S | ms CPU | ns a weight | peak extra MiB | results, factor, W_OᵀW_O and a chunk, MiB |"


class Point(NamedTuple):
    """A row of the table: CPU milliseconds, and MiB beyond the input."""

    batch: int
    length: int
    milliseconds: float
    peak: float
    needed: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--measured", type=Path, metavar="PAGE")
    parser.add_argument("--out", type=Path, default=Path("docs/figures/bench-length.png"))
    options = parser.parse_args()
    points = list(measured(options.runs) if options.measured is None else read(options.measured))
    series = len(LENGTHS)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    save_figure(draw(points[:series], points[series:]), options.out, dpi=150)


def measured(runs: int) -> Iterator[Point]:
    """Measure each point, and print its row."""
    torch.set_num_threads(1)
    print(f"{HEAD}\n|---|---|---|---|---|---|")
    shapes = [(FIXED_BATCH, length) for length in LENGTHS] + [(batch, FIXED_LENGTH) for batch in BATCHES]
    for batch, length in shapes:
        seconds, peak = point(batch, length, runs)
        needed, each = needed_memory(batch, length), seconds / (batch * HEADS * length**2) * 1e9
        print(f"| {batch} | {length} | {seconds * 1e3:.3g} | {each:.2f} | {peak:.3g} | {needed:.3g} |", flush=True)
        yield Point(batch, length, seconds * 1e3, peak, needed)


def read(page: Path) -> Iterator[Point]:
    """The points of the table in a page."""
    table = page.read_text(encoding="utf-8").partition(HEAD)[2].partition("\n\n")[0]
    for line in table.splitlines()[2:]:
        batch, length, milliseconds, _, peak, needed = line.strip("| ").split(" | ")
        yield Point(int(batch), int(length), float(milliseconds), float(peak), float(needed))


@styled
def draw(by_length: list[Point], by_batch: list[Point]) -> Figure:
    figure = new_figure(PAGE, 3.6)
    figure.suptitle(
        f"Norms of one attention: H = {HEADS}, D = {DIM}, one thread, float32", x=0.005, ha="left", fontsize=TYPE
    )
    axes = figure.subplots(2, 2, sharey="row", sharex="col")
    labels = f"length T = S, at batch B = {FIXED_BATCH}", f"batch B, at length T = S = {FIXED_LENGTH}"
    places = [p.length for p in by_length], [p.batch for p in by_batch]
    for (above, below), x, points, label in zip(axes.T, places, (by_length, by_batch), labels):
        above.loglog(x, [p.milliseconds for p in points], "o-", color=COLOURS[2])
        below.loglog(x, [p.peak for p in points], "o", color=COLOURS[2], label="measured")
        needed = f"results, factor, W_OᵀW_O and {CHUNK_BYTES >> 20} MiB"
        below.loglog(x, [p.needed for p in points], color=COLOURS[1], label=needed, zorder=1)
        below.set_xticks(x, [str(tick) for tick in x])
        below.set_xlabel(label)
        for axis in (above, below):
            axis.minorticks_off()
            axis.grid()
    axes[0, 0].set_ylabel("CPU time, ms")
    axes[1, 0].set_ylabel("peak extra memory, MiB")
    axes[1, 0].legend(loc="upper left")
    return figure


def point(batch: int, length: int, runs: int) -> tuple[float, float]:
    """CPU seconds, the least of ``runs``, and the peak extra MiB of one process."""
    way = partial(plugin_way, *case_of(batch, length))
    with torch.inference_mode():
        way()
        seconds = min(cpu_seconds(way) for _ in range(runs))
    return seconds, extra_memory("ours", batch, length)


def needed_memory(batch: int, length: int) -> float:
    """MiB of the head map, the layer map, the factor, W_OᵀW_O and one chunk."""
    results = batch * (HEADS + 1) * length**2 * 4
    return (results + batch * length * HEADS**2 * 4 + DIM**2 * 8 + CHUNK_BYTES) / 2**20


if __name__ == "__main__":
    main()
