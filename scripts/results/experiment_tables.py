"""The tables of docs/reproduction-tables.md, from files of experiment.py; usage: experiment_tables.py DIR."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

KINDS = {"attn_w": "weights", "attn_n": "norms"}


def tables(out: Path) -> str:
    """All tables in Markdown."""
    parts = []
    for sweep in sorted(out.glob("sweep/*-vilar508")):
        direction = sweep.name.removesuffix("-vilar508")
        frame = pd.read_csv(sweep / "sweep.csv")
        parts += [f"### {direction}, layers and heads", by_layer(frame), by_head(frame), sets(out, direction)]
    rows = json.loads((out / "rows.json").read_text(encoding="utf-8"))
    parts += ["### ablation", ablation(rows), "### mixing ratios"]
    parts += [mixing(pd.read_csv(path), path.parent.name) for path in sorted(out.glob("mixing/*/mixing.csv"))]
    return "\n\n".join(part for part in parts if part)


def by_layer(frame: pd.DataFrame) -> str:
    """AER of whole layers as in the 2020 paper: rule kobayashi2020, null allowed; then null masked."""
    frame = frame[(frame.rule == "kobayashi2020") & frame.kind.isin(KINDS)]
    layers = sorted(frame.layer.unique())
    lines = []
    for (setting, null, kind), group in frame.groupby(["setting", "null", "kind"], sort=False):
        whole = group[group.level == "layer"].set_index("layer").aer
        best = group[group.level == "head"].sort_values("aer").iloc[0]
        figures = [f"{100 * whole[layer]:.2f}" for layer in layers]
        mean = f"{100 * whole.mean():.2f}"
        head = f"{100 * best.aer:.2f} ({best.layer:.0f}, {best['head']:.0f})"
        lines.append([str(setting).upper(), KINDS[str(kind)], str(null), *figures, mean, head])
    lines.sort(key=lambda line: (line[2], line[0], line[1] != "weights"))
    return markdown(["setting", "map", "`</s>`", *(f"layer {x:.0f}" for x in layers), "layer mean", "best head"], lines)


def by_head(frame: pd.DataFrame) -> str:
    """AER of every head, AWO, null masked: weights / norms."""
    frame = frame[(frame.level == "head") & (frame.rule == "kobayashi2020") & (frame.null == "mask")]
    lines = []
    for (setting, layer), group in frame[frame.kind.isin(KINDS)].groupby(["setting", "layer"]):
        pairs = group.pivot(index="head", columns="kind", values="aer")
        cells = [f"{100 * w:.1f} / {100 * n:.1f}" for w, n in zip(pairs["attn_w"], pairs["attn_n"])]
        lines.append([str(setting).upper(), f"{layer:.0f}", *cells])
    return markdown(["setting", "layer", *(f"head {head:.0f}" for head in sorted(frame["head"].unique()))], lines)


def sets(out: Path, direction: str) -> str:
    """How AER on the development set falls with each map that the choice adds."""
    steps = out / "choices" / f"{direction}-set-norms.txt"
    if not steps.exists():
        return ""
    text = steps.read_text(encoding="utf-8")
    begin = text.find("From the best map")
    if begin < 0:  # one map is best, and none lowers AER beside it
        choice = text[text.index("Choice:") :].splitlines()[0]
        return f"Sets of maps of norms, chosen greedily on cmu150: a single one. {choice}"
    table = text[begin:].split("\n\n")[0]
    return f"Sets of maps of norms, chosen greedily on cmu150:\n\n```\n{table.strip()}\n```"


def ablation(rows: Iterable[dict[str, Any]]) -> str:
    """One line a row: development and test figure, interval, difference from the 2020 way and from eflomal, with p."""
    lines = []
    for row in rows:
        interval = row["confidence"]["aer"]
        lines.append(
            [
                row["direction"],
                row["what"].replace("</s>", "`</s>`"),
                percent(row.get("dev_aer")),
                f"{percent(row['aer'])} [{percent(interval['low'])}, {percent(interval['high'])}]",
                difference(row.get("against_norms")),
                difference(row.get("against_eflomal")),
            ]
        )
    header = ["direction", "row", "cmu150", "vilar508 [95 %]", "against norms (p)", "against eflomal (p)"]
    return markdown(header, lines)


def difference(figures: dict[str, float] | None) -> str:
    return "" if figures is None else f"{100 * figures['delta']:+.2f} ({figures['p_randomisation']:.4f})"


def mixing(frame: pd.DataFrame, direction: str) -> str:
    """Mixing ratios of layers, by block and kind."""
    frame = frame[frame["head"].isna() & (frame.token_class == "all")]
    layers = sorted(frame.layer.unique())
    lines = [
        [direction, str(block), str(kind), *(f"{100 * means[layer]:.1f}" for layer in layers)]
        for (block, kind), means in frame.set_index("layer").groupby(["block", "kind"], sort=False)["mean"]
    ]
    return markdown(["direction", "block", "kind", *(f"layer {layer:.0f}" for layer in layers)], lines)


def percent(fraction: float | None) -> str:
    return "" if fraction is None else f"{100 * fraction:.2f}"


def markdown(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    print(tables(Path(sys.argv[1])))
