"""How often links of a confidence are right: docs/figures/confidences.csv, and what is made of it.

    confidences.py count --set SET --gold DIR [--models DIR] --out DIR --csv CSV
    confidences.py page CSV
    confidences.py figure CSV PNG

``count`` aligns a gold set as ours.py does.  A link is right if the gold has it, sure or possible.  CSV gets a row for
each set, model and tenth of the confidence, with the mean confidence and the share of right links; rows of other sets
stay.  ``page`` prints the expected calibration errors, the table of docs/reproduction.md: the mean distance of the two
numbers in a tenth, weighted by its links.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from gold_sets import DEMO, SETS, TEST, Gold, markdown, run_script
from ours import BOTH, Aligner

from alignment_eval.figures.style import COLUMN, MARKERS, add_legend, new_figure, save_figure, styled
from alignment_eval.links.files import read_hypothesis

ONE = "one model"
#: A tenth of fewer links is not drawn.
FEW = 20


def counted(aligner: Aligner, way: str) -> pd.DataFrame:
    """The confidence of each link, and whether it is right."""
    file = aligner.made(f"{way}-confidences", way, "--confidences")
    swap = way not in (BOTH, next(iter(aligner.checkpoints)))
    rows = []
    for sentence, gold in zip(read_hypothesis(file), aligner.gold.links, strict=True):
        for (i, j), confidence in (sentence.confidence or {}).items():
            rows.append((confidence, ((j, i) if swap else (i, j)) in gold.possible))
    return pd.DataFrame(rows, columns=["confidence", "right"])


def count(args: argparse.Namespace) -> None:
    """Write the figures."""
    gold = Gold(args.gold, args.set, args.out)
    aligner = Aligner(args.models, gold, args.out)
    frames = [pd.read_csv(args.csv)] if args.csv.exists() else []
    for way in aligner.ways:
        links = counted(aligner, way)
        tenth = np.minimum((10 * links["confidence"] + 1e-9).astype(int), 9)
        of_tenths = links.groupby(tenth).agg(
            links=("right", "size"), confidence=("confidence", "mean"), right=("right", "mean")
        )
        frames.append(of_tenths.rename_axis("tenth").reset_index().assign(set=gold.name, models=way))
    columns = ["set", "models", "tenth", "links", "confidence", "right"]
    frame = pd.concat(frames)[columns].drop_duplicates(columns[:3], keep="last")
    frame.sort_values(columns[:3], kind="stable").round(4).to_csv(args.csv, index=False)


def columns(frame: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Set, models and rows of each column of the table: both models, and one, of both directions."""
    for name, of_set in frame.groupby("set"):
        for models, is_both in ((f"{BOTH} models", True), (ONE, False)):
            rows = of_set[(of_set["models"] == BOTH) == is_both]
            if len(rows):
                yield str(name), models, rows


def error(rows: pd.DataFrame) -> str:
    """The expected calibration error of each direction."""
    found = []
    for _, of_way in rows.groupby("models", sort=False):
        distance = (of_way["confidence"] - of_way["right"]).abs()
        found.append(f"{np.average(distance, weights=of_way['links']):.3f}")
    return " / ".join(found)


def page(args: argparse.Namespace) -> None:
    """Print the calibration errors."""
    errors = {(models, name): error(rows) for name, models, rows in columns(pd.read_csv(args.csv))}
    table = pd.Series(errors).unstack().rename_axis("calibration error").reset_index()
    print(markdown(list(table.columns), table.to_numpy().tolist()))


@styled()
def figure(args: argparse.Namespace) -> None:
    """Draw the share of right links by confidence, and below how many links have it."""
    drawn = new_figure(COLUMN, 1.4 * COLUMN)
    axes, counts = drawn.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    for number, (name, models, rows) in enumerate(columns(pd.read_csv(args.csv))):
        weighed = rows[["confidence", "right"]].mul(rows["links"], axis=0).groupby(rows["tenth"]).sum()
        size = rows.groupby("tenth")["links"].sum()
        means = weighed[size >= FEW].div(size[size >= FEW], axis=0).assign(links=size)
        look: dict[str, Any] = {"marker": MARKERS[number // 2], "color": f"C{2 * (number // 2)}"}
        look["linestyle"] = "--" if models == ONE else "-"
        label = f"{name}, {'1 model' if models == ONE else '2 models'}"
        axes.plot(means["confidence"], means["right"], label=label, **look)
        counts.plot(means["confidence"], means["links"], **look)
    axes.plot([0, 1], [0, 1], color="0.6", linestyle=":", label="share = confidence")
    axes.set_xlim(0.4, 1.01)
    axes.set_ylim(0.4, 1.01)
    axes.set_ylabel("share in the gold")
    counts.set_yscale("log")
    counts.set_ylabel("links")
    counts.set_xlabel("mean confidence of the links of a tenth")
    for panel in (axes, counts):
        panel.grid()
    add_legend(drawn, *axes.get_legend_handles_labels())
    save_figure(drawn, args.png, "Share of links that are in the gold, by confidence")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("count")
    made.set_defaults(run=count)
    made.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with the set")
    made.add_argument("--set", choices=SETS, default=TEST)
    made.add_argument("--models", type=Path, default=DEMO, metavar="DIR")
    made.add_argument("--out", type=Path, required=True, metavar="DIR")
    made.add_argument("--csv", type=Path, required=True, metavar="FILE")
    printed = commands.add_parser("page")
    printed.set_defaults(run=page)
    printed.add_argument("csv", type=Path)
    drawn = commands.add_parser("figure")
    drawn.set_defaults(run=figure)
    drawn.add_argument("csv", type=Path)
    drawn.add_argument("png", type=Path)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    run_script(main)
