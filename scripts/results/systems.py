"""The main table of docs/reproduction.md: AER of vilar508, ours beside measured and published aligners.

Scores the links of robustness.py (--ours), of baselines.py (--measured) and those that come with the
gold (--stored), with 95 % intervals and paired tests against eflomal's symmetrised links.  The table goes to
stdout, its figures to OUT, from which scripts/results/systems_figure.py draws.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Optional

import pandas as pd
from experiment_steps import FILES, TEST
from experiment_tables import markdown

from alignment_eval.files import write_bytes
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.scoring.aer import Counts, score
from alignment_eval.scoring.significance import Resampling, compare, confidence

SMALL, LARGE, ALL, EUROPARL = "87,652 pairs", "292,680 pairs", "295,000 pairs", "full Europarl"
OURS, MEASURED, PUBLISHED = "ours", "measured", "published"
TOOLS = {
    "eflomal": "eflomal",
    "fast_align": "fast_align (sil-thot)",
    "hmm": "HMM (sil-thot)",
    "ibm4": "IBM 4 (sil-thot)",
}
TEXTS = {"small": SMALL, "large": LARGE}
#: Published AER without links at hand (Kobayashi et al. 2020; lilt's alignment-scripts and the papers).
FIGURES = (
    ("weights, best layer, De-En", EUROPARL, 29.8),
    ("norms, best layer, De-En", EUROPARL, 25.0),
    ("Shift-Att, both", EUROPARL, 17.9),
    ("Shift-AET, both, guided by its own links", EUROPARL, 15.4),
    ("awesome-align, fine-tuned", "mBERT, parallel text", 15.0),
    ("Mask-Align, both", EUROPARL, 14.4),
)


@dataclass(frozen=True)
class System:
    """A row of the table; AER and its interval in %.

    Attributes:
        group: ours, measured or published.
        name: what it is.
        text: what it was trained on.
        aer: AER.
        low: lower end of the 95 % interval; None without links.
        high: upper end.
        p: of the paired randomisation test against the baseline; None for the baseline itself.
    """

    group: str
    name: str
    text: str
    aer: float
    low: Optional[float] = None
    high: Optional[float] = None
    p: Optional[float] = None


def systems(gold: Path, links: list[tuple[str, str, str, Path, bool]], baseline: Path) -> list[System]:
    """The rows of files of links: group, name, text, file, whether it has target-source links."""
    right = read_gold(str(gold), ReadOptions(base="1"))
    counts = {
        path: score(read_hypothesis(path, ReadOptions(base="0", swap=swap)).each_links(), right).per_sentence
        for *_, path, swap in [*links, ("", "", "", baseline, False)]
    }
    return [
        _system(group, name, text, counts[path], None if path == baseline else counts[baseline])
        for group, name, text, path, _ in links
    ]


def _system(group: str, name: str, text: str, counts: Counts, baseline: Optional[Counts]) -> System:
    draws = Resampling()
    interval = confidence(counts, draws)["aer"]
    p = None if baseline is None else compare(baseline, [counts], draws)[0]["aer"].p_randomisation
    low, high = (None, None) if interval is None else (100 * interval.low, 100 * interval.high)
    total = counts.total()
    agreed = total.hypothesis_sure + total.hypothesis_possible
    return System(group, name, text, 100 * (1 - float(agreed / (total.hypothesis + total.sure))), low, high, p)


def ours(folder: Path) -> list[tuple[str, str, str, Path, bool]]:
    """Our rows."""
    names = {
        "both": "both models, pair by pair (default)",
        "both-lexicon": "both models, lexicon of the text",
        "en-de-lexicon": "English-German alone, lexicon of the text",
        "de-en-lexicon": "German-English alone, lexicon of the text",
        "en-de": "English-German alone, pair by pair (default)",
        "de-en": "German-English alone, pair by pair (default)",
        "en-de-2020": "English-German, norms of the best layer (2020)",
        "de-en-2020": "German-English, norms of the best layer (2020)",
    }
    return [(OURS, name, SMALL, folder / f"{stem}.pharaoh", False) for stem, name in names.items()]


def measured(rows: list[dict[str, str]]) -> list[tuple[str, str, str, Path, bool]]:
    """The rows of scripts/results/baselines.py."""
    words = {"forward": "De-En", "reverse": "En-De"}
    return [
        (
            MEASURED,
            f"{TOOLS[row['tool']]}, {words.get(row['what'], row['what'])}",
            TEXTS[row["text"]],
            Path(row["links"]),
            False,
        )
        for row in rows
    ]


def stored(folder: Path, baseline: Path) -> list[tuple[str, str, str, Path, bool]]:
    """The links that come with the gold, and the ones that all rows are compared with."""
    eflomal = {"De-En": folder / "eflomal/test.deen.fwd.talp", "En-De": folder / "eflomal/test.deen.rev.talp"}
    found = [(MEASURED, f"eflomal, {what}", ALL, path, False) for what, path in eflomal.items()]
    found.append((MEASURED, "eflomal, both (best symmetrised)", ALL, baseline, False))
    ways = (("De-En", "deen"), ("En-De", "deen.reverse"), ("grow diag final", "deen.grow-diagonal-final"))
    for name, stem in (("fast_align", "fastalign"), ("GIZA++", "giza")):
        for what, file in ways:
            path = folder / stem / f"test.{file}.talp"
            found.append((PUBLISHED, f"{name}, {what}", EUROPARL, path, file.endswith("reverse")))
    return found


def table(found: list[System]) -> str:
    """One line a system."""
    lines = []
    for system in found:
        interval = "" if system.low is None else f" [{system.low:.2f}, {system.high:.2f}]"
        figure = f"{system.aer:.2f}{interval}" if interval else f"{system.aer:.1f}"
        p = "" if system.p is None else f"{system.p:.4f}"
        lines.append([system.group, system.name, system.text, figure, p])
    return markdown(["", "system", "text", "AER % [95 %]", "p"], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508")
    parser.add_argument("--ours", type=Path, required=True, metavar="DIR", help="links of robustness.py")
    parser.add_argument("--measured", type=Path, nargs="*", default=[], metavar="FILE", help="baselines.json")
    parser.add_argument("--stored", type=Path, required=True, metavar="DIR", help="links that come with the gold")
    parser.add_argument("--baseline", type=Path, required=True, metavar="FILE", help="eflomal, symmetrised")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE")
    args = parser.parse_args()
    rows = [row for file in args.measured for row in json.loads(file.read_text(encoding="utf-8"))]
    links = [*ours(args.ours), *measured(rows), *stored(args.stored, args.baseline)]
    found = systems(args.gold / TEST / FILES[TEST][2], links, args.baseline)
    found += [System(PUBLISHED, *figure) for figure in FIGURES]
    write_bytes(args.out, pd.DataFrame([asdict(system) for system in found]).round(4).to_csv(index=False).encode())
    print(table(found))


if __name__ == "__main__":
    main()
