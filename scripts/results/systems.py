"""AER of our models, and of measured and published aligners: docs/figures/systems.csv, and what is made of it.

    systems.py table --set SET --gold DIR --ours DIR --measured FILE … --baseline FILE --csv CSV
    systems.py figure CSV PNG
    systems.py page main CSV

``table`` scores the links of ours.py (--ours) and of baselines.py (--measured), on vilar508 also those that come with
the gold (--stored), with 95 % intervals and paired tests against eflomal's symmetrised links.  It replaces these rows
of CSV and keeps all others.  ``figure`` draws the rows of vilar508.  ``page`` prints the table of a page: ``main`` of
docs/reproduction.md, ``readme`` of README.md.  A test holds that the pages have them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from gold_sets import SETS, TEST, Gold, markdown, reversed_links, write

from alignment_eval.figures.style import COLOURS, HEADING, MARKERS, PAGE, TYPE, new_figure, save_figure, styled

SMALL, ALL, EUROPARL = "87,652 pairs", "295,000 pairs", "full Europarl"
#: The text of our models.
TEXTS = {TEST: SMALL, "hansards447": "294,210 pairs", "czenali2500": "118,829 pairs"}
NAMES = {"de": "German", "en": "English", "fr": "French", "cs": "Czech"}
TOOLS = {"fast_align": "fast_align (sil-thot)", "hmm": "HMM (sil-thot)", "ibm4": "IBM-4 (sil-thot)"}
#: What follows the name of the direction in the links of ours.py, and in the name of the row.
WAYS = {
    "": " alone, pair by pair (default)",
    "-word-table": " alone, word table of the text",
    "-2020": ", norms of the best layer (2020)",
}
#: Published AER without links at hand (Kobayashi et al. 2020; lilt's alignment-scripts and the papers).
PUBLISHED = "full text of the literature, cased"
FIGURES = {
    TEST: (
        ("weights, best layer, De-En", EUROPARL, 29.8),
        ("norms, best layer, De-En", EUROPARL, 25.0),
        ("Shift-Att, both", EUROPARL, 17.9),
        ("Shift-AET, both, guided by its own links", EUROPARL, 15.4),
        ("awesome-align, fine-tuned", "mBERT, parallel text", 15.0),
        ("BTBA, both", EUROPARL, 14.3),
        ("Mask-Align, both", EUROPARL, 14.4),
        ("Cross-Align", "pretrained model, parallel text", 13.6),
    ),
    "hansards447": (
        ("fast_align", PUBLISHED, 10.5),
        ("eflomal", PUBLISHED, 8.2),
        ("Shift-Att, both", PUBLISHED, 6.6),
        ("GIZA++", PUBLISHED, 5.9),
        ("awesome-align, not tuned", "mBERT", 5.6),
        ("Mask-Align, both", PUBLISHED, 4.4),
        ("awesome-align, fine-tuned", "mBERT, parallel text", 4.1),
        ("Cross-Align", "pretrained model, parallel text", 3.4),
    ),
}
_DE, _FR, _CS = (f"{name}: " for name in TEXTS)
_BOTH, _ALONE, _OLD = "both models, pair by pair (default)", WAYS[""], WAYS["-2020"]
_SAME = "eflomal, {}; 87,652 pairs"
#: Page -> the titles of its table, and its rows: a title, and cells of words, or naming rows: SET: NAME; TEXT / NAME.
PAGES: dict[str, tuple[Sequence[str], Sequence[Sequence[str]]]] = {
    "readme": (
        ("", "both directions", "De-En", "En-De"),
        (
            ("`norm-align`", _DE + _BOTH, f"{_DE}German-English{_ALONE}", f"{_DE}English-German{_ALONE}"),
            ("the best single layer, as in 2020", "", f"{_DE}German-English{_OLD}", f"{_DE}English-German{_OLD}"),
            ("eflomal, same text", *(_DE + _SAME.format(way) for way in ("both (grow-diag)", "De-En", "En-De"))),
            (
                "GIZA++, full Europarl (published)",
                *(f"{_DE}GIZA++, {way}" for way in ("grow diag final", "De-En", "En-De")),
            ),
        ),
    ),
    "main": (
        ("AER %", "text", "German-English", "English-French"),
        (
            ("**ours, both models**", "models' text", _DE + _BOTH, ""),
            (
                "ours, one model",
                "models' text",
                f"{_DE}German-English{_ALONE} / English-German{_ALONE}",
                f"{_FR}English-French alone, word table of the text (default)",
            ),
            (
                "norms of the best layer (2020)",
                "models' text",
                f"{_DE}German-English{_OLD} / English-German{_OLD}",
                f"{_FR}English-French{_OLD}",
            ),
            (
                "eflomal, both",
                "models' text",
                _DE + _SAME.format("both (grow-diag)"),
                f"{_FR}eflomal, both (intersection)",
            ),
            (
                "eflomal, one direction",
                "models' text",
                f"{_DE}eflomal, De-En; 87,652 pairs / eflomal, En-De; 87,652 pairs",
                f"{_FR}eflomal, En-Fr / eflomal, Fr-En",
            ),
            ("HMM, both", "models' text", f"{_DE}HMM (sil-thot), both (grow-diag-final); 87,652 pairs", ""),
            ("fast_align, both", "models' text", f"{_DE}fast_align (sil-thot), both (grow-diag); 87,652 pairs", ""),
            ("fast_align, published", "full text", f"{_DE}fast_align, grow diag final", f"{_FR}fast_align"),
            ("GIZA++, published", "full text", f"{_DE}GIZA++, grow diag final", f"{_FR}GIZA++"),
            ("Shift-Att, published", "full text", f"{_DE}Shift-Att, both", f"{_FR}Shift-Att, both"),
            ("Mask-Align, published", "full text", f"{_DE}Mask-Align, both", f"{_FR}Mask-Align, both"),
            (
                "awesome-align, published",
                "full text, mBERT",
                f"{_DE}awesome-align, fine-tuned",
                f"{_FR}awesome-align, fine-tuned",
            ),
            ("Cross-Align, published", "full text, pretrained model", f"{_DE}Cross-Align", f"{_FR}Cross-Align"),
        ),
    ),
}
GROUPS = {"ours": "norm-align and norms, bundled models", "measured": "measured here", "published": "published"}
#: Inches of a system's line, and of everything above and below the lines.
LINE, AROUND = 0.15, 0.55


def links(args: argparse.Namespace) -> Iterator[tuple[str, str, str, Path]]:
    """The rows with links: group, name, text that it was trained on, file of source-target links."""
    first, second = SETS[args.set][0]
    for a, b in ((first, second), (second, first)):
        for way, what in WAYS.items():
            yield "ours", f"{NAMES[a]}-{NAMES[b]}{what}", TEXTS[args.set], args.ours / f"{a}-{b}{way}.pharaoh"
    for way in ("", "-word-table"):
        name = f"both models,{WAYS[way].partition(',')[2]}"
        yield "ours", name, TEXTS[args.set], args.ours / f"both{way}.pharaoh"
    sides = {"forward": f"{first.title()}-{second.title()}", "reverse": f"{second.title()}-{first.title()}"}
    for row in (row for file in args.measured for row in json.loads(file.read_text(encoding="utf-8"))):
        what = sides.get(row["what"], f"both ({row['what'].split()[0]})")
        yield "measured", f"{TOOLS.get(row['tool'], row['tool'])}, {what}", row["text"], Path(row["links"])
    if args.stored is None:
        return
    for what, side in (("De-En", "fwd"), ("En-De", "rev")):
        yield "measured", f"eflomal, {what}", ALL, args.stored / f"eflomal/test.deen.{side}.talp"
    yield "measured", "eflomal, both (best symmetrised)", ALL, args.baseline
    for name, stem in (("fast_align", "fastalign"), ("GIZA++", "giza")):
        yield "published", f"{name}, De-En", EUROPARL, args.stored / stem / "test.deen.talp"
        backwards = (args.stored / stem / "test.deen.reverse.talp").read_text(encoding="utf-8").splitlines()
        turned = write(args.ours.parent / f"{stem}.reverse.talp", reversed_links(backwards))
        yield "published", f"{name}, En-De", EUROPARL, turned
        both = args.stored / stem / "test.deen.grow-diagonal-final.talp"
        yield "published", f"{name}, grow diag final", EUROPARL, both


def system(gold: Gold, group: str, name: str, text: str, path: Path, baseline: Path) -> dict[str, Any]:
    """A row: AER and its interval in %, and p against the baseline."""
    scored = gold.score(path)
    interval = scored["confidence"]["aer"]
    figures = {"aer": scored["aer"], "low": interval["low"], "high": interval["high"]}
    p = None if path == baseline else gold.p(baseline, path)
    return {
        "set": gold.name,
        "group": group,
        "name": name,
        "text": text,
        **{k: 100 * v for k, v in figures.items()},
        "p": p,
    }


def table(args: argparse.Namespace) -> None:
    """Write the figures."""
    gold = Gold(args.gold, args.set, args.ours.parent)
    rows = [system(gold, *row, args.baseline) for row in links(args)]
    common = {"set": args.set, "group": "published"}
    rows += [{**common, "name": name, "text": text, "aer": aer} for name, text, aer in FIGURES.get(args.set, ())]
    key = ["set", "group", "name", "text"]
    known = [pd.read_csv(args.csv)] if args.csv.exists() else []
    frame = pd.concat([*known, pd.DataFrame(rows).round(4)]).drop_duplicates(key, keep="last")
    frame.sort_values(["set", "aer"], ascending=[False, True], kind="stable").to_csv(args.csv, index=False)


def _cell(frame: pd.DataFrame, cell: str) -> str:
    """The figures of the rows that a cell names, or its words if it names none."""
    if ": " not in cell:
        return cell or "–"
    which, _, names = cell.partition(": ")
    found = []
    for name in names.split(" / "):
        wanted, _, text = name.partition("; ")
        row = frame[(frame.set == which) & (frame.name == wanted) & ((frame.text == text) | (not text))]
        found.append(f"{row.aer.item():.1f}")
    return " / ".join(found)


def page(args: argparse.Namespace) -> str:
    """A table of a page: its rows, each with the names of the rows of the CSV that its cells show."""
    frame = pd.read_csv(args.csv)
    titles, rows = PAGES[args.name]
    lines = []
    for title, *cells in rows:
        lines.append([title, *(_cell(frame, cell) for cell in cells)])
    return markdown(titles, lines)


@styled
def figure(args: argparse.Namespace) -> None:
    """Draw AER by system with its interval."""
    frame = pd.read_csv(args.csv)
    frame = frame[frame.set == TEST].sort_values("aer", ascending=False, ignore_index=True)
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
    save_figure(drawn, args.png, "AER of vilar508 by system, with 95 % intervals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("table")
    made.set_defaults(run=table)
    made.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the set")
    made.add_argument("--set", choices=TEXTS, default=TEST)
    made.add_argument("--ours", type=Path, required=True, metavar="DIR", help="links of ours.py")
    made.add_argument("--measured", type=Path, nargs="*", default=[], metavar="FILE", help="baselines.json")
    made.add_argument("--stored", type=Path, metavar="DIR", help="links that come with the gold")
    made.add_argument("--baseline", type=Path, required=True, metavar="FILE", help="eflomal, symmetrised")
    made.add_argument("--csv", type=Path, required=True, metavar="FILE")
    printed = commands.add_parser("page")
    printed.set_defaults(run=lambda args: print(page(args)))
    printed.add_argument("name", choices=PAGES)
    printed.add_argument("csv", type=Path)
    drawn = commands.add_parser("figure")
    drawn.set_defaults(run=figure)
    drawn.add_argument("csv", type=Path)
    drawn.add_argument("png", type=Path)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
