"""Draws the figures of an analysis, like Kobayashi et al. (2020, 2021).  Matplotlib is imported only when needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from alignment_eval.figures.heatmap import draw_heatmap
from alignment_eval.figures.style import (
    COLUMN,
    DEFAULT,
    MARKERS,
    FigureOptions,
    add_legend,
    kind_look,
    kind_name,
    layer_colours,
    new_figure,
    place_name,
    styled,
)
from alignment_eval.maps.kinds import mixing_kinds
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_BLOCKS = {
    ENCODER_SELF: "encoder self-attention",
    DECODER_SELF: "decoder self-attention",
    DECODER_CROSS: "encoder-decoder attention",
}


def draw_figures(tables: dict[str, pd.DataFrame], options: FigureOptions = DEFAULT) -> dict[str, Figure]:
    """Draw, for each block type, mixing ratios by layer and by head, and norms against frequency; figures by name."""
    figures: dict[str, Figure] = {}
    mixing, correlated = tables["mixing"], tables["mixing_by_frequency"].set_index("block")
    correlations = tables["norm_by_frequency"].set_index(["block", "layer"])["spearman"]
    for block, rows in mixing[mixing["token_class"] == "all"].groupby("block", sort=False):
        name, title = str(block).replace(".", "-"), _BLOCKS[str(block)]
        # a kind that has no correlation in any layer, though others have one, is constant
        varying = correlated.loc[[block]].dropna(subset="spearman")["kind"]
        layers = rows[rows["head"].isna() & (rows["kind"].isin(varying) | varying.empty)]
        figures[f"mixing-{name}"] = _lines(layers, f"Mixing ratio, {title}", options)
        heads = rows[rows["head"].notna() & (rows["kind"] == "attn_n")]
        if len(heads):
            table = 100 * heads.pivot(index="layer", columns="head", values="mean")
            table.index = table.index.map(place_name)
            heading, scale = f"Mixing ratio of norms, {title}", "mixing ratio %"
            figures[f"mixing-heads-{name}"] = draw_heatmap(table, heading, (0, 100), scale, options, mark_lowest=False)
    for block, rows in tables["token_norms"].groupby("block", sort=False):
        name, heading = str(block).replace(".", "-"), f"Norm and frequency, {_BLOCKS[str(block)]}"
        figures[f"norm-frequency-{name}"] = _scatter(rows, correlations[block], heading, options)
    return figures


@styled()
def _lines(rows: pd.DataFrame, heading: str, options: FigureOptions) -> Figure:
    figure = new_figure(options.width or COLUMN, 2.3, options.heading_of(heading))
    axes = figure.add_subplot()
    for kind in mixing_kinds():
        of_kind = rows[rows["kind"] == kind].sort_values("layer")
        if len(of_kind):
            axes.plot(of_kind["layer"], 100 * of_kind["mean"], label=kind_name(kind), **kind_look(kind))
    axes.set_xticks(sorted(rows["layer"].unique()))
    axes.set_ylim(0, 100)
    axes.set(xlabel="layer", ylabel="mixing ratio %")
    axes.grid(axis="y")
    add_legend(figure, *axes.get_legend_handles_labels())
    return figure


@styled()
def _scatter(rows: pd.DataFrame, correlations: pd.Series[float], heading: str, options: FigureOptions) -> Figure:
    """Mean norms of token types by frequency, without special tokens, which no dictionary counts."""
    from matplotlib.ticker import LogFormatter

    figure = new_figure(options.width or COLUMN, 2.7, options.heading_of(heading))
    rows = rows[rows["frequency"].notna()]
    # If a dictionary does not count its tokens, all have the same count.
    column, text = ("frequency", "training") if rows["frequency"].nunique() > 1 else ("occurrences", "analysed")
    axes = figure.add_subplot()
    layers = sorted(rows["layer"].unique())
    for (layer, colour), marker in zip(layer_colours(layers).items(), MARKERS * len(layers)):
        counted = rows[(rows["layer"] == layer) & (rows[column] > 0)]
        rho = f"{correlations[layer]:.2f}" if np.isfinite(correlations[layer]) else "none"
        look: dict[str, Any] = {"color": colour, "marker": marker, "linewidths": 0}
        name = f"layer {layer}, ρ {rho}"
        axes.scatter(counted[column], counted["norm"], s=3, alpha=0.4, rasterized=True, label=name, **look)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")  # exponents would be too small to read
    axes.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=False))
    axes.set(xlabel=f"frequency in the {text} text", ylabel="mean ‖f(x)‖")
    legend: Any = add_legend(figure, *axes.get_legend_handles_labels())
    for handle in legend.legend_handles:  # marks that can be seen
        handle.set(alpha=1, sizes=[12])
    return figure
