"""Word alignments of raw text: ``norm-align`` with both bundled models by ``--dtype``, against float32 and eflomal.

Each run is a process of its own, on one thread, and its imports are counted.  The text is that of ``--text``, its first
``--pairs`` pairs; without it the demo's, again and again, where words are looked up less often than in other text.
``--eflomal-python`` adds eflomal, both directions without symmetrisation, on all pairs of ``--text``, because it takes
longer a pair of a short text.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import Comparison, process

GROUP = "raw text"
DTYPES = ("float32", "int8", "bfloat16")
_DEMO = Path("data/demo")


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs``, ``text``, ``pairs`` and ``eflomal_python``."""
    whole = str(options.text or _DEMO / "demo")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        text = [first_pairs(Path(f"{whole}.{language}"), folder, options.pairs) for language in ("de", "en")]
        runs = [{dtype: aligned(text, folder, dtype) for dtype in DTYPES} for _ in range(options.runs)]
        note = f"{options.pairs} pairs of {Path(whole).name}, one thread"
        times = {dtype: [1000 * run[dtype][0] / options.pairs for run in runs] for dtype in DTYPES}
        for dtype in DTYPES:
            what, against = f"`norm-align --dtype {dtype}`", "" if dtype == DTYPES[0] else DTYPES[0]
            baseline = times[DTYPES[0]] if against else ()
            yield Comparison(GROUP, what, against, "ms CPU a pair", times[dtype], baseline, note=note)
            yield Comparison(GROUP, what, "", "MiB", [run[dtype][1] for run in runs], note=note)
        if options.eflomal_python:
            size = len(Path(f"{whole}.de").read_bytes().splitlines())
            words = [options.eflomal_python.with_name("eflomal-align"), "-s", f"{whole}.de", "-t", f"{whole}.en"]
            words += ["--overwrite", "-f", folder / "forward", "-r", folder / "reverse"]
            theirs = [1000 * process([str(word) for word in words])[0] / size for _ in runs]
            note = f"eflomal: all {size} pairs, both directions, no symmetrisation"
            yield Comparison(GROUP, "`norm-align`", "eflomal", "ms CPU a pair", times[DTYPES[0]], theirs, note=note)


def first_pairs(file: Path, folder: Path, pairs: int) -> Path:
    """A file of the first ``pairs`` lines, of all lines again and again if there are fewer."""
    lines = file.read_bytes().splitlines(keepends=True)
    made = folder / file.name
    made.write_bytes(b"".join(itertools.islice(itertools.cycle(lines), pairs)))
    return made


def aligned(text: list[Path], folder: Path, dtype: str) -> tuple[float, float]:
    """CPU seconds and peak memory of both bundled models."""
    words = ["--path", "demo", "--tokenizer", "none", "--dtype", dtype, "--cpu", "--overwrite"]
    files = ["--source-text", text[0], "--target-text", text[1], "-o", folder / dtype]
    line = [sys.executable, "-m", "fairseq_norm_plugin.align", *words, *map(str, files)]
    return process(line)
