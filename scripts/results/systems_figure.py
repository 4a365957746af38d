"""Draws AER by system with its 95 % interval, from a table of systems.py; usage: systems_figure.py CSV PNG."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from alignment_eval.figures.style import COLOURS, HEADING, MARKERS, PAGE, TYPE, new_figure, save_figure, styled

GROUPS = {"ours": "norm-align and norms, bundled models", "measured": "measured here", "published": "published"}
#: Inches of a system's line, and of everything above and below the lines.
LINE, AROUND = 0.15, 0.55


@styled
def main(table: str, out: str) -> None:
    frame = pd.read_csv(table).sort_values("aer", ascending=False, ignore_index=True)
    figure = new_figure(PAGE, LINE * len(frame) + AROUND)
    axes = figure.subplots()
    for number, (group, label) in enumerate(GROUPS.items()):
        part = frame[frame.group == group]
        reach = [(part.aer - part.low).fillna(0), (part.high - part.aer).fillna(0)]
        axes.errorbar(
            part.aer, part.index, xerr=reach, fmt=MARKERS[number], color=COLOURS[2 * number], capsize=2, label=label
        )
    for place, row in frame.iterrows():
        edge = row.aer if pd.isna(row.high) else row.high
        axes.annotate(f"{row.aer:.1f}", (edge, place), (4, 0), textcoords="offset points", va="center", fontsize=TYPE)
    axes.set_yticks(
        frame.index, [f"{row.system} – {row.text}" for row in frame.rename(columns={"name": "system"}).itertuples()]
    )
    axes.set_ylim(-0.7, len(frame) - 0.3)
    axes.set_xlim(10, frame[["aer", "high"]].max().max() + 4)
    axes.grid(axis="x")
    axes.set_xlabel("AER % of vilar508, with 95 % intervals where links are at hand")
    axes.legend(loc="upper right", fontsize=TYPE, title_fontsize=HEADING)
    save_figure(figure, Path(out), "AER of vilar508 by system, with 95 % intervals", dpi=150)


if __name__ == "__main__":
    main(*sys.argv[1:])
