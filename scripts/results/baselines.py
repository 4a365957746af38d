"""Statistical word aligners on the text of the models: links, AER, processor time and memory (docs/reproduction.md).

Each aligner is trained on PAIRS.de and PAIRS.en with both gold sets behind them, lowercased and without their links, as
such aligners are used.  Both directions run one after the other in --python, which has eflomal, sil-machine and
sil-thot.  How to symmetrise is chosen on GOLD/cmu150.  What is in OUT already is not made again.  A table goes to
stdout, all figures to OUT/baselines.json.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from experiment import SYMMETRISED
from experiment_steps import DEV, TEST, Experiment
from experiment_tables import markdown, percent

from alignment_eval.files import write_bytes, write_lines

THOT = Path(__file__).with_name("thot_align.py")
TOOLS = ("eflomal", "fast_align", "hmm", "ibm4")
SIDES = {"forward": ("de", "en"), "reverse": ("en", "de")}


class Baseline:
    """One aligner on one text; every method makes a file unless it exists."""

    def __init__(self, experiment: Experiment, python: Path, pairs: Path, tool: str) -> None:
        self._experiment = experiment
        self._python = python
        self._pairs = pairs
        self._tool = tool
        self.name = f"{tool}-{pairs.name}"

    def text(self, language: str) -> Path:
        """The pairs, and behind them both gold sets."""
        path = self._experiment.out / "text" / f"{self._pairs.name}.{language}"
        if not path.exists():
            golds = [self._experiment.text(gold, language) for gold in (TEST, DEV)]
            parts = [Path(f"{self._pairs}.{language}"), *golds]
            write_bytes(path, "".join(part.read_text(encoding="utf-8").lower() for part in parts).encode())
        return path

    def trained(self, side: str) -> Path:
        """Links of both gold sets in one direction, from the aligner's first to its second text; with its cost."""
        path = self._experiment.out / "made" / f"{self.name}-{side}.pharaoh"
        cost = path.with_suffix(".json")
        if not cost.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            source, target = (str(self.text(language)) for language in SIDES[side])
            last = sum(self._experiment.size(gold) for gold in (TEST, DEV))
            if self._tool == "eflomal":
                program = str(self._python.with_name("eflomal-align"))
                words = [program, "-s", source, "-t", target, "-f", str(path), "--overwrite"]
            else:
                words = [str(self._python), str(THOT), self._tool, source, target, str(last), str(path)]
            figures = measured(words)
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)[-last:]
            write_bytes(path, "".join(lines).encode())
            write_lines(cost, [json.dumps(figures)])
        return path

    def links(self, side: str) -> dict[str, Path]:
        """Source-target links of one direction, by gold set."""
        lines = self.trained(side).read_text(encoding="utf-8").splitlines()
        if side == "reverse":
            lines = [" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in lines]
        size = self._experiment.size(TEST)
        paths = {}
        for gold, part in ((TEST, lines[:size]), (DEV, lines[size:])):
            paths[gold] = self._experiment.out / "links" / f"{self.name}-{side}-{gold}.pharaoh"
            paths[gold].parent.mkdir(parents=True, exist_ok=True)
            write_bytes(paths[gold], "".join(f"{line}\n" for line in part).encode())
        return paths

    def symmetrised(self) -> tuple[str, dict[str, Path]]:
        """The way to symmetrise that is best on the development set, and its links by gold set."""
        sides = [self.links(side) for side in SIDES]
        found: dict[str, dict[str, Path]] = {}
        for gold in (DEV, TEST):
            for method, variant in SYMMETRISED:
                key = f"{method}-{variant}"
                path = self._experiment.out / "links" / f"{self.name}-{key}-{gold}.pharaoh"
                words = ["align-eval", "symmetrize", *(side[gold] for side in sides), "--method", method]
                self._experiment.run([*words, "--variant", variant, "--output", path], makes=path)
                found.setdefault(key, {})[gold] = path
        best = min(found, key=lambda key: self._experiment.score(found[key][DEV], DEV)["aer"])
        return best.replace("-", " "), found[best]

    def rows(self) -> list[dict[str, Any]]:
        """Figures of both directions and of the best way to symmetrise them."""
        items = []
        ways = [(side, self.links(side), [side]) for side in SIDES]
        ways.append((*self.symmetrised(), list(SIDES)))
        for what, paths, sides in ways:
            costs = [json.loads(self.trained(side).with_suffix(".json").read_text("utf-8")) for side in sides]
            items.append(
                {
                    "tool": self._tool,
                    "text": self._pairs.name,
                    "what": what,
                    "links": str(paths[TEST]),
                    "seconds": sum(cost["seconds"] for cost in costs),
                    "memory": max(cost["memory"] for cost in costs),
                    "dev_aer": self._experiment.score(paths[DEV], DEV)["aer"],
                    **self._experiment.score(paths[TEST], TEST),
                }
            )
        return items


def measured(words: list[str]) -> dict[str, float]:
    """Run a command; its processor time in seconds and its largest resident memory in MiB."""
    print(*words, file=sys.stderr, flush=True)
    begin = time.monotonic()
    process = os.spawnvpe(os.P_NOWAIT, words[0], words, {**os.environ, "OMP_NUM_THREADS": "1"})
    _, status, used = os.wait4(process, 0)
    if status:
        raise SystemExit(f"{words[0]} failed")
    clock = time.monotonic() - begin
    return {"seconds": used.ru_utime + used.ru_stime, "memory": used.ru_maxrss / 1024, "clock": clock}


def table(rows: list[dict[str, Any]]) -> str:
    """One line a row."""
    lines = []
    for row in rows:
        interval = row["confidence"]["aer"]
        aer = f"{percent(row['aer'])} [{percent(interval['low'])}, {percent(interval['high'])}]"
        cost = [f"{row['seconds']:,.0f} s", f"{row['memory']:,.0f} MiB"]
        lines.append([row["text"], row["tool"], row["what"], percent(row["dev_aer"]), aer, *cost])
    return markdown(["pairs", "tool", "links", "cmu150", "vilar508 [95 %]", "processor", "memory"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508 and cmu150")
    parser.add_argument("--python", type=Path, required=True, metavar="FILE", help="Python that has the aligners")
    parser.add_argument("--pairs", type=Path, nargs="+", required=True, metavar="PREFIX", help="PREFIX.de, PREFIX.en")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=TOOLS)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    experiment = Experiment(args, Path(), Path(), args.out)
    rows = []
    for pairs in args.pairs:
        for tool in args.tools:
            rows += Baseline(experiment, args.python, pairs, tool).rows()
    write_lines(args.out / "baselines.json", [json.dumps(rows, indent=1)])
    print(table(rows))


if __name__ == "__main__":
    main()
