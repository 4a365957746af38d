"""Files and gold of tests of formats."""

from __future__ import annotations

from pathlib import Path

from alignment_eval.links.sets import GoldSentence


def gold(sure: str = "", possible: str = "") -> GoldSentence:
    """``gold("0-1 2-2", "3-3")``."""
    sets = (frozenset(tuple(map(int, pair.split("-"))) for pair in text.split()) for text in (sure, possible))
    return GoldSentence(*sets)


def written(folder: Path, text: str | bytes, name: str = "x.talp") -> Path:
    """Write a file."""
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path
