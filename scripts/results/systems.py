"""The main table of docs/reproduction.md: AER of vilar508, ours, measured and published aligners, and its figure.

    systems.py table --gold DIR --ours DIR --measured FILE … --stored DIR --baseline FILE --out CSV
    systems.py figure CSV PNG

``table`` scores the links of ours.py (--ours), of baselines.py (--measured) and those that come with the gold
(--stored), with 95 % intervals and paired tests against eflomal's symmetrised links.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from gold_sets import TEST, Gold, markdown, reversed_links, write

from alignment_eval.figures.style import COLOURS, HEADING, MARKERS, PAGE, TYPE, new_figure, save_figure, styled

SMALL, ALL, EUROPARL = "87,652 pairs", "295,000 pairs", "full Europarl"
TEXTS = {"small": SMALL, "large": "292,680 pairs"}
TOOLS = {"fast_align": "fast_align (sil-thot)", "hmm": "HMM (sil-thot)", "ibm4": "IBM-4 (sil-thot)"}
SIDES = {"forward": "De-En", "reverse": "En-De"}
OURS = {
    "both": "both models, pair by pair (default)",
    "both-word-table": "both models, word table of the text",
    "de-en": "German-English alone, pair by pair (default)",
    "de-en-word-table": "German-English alone, word table of the text",
    "en-de": "English-German alone, pair by pair (default)",
    "en-de-word-table": "English-German alone, word table of the text",
    "en-de-2020": "English-German, norms of the best layer (2020)",
    "de-en-2020": "German-English, norms of the best layer (2020)",
}
#: Published AER without links at hand (Kobayashi et al. 2020; lilt's alignment-scripts and the papers).
FIGURES = (
    ("weights, best layer, De-En", EUROPARL, 29.8),
    ("norms, best layer, De-En", EUROPARL, 25.0),
    ("Shift-Att, both", EUROPARL, 17.9),
    ("Shift-AET, both, guided by its own links", EUROPARL, 15.4),
    ("awesome-align, fine-tuned", "mBERT, parallel text", 15.0),
    ("Mask-Align, both", EUROPARL, 14.4),
)
GROUPS = {"ours": "norm-align and norms, bundled models", "measured": "measured here", "published": "published"}
#: Inches of a system's line, and of everything above and below the lines.
LINE, AROUND = 0.15, 0.55


def links(args: argparse.Namespace) -> Iterator[tuple[str, str, str, Path]]:
    """The rows with links: group, name, text that it was trained on, file of source-target links."""
    for stem, name in OURS.items():
        yield "ours", name, SMALL, args.ours / f"{stem}.pharaoh"
    for row in (row for file in args.measured for row in json.loads(file.read_text(encoding="utf-8"))):
        what = SIDES.get(row["what"], f"both ({row['what'].split()[0]})")
        yield "measured", f"{TOOLS.get(row['tool'], row['tool'])}, {what}", TEXTS[row["text"]], Path(row["links"])
    for what, side in (("De-En", "fwd"), ("En-De", "rev")):
        yield "measured", f"eflomal, {what}", ALL, args.stored / f"eflomal/test.deen.{side}.talp"
    yield "measured", "eflomal, both (best symmetrised)", ALL, args.baseline
    for name, stem in (("fast_align", "fastalign"), ("GIZA++", "giza")):
        yield "published", f"{name}, De-En", EUROPARL, args.stored / stem / "test.deen.talp"
        backwards = (args.stored / stem / "test.deen.reverse.talp").read_text(encoding="utf-8").splitlines()
        turned = write(args.out.parent / f"{stem}.reverse.talp", reversed_links(backwards))
        yield "published", f"{name}, En-De", EUROPARL, turned
        both = args.stored / stem / "test.deen.grow-diagonal-final.talp"
        yield "published", f"{name}, grow diag final", EUROPARL, both


def system(gold: Gold, group: str, name: str, text: str, path: Path, baseline: Path) -> dict[str, Any]:
    """A row: AER and its interval in %, and p against the baseline."""
    scored = gold.score(path)
    interval = scored["confidence"]["aer"]
    figures = {"aer": scored["aer"], "low": interval["low"], "high": interval["high"]}
    p = None if path == baseline else gold.p(baseline, path)
    return {"group": group, "name": name, "text": text, **{k: 100 * v for k, v in figures.items()}, "p": p}


def table(args: argparse.Namespace) -> None:
    """Write the figures, and print the table."""
    gold = Gold(args.gold, TEST, args.out.parent)
    rows = [system(gold, *row, args.baseline) for row in links(args)]
    rows += [{"group": "published", "name": name, "text": text, "aer": aer} for name, text, aer in FIGURES]
    frame = pd.DataFrame(rows).sort_values("aer", kind="stable")
    frame.round(4).to_csv(args.out, index=False)
    lines = []
    for row in sorted(rows, key=lambda row: float(row["aer"])):
        reach = f"{row['aer']:.2f} [{row['low']:.2f}, {row['high']:.2f}]" if "low" in row else f"{row['aer']:.1f}"
        lines.append([row["group"], row["name"], row["text"], reach, f"{row['p']:.4f}" if row.get("p") else ""])
    print(markdown(["", "system", "trained on", "AER % [95 %]", "p"], lines))


@styled
def figure(args: argparse.Namespace) -> None:
    """Draw AER by system with its interval."""
    frame = pd.read_csv(args.csv).sort_values("aer", ascending=False, ignore_index=True)
    drawn = new_figure(PAGE, LINE * len(frame) + AROUND)
    axes = drawn.subplots()
    for number, (group, label) in enumerate(GROUPS.items()):
        part = frame[frame.group == group]
        reach = [(part.aer - part.low).fillna(0), (part.high - part.aer).fillna(0)]
        look: dict[str, Any] = {"fmt": MARKERS[number], "color": COLOURS[2 * number], "capsize": 2, "label": label}
        axes.errorbar(part.aer, part.index, xerr=reach, **look)
    for place, row in frame.iterrows():
        edge = row.aer if pd.isna(row.high) else row.high
        axes.annotate(f"{row.aer:.1f}", (edge, place), (4, 0), textcoords="offset points", va="center", fontsize=TYPE)
    axes.set_yticks(frame.index, frame["name"] + " – " + frame["text"])
    axes.set_ylim(-0.7, len(frame) - 0.3)
    axes.set_xlim(10, frame[["aer", "high"]].max().max() + 4)
    axes.grid(axis="x")
    axes.set_xlabel("AER % of vilar508, with 95 % intervals where links are at hand")
    axes.legend(loc="upper right", fontsize=TYPE, title_fontsize=HEADING)
    save_figure(drawn, args.png, "AER of vilar508 by system, with 95 % intervals", dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("table")
    made.set_defaults(run=table)
    made.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508")
    made.add_argument("--ours", type=Path, required=True, metavar="DIR", help="links of ours.py")
    made.add_argument("--measured", type=Path, nargs="*", default=[], metavar="FILE", help="baselines.json")
    made.add_argument("--stored", type=Path, required=True, metavar="DIR", help="links that come with the gold")
    made.add_argument("--baseline", type=Path, required=True, metavar="FILE", help="eflomal, symmetrised")
    made.add_argument("--out", type=Path, required=True, metavar="FILE")
    drawn = commands.add_parser("figure")
    drawn.set_defaults(run=figure)
    drawn.add_argument("csv", type=Path)
    drawn.add_argument("png", type=Path)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
