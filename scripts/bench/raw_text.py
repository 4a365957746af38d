"""Word alignments of raw text: ``norm-align`` with both bundled models by ``--dtype``, against eflomal.

Each run is a process of its own, on one thread, and its imports are counted.  The text is the first 2,000 pairs of
``--text``; without it the demo's, again and again, where words are looked up less often than in other text.  eflomal,
with ``--eflomal-python``, aligns in both directions without symmetrisation, all pairs of ``--text``, because it takes
longer a pair of a short text.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from measure import TEXT, Row, process, row

PAIRS = 2000
NORM_ALIGN = [sys.executable, "-m", "fairseq_norm_plugin.align", "--path", "demo", "--tokenizer", "none", "--cpu"]


def measure(options: argparse.Namespace) -> Iterator[Row]:
    whole = [Path(f"{options.text or TEXT}.{language}") for language in ("de", "en")]
    eflomal: list[float] = []
    with tempfile.TemporaryDirectory() as directory:
        text = [first_pairs(file, Path(directory)) for file in whole]
        if options.eflomal_python:
            pairs = len(whole[0].read_bytes().splitlines())
            files = ["-s", whole[0], "-t", whole[1], "-f", f"{directory}/forward", "-r", f"{directory}/reverse"]
            command = [options.eflomal_python.with_name("eflomal-align"), "--overwrite", *files]
            eflomal = [1000 * process(*command)[0] / pairs for _ in range(options.runs)]
        for dtype in ("float32", "int8", "bfloat16"):
            words = [*NORM_ALIGN, "--source-text", text[0], "--target-text", text[1], "-o", f"{directory}/links"]
            runs = [process(*words, "--overwrite", "--dtype", dtype) for _ in range(options.runs)]
            milliseconds = [1000 * seconds / PAIRS for seconds, _ in runs]
            yield row(f"--dtype {dtype}", "ms CPU a pair", milliseconds, eflomal)
            yield row(f"--dtype {dtype}", "MiB", [peak for _, peak in runs])


def first_pairs(file: Path, folder: Path) -> Path:
    """A file of the first pairs, of all pairs again and again if there are fewer."""
    lines = file.read_bytes().splitlines(keepends=True)
    made = folder / file.name
    made.write_bytes(b"".join(itertools.islice(itertools.cycle(lines), PAIRS)))
    return made
