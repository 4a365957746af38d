"""The commands that the tables of docs/reproduction.md are made with, and the gold sets."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

TEST, DEV = "vilar508", "cmu150"
#: Name -> the languages of source and target, the files of both texts and of the gold, and the gold's index base.
SETS = {
    TEST: (("de", "en"), ("test.de", "test.en", "alignment.talp"), 1),
    DEV: (("de", "en"), ("dev.de", "dev.en", "dev.talp"), 1),
    "hansards447": (("en", "fr"), ("src.en", "tgt.fr", "gold.pharaoh"), 0),
    "czenali2500": (("cs", "en"), ("src.cs", "tgt.en", "gold.pharaoh"), 0),
}
ALIGN_EVAL = (sys.executable, "-m", "alignment_eval")
NORM_ALIGN = (sys.executable, "-m", "fairseq_norm_plugin.align")


def run(*words: object, makes: Path | None = None) -> str:
    """What a command prints; one whose file is there already is not run again."""
    if makes is not None:
        makes.parent.mkdir(parents=True, exist_ok=True)
        if makes.exists():
            return ""
    line = [str(word) for word in words]
    print(shlex.join(line), file=sys.stderr, flush=True)
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    if done.returncode:
        raise SystemExit(f"{shlex.join(line)} failed:\n{done.stderr[-3000:]}")
    return done.stdout


class Gold:
    """A gold set in DIR, and its texts, lowercased as the models' text is, in OUT."""

    def __init__(self, folder: Path, name: str, out: Path) -> None:
        self.name = name
        self.languages, files, base = SETS[name]
        *texts, gold = (folder / name / file for file in files)
        self.options = ("--gold", gold, "--gold-base", base)
        self.texts = [out / "text" / f"{name}.{language}" for language in self.languages]
        for text, made in zip(texts, self.texts):
            made.parent.mkdir(parents=True, exist_ok=True)
            made.write_text(text.read_text(encoding="utf-8").lower(), encoding="utf-8")
        self.size = len(self.texts[0].read_bytes().splitlines())

    def score(self, links: Path) -> dict[str, Any]:
        """The score of source-target links, with intervals."""
        found: dict[str, Any] = json.loads(
            run(*ALIGN_EVAL, "score", *self.options, "--resamples", 10_000, "--format", "json", links)
        )
        return found

    def p(self, baseline: Path, links: Path) -> float:
        """The p of AER in the paired randomisation test."""
        found = run(*ALIGN_EVAL, "compare", *self.options, "--format", "json", baseline, links)
        return float(json.loads(found)["aer"]["p_randomisation"])

    def aer(self, links: Path) -> str:
        """AER in %."""
        return f"{100 * self.score(links)['aer']:.2f}"


def reversed_links(lines: Iterable[str]) -> list[str]:
    """Lines of links ``i-j`` as ``j-i``."""
    return [" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in lines]


def write(path: Path, lines: Iterable[str]) -> Path:
    """Write lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))
