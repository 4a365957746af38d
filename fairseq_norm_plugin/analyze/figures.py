"""Draws the figures of an analysis, like Kobayashi et al. (2020, 2021).  Matplotlib is imported only when needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from fairseq_norm_plugin.maps.kinds import MIXING_KINDS


def save_figures(tables: dict[str, pd.DataFrame], directory: Path) -> list[Path]:
    """Draw, for each block type, mixing ratios by layer and by head, and norms against frequency.

    Constant kinds, and special tokens of unknown frequency, are omitted.

    Args:
        tables: from :meth:`fairseq_norm_plugin.analyze.run.Analysis.tables`.
        directory: an existing directory for the figures.

    Returns:
        The paths written.
    """
    paths = []
    mixing, correlated = tables["mixing"], tables["mixing_by_frequency"]
    for block, rows in mixing[mixing["token_class"] == "all"].groupby("block", sort=False):
        name = str(block).replace(".", "-")
        layers = rows[rows["head"].isna() & ~rows["kind"].isin(_constant_kinds(correlated, str(block)))]
        paths.append(_save(_lines(layers, str(block)), directory / f"mixing-{name}.png"))
        heads = rows[rows["head"].notna() & (rows["kind"] == "attn_n")]
        if len(heads):
            paths.append(_save(_heatmap(heads, str(block)), directory / f"mixing-heads-{name}.png"))
    for block, rows in tables["token_norms"].groupby("block", sort=False):
        name = str(block).replace(".", "-")
        paths.append(_save(_scatter(rows, str(block)), directory / f"norm-frequency-{name}.png"))
    return paths


def _constant_kinds(correlated: pd.DataFrame, block: str) -> set[str]:
    """Kinds without a correlation in any layer of ``block``, if other kinds have one."""
    of_block = correlated[correlated["block"] == block]
    varying = set(of_block["kind"][of_block["spearman"].notna()])
    return set(of_block["kind"]) - varying if varying else set()


def _figure(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.add_subplot()


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, dpi=150)
    return path


def _lines(rows: pd.DataFrame, block: str) -> Any:
    figure, axes = _figure(6.0, 3.6)
    for kind, marker in zip(MIXING_KINDS, "osv^Dx+*"):
        of_kind = rows[rows["kind"] == kind].sort_values("layer")
        if len(of_kind):
            axes.plot(of_kind["layer"], 100 * of_kind["mean"], marker=marker, label=kind)
    axes.set_xticks(sorted(rows["layer"].unique()))
    axes.set_ylim(0, 100)
    axes.set(xlabel="layer (from 0)", ylabel="mixing ratio %", title=block)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _heatmap(rows: pd.DataFrame, block: str) -> Any:
    grid = rows.pivot(index="layer", columns="head", values="mean")
    figure, axes = _figure(3.0 + 0.5 * grid.shape[1], 1.8 + 0.4 * grid.shape[0])
    image = axes.imshow(100 * grid.to_numpy(dtype=float), vmin=0, vmax=100, aspect="auto", cmap="viridis")
    axes.set_xticks(range(grid.shape[1]), grid.columns)
    axes.set_yticks(range(grid.shape[0]), grid.index)
    axes.set(xlabel="head", ylabel="layer (from 0)", title=f"{block}: mixing ratio of attn_n")
    figure.colorbar(image, label="%")
    return figure


def _scatter(rows: pd.DataFrame, block: str) -> Any:
    figure, axes = _figure(6.0, 3.8)
    # If a dictionary does not count its tokens, all have the same count.
    column, text = ("frequency", "training") if rows["frequency"].nunique() > 1 else ("occurrences", "analysed")
    counted = rows[rows[column].fillna(0) > 0]
    for token_class, of_class in counted.groupby("token_class", sort=False):
        axes.scatter(of_class[column], of_class["norm"], s=4, alpha=0.4, label=token_class)
    axes.set_xscale("log")
    axes.set(xlabel=f"frequency in the {text} text", ylabel="mean ‖f(x)‖", title=f"{block}, all layers")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
