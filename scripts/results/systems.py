"""AER of our models, and of measured and published aligners: docs/figures/systems.csv, and what is made of it.

    systems.py table --set SET --gold DIR --rows FILE … --baseline FILE --csv CSV
    systems.py figure CSV PNG
    systems.py page main CSV

``table`` scores the links of ours.py and baselines.py (--rows), on vilar508 also those that come with the gold
(--stored), with 95 % intervals and paired tests against eflomal's symmetrised links.  It replaces these rows of CSV and
keeps all others: figures that are published without links stand only there.  ``figure`` draws the main table's rows of
vilar508.  ``page`` prints the table of a page: ``main`` of docs/reproduction.md, ``readme`` of README.md.  A test holds
that the pages have them.
"""

import argparse
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from gold_sets import SETS, TEST, Gold, markdown, run_script, write

import alignment_eval as ae
from alignment_eval.figures.style import COLUMN, MARKERS, add_legend, new_figure, save_figure, styled
from alignment_eval.links.formats import format_links
from alignment_eval.scoring.significance import Resampling, confidence

ALL, EUROPARL = "295,000 pairs", "full Europarl"
#: Set -> how many pairs its models were trained on, and its directions, with their short names.
SHOWN = {
    TEST: ("87,652", {"German-English": "De-En", "English-German": "En-De"}),
    "hansards447": ("294,210", {"English-French": "En-Fr", "French-English": "Fr-En"}),
    "czenali2500": ("118,829", {"Czech-English": "Cs-En", "English-Czech": "En-Cs"}),
}
OWN, FULL = "models' text", "full text"
#: Row of the main table -> its text, and a pattern of names; {} is each direction, {short} its short name.
MAIN = {
    "**ours, both models**": (OWN, r"both models, .*\(default( of before)?\)"),
    "ours, one model": (OWN, r"{} alone, .*\(default( of before)?\)"),
    "norms of the best layer (2020)": (OWN, r"{}, norms of the best layer \(2020\)"),
    "fairseq's own `--print-alignment`": (OWN, "{}, fairseq's own --print-alignment"),
    "eflomal, both": (OWN, "eflomal, both .*"),
    "eflomal, one direction": (OWN, "eflomal, {short}"),
    "HMM, both": (OWN, "HMM .*, both .*"),
    "fast_align, both": (OWN, "fast_align .*, both .*"),
    "fast_align, published links": (FULL, "fast_align(, grow diag final)?"),
    "GIZA++, published links": (FULL, r"GIZA\+\+(, grow diag final)?"),
    "Shift-Att, published": (FULL, "Shift-Att, both"),
    "Shift-AET, published": (FULL, "Shift-AET, both.*"),
    "Mask-Align, published": (FULL, "Mask-Align, both"),
    "BTBA, published": (FULL, "BTBA, both"),
    "awesome-align, published": (FULL, "awesome-align, fine-tuned"),
    "Cross-Align, published": (FULL, "Cross-Align"),
}
GROUPS = {"ours": "ours, 87,652 pairs", "measured": "measured, same pairs", "published": "published, full Europarl"}
#: Inches of a system's line, and of everything above and below the lines.
LINE, AROUND = 0.15, 1.0


def stored_links(folder: Path, baseline: Path, out: Path) -> Iterator[tuple[str, str, str, Path]]:
    """The rows of the links that come with the gold: group, name, text, file of source-target links."""
    for what, side in (("De-En", "fwd"), ("En-De", "rev")):
        yield "measured", f"eflomal, {what}", ALL, folder / f"eflomal/test.deen.{side}.talp"
    yield "measured", "eflomal, both (best symmetrised)", ALL, baseline
    for name, stem in (("fast_align", "fastalign"), ("GIZA++", "giza")):
        yield "published", f"{name}, De-En", EUROPARL, folder / stem / "test.deen.talp"
        turned = map(format_links, ae.read_links(folder / stem / "test.deen.reverse.talp", swap=True))
        yield "published", f"{name}, En-De", EUROPARL, write(out / f"{stem}.reverse.talp", turned)
        yield "published", f"{name}, grow diag final", EUROPARL, folder / stem / "test.deen.grow-diagonal-final.talp"


def system(gold: Gold, group: str, name: str, text: str, path: Path, baseline: Path | None) -> dict[str, Any]:
    """A row: AER and its interval in %, and p against the baseline if its links are there."""
    score = gold.score(ae.read_links(path))
    interval = confidence(score.per_sentence, Resampling())["aer"]
    assert interval is not None  # AER is always defined
    figures = {"aer": 100 * score.aer, "low": 100 * interval.low, "high": 100 * interval.high}
    p = None if baseline is None or path == baseline else gold.p(baseline, path)
    return {"set": gold.name, "group": group, "name": name, "text": text, **figures, "p": p}


def table(args: argparse.Namespace) -> None:
    """Write the figures."""
    out = args.rows[0].parent
    gold = Gold(args.gold, args.set, out)
    made = (row for file in args.rows for row in csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
    links = [(row["group"], row["name"], row["text"], Path(row["links"])) for row in made]
    links += [] if args.stored is None else stored_links(args.stored, args.baseline, out)
    rows = pd.DataFrame([system(gold, *row, args.baseline) for row in links]).round(4)
    frame = pd.concat([pd.read_csv(args.csv), rows]).drop_duplicates(["set", "group", "name", "text"], keep="last")
    frame.sort_values(["set", "aer"], ascending=[False, True], kind="stable").to_csv(args.csv, index=False)


def page(args: argparse.Namespace) -> str:
    """The table of a page."""
    return {"main": main_table, "readme": readme_table}[args.name](pd.read_csv(args.csv))


def named(frame: pd.DataFrame, name: str, text: str, pattern: str) -> list[Any]:
    """The rows of a set that ``pattern`` names, one for each direction if it has a place for them."""
    pairs, directions = SHOWN[name]
    read = frame[(frame["set"] == name) & ((text != OWN) | frame["text"].str.startswith(f"{pairs} "))]
    patterns = dict.fromkeys(pattern.format(way, short=short) for way, short in directions.items())
    found = [read[read["name"].str.fullmatch(one)] for one in patterns]
    return [next(rows.itertuples()) for rows in found if len(rows)]


def aer(frame: pd.DataFrame, name: str, text: str, pattern: str) -> str:
    """The AER of the rows of a set that ``pattern`` names."""
    return " / ".join(f"{row.aer:.1f}" for row in named(frame, name, text, pattern)) or "–"


def readme_table(frame: pd.DataFrame) -> str:
    """The table of README.md: the rows of the main table that a newcomer asks for."""
    names = {
        "**`norm-align`, two models**": "**ours, both models**",
        "`norm-align`, one model": "ours, one model",
        "norms of the best layer, as in 2020": "norms of the best layer (2020)",
        "fairseq's own `--print-alignment`": "fairseq's own `--print-alignment`",
        "eflomal, on the same text": "eflomal, both",
        "GIZA++, on much more text (published links)": "GIZA++, published links",
        "BTBA, trained to align, on 20 times the text (published)": "BTBA, published",
        "Cross-Align, trained to align, a pretrained model (published)": "Cross-Align, published",
    }
    rows = [[shown, *(aer(frame, name, *MAIN[row]) for name in SHOWN)] for shown, row in names.items()]
    return markdown(["AER %", *(next(iter(ways)) for _, ways in SHOWN.values())], rows)


def main_table(frame: pd.DataFrame) -> str:
    """The main table of docs/reproduction.md."""
    rows = [[row, *(aer(frame, name, *wanted) for name in SHOWN)] for row, wanted in MAIN.items()]
    return markdown(["AER %", *(next(iter(ways)) for _, ways in SHOWN.values())], rows)


@styled()
def figure(args: argparse.Namespace) -> None:
    """Draw AER by system with its interval: the rows of the main table, of two directions the first."""
    every = pd.read_csv(args.csv)
    frame = pd.DataFrame(
        {**row._asdict(), "name": name.strip("*").partition(", published")[0]}
        for name, wanted in MAIN.items()
        for row in named(every, TEST, *wanted)[:1]
        if name not in ("eflomal, one direction", "fairseq's own `--print-alignment`")
    )
    frame = frame.sort_values("aer", ascending=False, ignore_index=True)
    drawn = new_figure(COLUMN, LINE * len(frame) + AROUND)
    axes = drawn.subplots()
    for number, (group, label) in enumerate(GROUPS.items()):
        part = frame[frame.group == group]
        reach = [(part.aer - part.low).fillna(0), (part.high - part.aer).fillna(0)]
        look: dict[str, Any] = {"fmt": MARKERS[number], "color": f"C{2 * number}", "capsize": 2, "label": label}
        axes.errorbar(part.aer, part.index, xerr=reach, **look)
    for place, row in frame.iterrows():
        edge = row.aer if pd.isna(row.high) else row.high
        axes.annotate(f"{row.aer:.1f}", (edge, place), (4, 0), textcoords="offset points", va="center")
    pretrained = frame["text"].str.contains("mBERT|pretrained").map({True: " (pretrained)", False: ""})
    axes.set_yticks(frame.index, frame["name"] + pretrained)
    axes.set_ylim(-0.7, len(frame) - 0.3)
    axes.set_xlim(10, frame[["aer", "high"]].max().max() + 7)
    axes.grid(axis="x")
    axes.set_xlabel("AER % of vilar508, 95 % interval")
    add_legend(drawn, *axes.get_legend_handles_labels())
    save_figure(drawn, args.png, "AER of vilar508 by system, with 95 % intervals")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("table")
    made.set_defaults(run=table)
    made.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the set")
    made.add_argument("--set", choices=SETS, default=TEST)
    made.add_argument(
        "--rows", type=Path, nargs="+", required=True, metavar="FILE", help="rows.csv of the other scripts"
    )
    made.add_argument("--stored", type=Path, metavar="DIR", help="links that come with the gold")
    made.add_argument("--baseline", type=Path, metavar="FILE", help="eflomal, symmetrised")
    made.add_argument("--csv", type=Path, required=True, metavar="FILE")
    printed = commands.add_parser("page")
    printed.set_defaults(run=lambda args: print(page(args)))
    printed.add_argument("name", choices=["main", "readme"])
    printed.add_argument("csv", type=Path)
    drawn = commands.add_parser("figure")
    drawn.set_defaults(run=figure)
    drawn.add_argument("csv", type=Path)
    drawn.add_argument("png", type=Path)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    run_script(main)
