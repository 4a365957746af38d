"""Word alignments of raw text: ``norm-align`` with both bundled models by ``--dtype``, against commit d7107af.

Each run is a process of its own, on one thread, and its imports are counted; the default also runs on all processors,
where its time on the clock counts.  d7107af is unpacked from git and has its
own default (other maps, and a lexicon).  The text is that of ``--text``, its first ``--pairs`` pairs; without it the
demo's, again and again, where words are looked up less often than in other text.  ``--eflomal-python`` adds eflomal,
both directions without symmetrisation, on all pairs of ``--text``, because it takes longer a pair of a short text.
"""

from __future__ import annotations

import argparse
import io
import itertools
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from measure import Comparison, Process, process

from alignment_eval.files import write_bytes

GROUP = "raw text"
BASELINE = "d7107af"
DTYPES = ["float32", "bfloat16", "int8"]
DEFAULT = DTYPES[0]
_DEMO = Path("data/demo").resolve()


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs``, ``text``, ``pairs`` and ``eflomal_python``."""
    whole = str(options.text or _DEMO / "demo")
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        text = [first_pairs(Path(f"{whole}.{language}"), folder, options.pairs) for language in ("de", "en")]
        old = ["env", "-C", str(unpacked(folder)), *norm_align(text, folder / "old")]
        ways = {BASELINE: old, **{dtype: [*norm_align(text, folder / dtype), "--dtype", dtype] for dtype in DTYPES}}
        found = in_turns(ways, options.runs)
        yield from lines(found, options.pairs, Path(whole).name)
        if options.eflomal_python:
            yield eflomal(options.eflomal_python, whole, folder, found[DEFAULT], options)
        yield all_processors({way: ways[way] for way in (BASELINE, DEFAULT)}, options)


def first_pairs(file: Path, folder: Path, pairs: int) -> str:
    """A file of the first ``pairs`` lines, of all lines again and again if there are fewer."""
    lines = file.read_bytes().splitlines(keepends=True)
    write_bytes(folder / file.name, b"".join(itertools.islice(itertools.cycle(lines), pairs)))
    return str(folder / file.name)


def unpacked(folder: Path) -> Path:
    """The tree of the baseline's commit."""
    archive = subprocess.run(["git", "archive", BASELINE], capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        tar.extractall(folder / BASELINE, filter="data")
    return folder / BASELINE


def norm_align(text: Sequence[str], out: Path) -> list[str]:
    """The command that both commits know."""
    models = ["--path", _DEMO / "checkpoint.pt", "--reverse-path", _DEMO / "checkpoint.en-de.pt", "--data", _DEMO]
    words = [*models, "-s", "de", "-t", "en", "--bpe-codes", _DEMO / "codes.bpe", "--cpu", "--overwrite", "-o", out]
    words += ["--source-text", text[0], "--target-text", text[1]]
    return [sys.executable, "-m", "fairseq_norm_plugin.align", *map(str, words)]


def in_turns(ways: Mapping[str, Sequence[str]], runs: int, threads: int = 1) -> dict[str, list[Process]]:
    """Run every command ``runs`` times, in turns."""
    found: dict[str, list[Process]] = {way: [] for way in ways}
    for _ in range(runs):
        for way, command in ways.items():
            found[way].append(process(command, {"OMP_NUM_THREADS": str(threads)}))
    return found


def all_processors(ways: Mapping[str, Sequence[str]], options: argparse.Namespace) -> Comparison:
    """The default of both commits on all processors."""
    processors = len(os.sched_getaffinity(0))
    found = in_turns(ways, options.runs, processors)
    ours, theirs = ([1000 * run.wall / options.pairs for run in found[way]] for way in (DEFAULT, BASELINE))
    note = f"{options.pairs} pairs, {processors} threads"
    return Comparison(GROUP, "`norm-align`", BASELINE, "ms a pair", ours, theirs, "≤ 1/3", note)


def lines(found: Mapping[str, Sequence[Process]], pairs: int, text: str) -> Iterator[Comparison]:
    """Processor time and memory of each type."""
    note = f"{pairs} pairs of {text}, one thread"
    for dtype in DTYPES:
        sides = (found[dtype], found[BASELINE])
        ours, theirs = ([1000 * run.cpu / pairs for run in side] for side in sides)
        what = f"`norm-align --dtype {dtype}`"
        yield Comparison(GROUP, what, BASELINE, "ms CPU a pair", ours, theirs, "≤ 1/3", note)
        ours, theirs = ([run.peak for run in side] for side in sides)
        yield Comparison(GROUP, what, BASELINE, "MiB", ours, theirs, note=note)


def eflomal(python: Path, text: str, folder: Path, ours: Sequence[Process], options: argparse.Namespace) -> Comparison:
    """eflomal on all pairs of the text, both directions."""
    words = [python.with_name("eflomal-align"), "-s", f"{text}.de", "-t", f"{text}.en", "--overwrite"]
    words += ["-f", folder / "forward", "-r", folder / "reverse"]
    size = len(Path(f"{text}.de").read_bytes().splitlines())
    theirs = [1000 * process([str(word) for word in words]).cpu / size for _ in ours]
    mine = [1000 * run.cpu / options.pairs for run in ours]
    note = f"eflomal: all {size} pairs, both directions, no symmetrisation"
    return Comparison(GROUP, "`norm-align`", "eflomal", "ms CPU a pair", mine, theirs, "≤ 4", note)
