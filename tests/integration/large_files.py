"""Writes large alignment files and texts of random words, to measure memory and time: ``large_files.py DIRECTORY``.

The files are ``gold.talp``, ``forward.pharaoh``, ``reverse.pharaoh``, ``text.source`` and ``text.target``: about 20
words and 20 links in each line, near the diagonal.  After 10,000 lines they repeat.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_DISTINCT = 10_000
_SHORTEST, _LONGEST = 15, 25
_VOCABULARY = 50_000
#: Shares of words without a link, of links beside the diagonal, and of possible links in the gold.
_NULL, _OFF, _POSSIBLE = 0.03, 0.3, 0.2


def write_files(directory: Path, lines: int) -> None:
    """Write the files, each with ``lines`` lines."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(_SHORTEST, _LONGEST + 1, min(lines, _DISTINCT))
    for name in ("gold.talp", "forward.pharaoh", "reverse.pharaoh"):
        possible = _POSSIBLE if name == "gold.talp" else 0.0
        _write(directory / name, [_links(rng, int(length), possible) for length in lengths], lines)
    for name in ("text.source", "text.target"):
        words = np.minimum(rng.pareto(1.0, (len(lengths), _LONGEST)) * 5, _VOCABULARY).astype(np.int64)
        _write(directory / name, [" ".join(f"w{word}" for word in row[:n]) for row, n in zip(words, lengths)], lines)


def _links(rng: np.random.Generator, length: int, possible: float) -> str:
    offsets = np.where(rng.random(length) < _OFF, rng.integers(-2, 3, length), 0)
    targets = np.clip(np.arange(length) + offsets, 0, length - 1)
    marks = np.where(rng.random(length) < possible, "p", "-")
    linked = rng.random(length) >= _NULL
    return " ".join(f"{i}{marks[i]}{targets[i]}" for i in range(length) if linked[i])


def _write(path: Path, distinct: Sequence[str], lines: int) -> None:
    text = "".join(f"{line}\n" for line in distinct)
    whole, rest = divmod(lines, len(distinct))
    with path.open("w", encoding="utf-8") as file:
        file.writelines([text] * whole)
        file.writelines(f"{line}\n" for line in distinct[:rest])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--lines", type=int, default=2_000_000)
    options = parser.parse_args()
    options.directory.mkdir(parents=True, exist_ok=True)
    write_files(options.directory, options.lines)
