"""CPU time and memory of the norms of one attention against length and batch: ``python scripts/bench/lengths.py``.

Writes docs/figures/bench-length.png and prints its figures.  The line drawn through the memory is no fit: it is what
must be there (the results, the factor, W_OᵀW_O) plus one chunk.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import matplotlib as mpl
import torch
from matplotlib import pyplot as plt
from measure import cpu_seconds
from norms import DIM, HEADS, case_of, extra_memory, plugin_way

from fairseq_norm_plugin.maps.norms import CHUNK_BYTES

LENGTHS, BATCHES = (25, 50, 100, 200, 400, 800), (1, 2, 4, 8, 16, 32, 64)
FIXED_BATCH, FIXED_LENGTH = 8, 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--out", type=Path, default=Path("docs/figures/bench-length.png"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    mpl.use("agg")
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq lets everything through
    figure, axes = plt.subplots(2, 2, figsize=(9, 6.5), sharey="row", constrained_layout=True)
    series: list[tuple[str, Sequence[int], list[tuple[int, int]]]] = [
        (f"T = S, at B = {FIXED_BATCH}", LENGTHS, [(FIXED_BATCH, length) for length in LENGTHS]),
        (f"B, at T = S = {FIXED_LENGTH}", BATCHES, [(batch, FIXED_LENGTH) for batch in BATCHES]),
    ]
    print("| B | T = S | ms CPU | ns a weight | peak extra MiB | results, factor, W_OᵀW_O and a chunk, MiB |")
    print("|---|---|---|---|---|---|")
    for (label, ticks, shapes), (above, below) in zip(series, axes.T):
        times, peaks = zip(*(point(batch, length, options.runs) for batch, length in shapes))
        needed = [needed_memory(batch, length) for batch, length in shapes]
        for (batch, length), seconds, peak, need in zip(shapes, times, peaks, needed):
            each = seconds / (batch * HEADS * length**2) * 1e9
            print(f"| {batch} | {length} | {seconds * 1e3:.3g} | {each:.2f} | {peak:.3g} | {need:.3g} |", flush=True)
        above.loglog(ticks, [seconds * 1e3 for seconds in times], "o-", label="head and layer norms")
        below.loglog(ticks, peaks, "o", label="measured")
        below.loglog(ticks, needed, "-", label=f"results, factor, W_OᵀW_O and {CHUNK_BYTES >> 20} MiB")
        for axis in (above, below):
            axis.set_xticks(ticks, [str(tick) for tick in ticks])
            axis.minorticks_off()
            axis.grid(alpha=0.3)
            axis.legend()
        below.set_xlabel(label)
    axes[0, 0].set_ylabel("CPU time, ms")
    axes[1, 0].set_ylabel("peak extra memory, MiB")
    figure.suptitle(f"Norms of one attention: H = {HEADS}, D = {DIM}, one thread, float32")
    options.out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(options.out, dpi=120)


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
