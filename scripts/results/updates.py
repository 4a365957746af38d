"""Draws AER by training updates: docs/figures/updates.png of docs/figures/updates.csv.

    updates.py CSV PNG

CSV has a row for each checkpoint and way to make links: updates, links, aer in %; a way without updates is a line.  The
checkpoints are those of scripts/train.sh; norm-align calibrate and norm-align --table text made the links of each.
"""

import argparse
from pathlib import Path

import pandas as pd
from gold_sets import run_script

from alignment_eval.figures.style import COLUMN, MARKERS, new_figure, save_figure, styled


@styled()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("csv", type=Path)
    parser.add_argument("png", type=Path)
    args = parser.parse_args()
    frame = pd.read_csv(args.csv)
    drawn = new_figure(COLUMN, 0.7 * COLUMN)
    axes = drawn.subplots()
    for number, (name, rows) in enumerate(frame.groupby("links", sort=False)):
        color = f"C{2 * number}"
        if rows["updates"].isna().all():
            axes.axhline(rows["aer"].iloc[0], label=name, color=color, linestyle=":")
        else:
            axes.plot(rows["updates"], rows["aer"], label=name, color=color, marker=MARKERS[number])
    axes.set_xlabel("updates of the model")
    axes.set_ylabel("AER % of sv-en-ges864")
    axes.set_ylim(0, 1.1 * frame["aer"].max())
    axes.set_xlim(left=0)
    axes.grid()
    axes.legend()
    save_figure(drawn, args.png, "AER of sv-en-ges864 by updates of the Swedish-English model")


if __name__ == "__main__":
    run_script(main)
