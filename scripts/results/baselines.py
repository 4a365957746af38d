"""Statistical word aligners on the text of the models: links, AER, processor time and memory (docs/reproduction.md).

Each aligner is trained on PAIRS.de and PAIRS.en (or the languages of --sets) with the gold sets behind them, lowercased
and without their links, as such aligners are used.  Both directions run one after the other in --python, which has
eflomal, sil-machine and sil-thot.  How to symmetrise is chosen on the last of --sets.  A file in OUT is not made again.
A table goes to stdout, all figures to OUT/baselines.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from gold_sets import ALIGN_EVAL, DEV, SETS, TEST, Gold, markdown, reversed_links, run, write

from alignment_eval.links.symmetrize import METHODS, VARIANTS

THOT = Path(__file__).with_name("thot_align.py")
TOOLS = ("eflomal", "fast_align", "hmm", "ibm4")
#: Which language comes first.
SIDES = {"forward": (0, 1), "reverse": (1, 0)}
SYMMETRISED = [(m, v) for m in METHODS for v in (VARIANTS if m.startswith("grow") else VARIANTS[:1])]
SYMMETRISED.remove(("grow-diag-final-and", "lilt"))


class Baseline:
    """One aligner on one text."""

    def __init__(self, golds: list[Gold], out: Path, python: Path, pairs: Path, tool: str) -> None:
        self.golds = golds
        self.out = out
        self.python = python
        self.pairs = pairs
        self.tool = tool
        self.name = f"{tool}-{pairs.name}"

    def text(self, which: int) -> Path:
        """The source or the target of the pairs, and behind them those of the gold sets."""
        language = self.golds[0].languages[which]
        parts = [Path(f"{self.pairs}.{language}"), *(gold.texts[which] for gold in self.golds)]
        lines = [line for part in parts for line in part.read_text(encoding="utf-8").lower().split("\n")[:-1]]
        return write(self.out / "text" / f"{self.pairs.name}.{language}", lines)

    def trained(self, side: str) -> tuple[Path, dict[str, float]]:
        """Links of the gold sets in one direction, from the aligner's first to its second text; and their cost."""
        path = self.out / "made" / f"{self.name}-{side}.pharaoh"
        cost = path.with_suffix(".json")
        if not cost.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            source, target = (str(self.text(which)) for which in SIDES[side])
            last = sum(gold.size for gold in self.golds)
            words = [str(self.python), str(THOT), self.tool, source, target, str(last), str(path)]
            if self.tool == "eflomal":
                program = str(self.python.with_name("eflomal-align"))
                words = [program, "-s", source, "-t", target, "-f", str(path), "--overwrite"]
            figures = measured(words)
            write(path, path.read_text(encoding="utf-8").splitlines()[-last:])
            write(cost, [json.dumps(figures)])
        return path, json.loads(cost.read_text(encoding="utf-8"))

    def links(self, side: str) -> list[Path]:
        """Source-target links of one direction, of each gold set."""
        lines = self.trained(side)[0].read_text(encoding="utf-8").splitlines()
        if side == "reverse":
            lines = reversed_links(lines)
        size = self.golds[0].size
        parts = zip(self.golds, (lines[:size], lines[size:]))  # the second part is empty if there is one set
        return [write(self.out / "links" / f"{self.name}-{side}-{gold.name}.pharaoh", part) for gold, part in parts]

    def symmetrised(self) -> tuple[str, list[Path]]:
        """The way to symmetrise that is best on the last gold set, and its links of each gold set."""
        sides = [self.links(side) for side in SIDES]
        ways: dict[str, list[Path]] = {}
        for method, variant in SYMMETRISED:
            for gold, pair in zip(self.golds, zip(*sides)):
                path = self.out / "links" / f"{self.name}-{method}-{variant}-{gold.name}.pharaoh"
                how = ("--method", method, "--variant", variant)
                run(*ALIGN_EVAL, "symmetrize", *pair, *how, "-o", path, makes=path)
                ways.setdefault(f"{method} {variant}", []).append(path)
        best = min(ways, key=lambda way: float(self.golds[-1].score(ways[way][-1])["aer"]))
        return best, ways[best]

    def rows(self) -> list[dict[str, Any]]:
        """Figures of both directions and of the best way to symmetrise them."""
        ways = [(side, self.links(side), [side]) for side in SIDES]
        ways.append((*self.symmetrised(), list(SIDES)))
        items = []
        for what, paths, sides in ways:
            costs = [self.trained(side)[1] for side in sides]
            cost = {"seconds": sum(c["seconds"] for c in costs), "memory": max(c["memory"] for c in costs)}
            pairs = f"{len(Path(f'{self.pairs}.{self.golds[0].languages[0]}').read_bytes().splitlines()):,} pairs"
            row = {"tool": self.tool, "text": pairs, "what": what, "links": str(paths[0]), **cost}
            items.append({**row, "dev_aer": self.golds[-1].score(paths[-1])["aer"], **self.golds[0].score(paths[0])})
        return items


def measured(words: list[str]) -> dict[str, float]:
    """Run a command; its processor time in seconds, and the largest resident memory of any so far in MiB."""
    print(*words, file=sys.stderr, flush=True)
    before = getrusage(RUSAGE_CHILDREN)
    subprocess.run(words, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    used = getrusage(RUSAGE_CHILDREN)
    seconds = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "memory": used.ru_maxrss / 1024}


def table(rows: list[dict[str, Any]]) -> str:
    """One line a row."""
    lines = []
    for row in rows:
        interval = row["confidence"]["aer"]
        aer = f"{100 * row['aer']:.2f} [{100 * interval['low']:.2f}, {100 * interval['high']:.2f}]"
        cost = [f"{row['seconds']:,.0f} s", f"{row['memory']:,.0f} MiB"]
        lines.append([row["text"], row["tool"], row["what"], f"{100 * row['dev_aer']:.2f}", aer, *cost])
    return markdown(["pairs", "tool", "links", "last set", "first set [95 %]", "processor", "memory"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the sets")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=(TEST, DEV), help="one, or a test set and another")
    parser.add_argument("--python", type=Path, required=True, metavar="FILE", help="Python that has the aligners")
    parser.add_argument(
        "--pairs", type=Path, nargs="+", required=True, metavar="PREFIX", help="PREFIX.de and PREFIX.en"
    )
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    golds = [Gold(args.gold, name, args.out) for name in args.sets]
    cases = [Baseline(golds, args.out, args.python, pairs, tool) for pairs in args.pairs for tool in args.tools]
    rows = [row for case in cases for row in case.rows()]
    write(args.out / "baselines.json", [json.dumps(rows, indent=1)])
    print(table(rows))


if __name__ == "__main__":
    main()
