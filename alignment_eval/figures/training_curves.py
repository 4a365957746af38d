"""Draws training curves: metrics by update.  Matplotlib is imported only when needed."""

from __future__ import annotations

import re
from itertools import cycle
from typing import TYPE_CHECKING, Any

from alignment_eval.figures.names import label_of, place_name
from alignment_eval.figures.style import (
    COLOURS,
    COLUMN,
    DEFAULT,
    PAGE,
    FigureOptions,
    add_heading,
    add_legend,
    layer_colours,
    new_figure,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_PARTS = re.compile(r"(?P<family>.+?)(?:_l(?P<layer>[0-9]+)_(?P<map>.+))?$")
_SHARES = re.compile(r"aer(_l[0-9]+_.*|_precision|_recall)?|mixing_.*")
#: Lines of subsets and maps, in the order in which they appear.
_LINES = ("-", (0, (1, 2)), (0, (5, 1.5)), (0, (9, 2, 1, 2, 1, 2)), (0, (3, 1, 1, 1)), (0, (1, 4)))


def is_share(metric: str) -> bool:
    """Whether a metric is a fraction that is shown in %: AER, its precision and recall, mixing ratios."""
    return _SHARES.fullmatch(metric) is not None


@styled
def draw_curves(table: pd.DataFrame, options: FigureOptions = DEFAULT) -> Figure:
    """A figure of metrics by update; values that are not finite leave a gap.

    ``aer`` and ``aer_l1_n_awo`` share a row of panels, as all metrics do that differ in layer and map only.  If there
    are metrics of layers, each run has a column and each layer a colour; else each run has a colour.  Lines show subset
    and map.

    ``table`` has the columns :data:`~alignment_eval.figures.training_log.COLUMNS`, and at least one row.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    names = table["metric"].str.extract(_PARTS)
    table = table.assign(**names, line=(table["subset"] + " " + names["map"].fillna("")).str.strip())
    table["value"] *= [100 if is_share(metric) else 1 for metric in table["metric"]]
    layers = sorted(table["layer"].dropna().astype(int).unique())
    runs, families, lines = (list(table[name].unique()) for name in ("run", "family", "line"))
    colours: dict[Any, Any] = {**layer_colours(layers)} if layers else dict(zip(runs, cycle(COLOURS)))
    styles = dict(zip(lines, cycle(_LINES)))

    columns = runs if layers else [None]
    figure = new_figure(options.width_for(COLUMN if len(columns) == 1 else PAGE), 1.0 + 1.5 * len(families))
    panels = figure.subplots(len(families), len(columns), sharex=True, sharey="row", squeeze=False)
    for family, row in zip(families, panels):
        row[0].set_ylabel(family.replace("aer", "AER") + (" %" if is_share(family) else ""))
        for run, axes in zip(columns, row):
            drawn = table[(table["family"] == family) & (True if run is None else table["run"] == run)]
            for (name, line, layer), rows in drawn.groupby(["run", "line", "layer"], sort=False, dropna=False):
                colour = colours.get(int(layer), "") if layer == layer else "grey" if layers else colours[name]
                marker = "." if len(rows) <= 40 else None
                axes.plot(rows["update"], rows["value"], color=colour, linestyle=styles[line], marker=marker)
            axes.grid()
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    for run, axes in zip(columns, panels[0]):
        axes.set_title("" if run is None else label_of(run), parse_math=False)
    for axes in panels[-1]:
        axes.set_xlabel("update")
    add_heading(figure, options.heading_of(""))
    entries = {place_name(key) if layers else label_of(key): Line2D([], [], color=c) for key, c in colours.items()}
    entries.update({label_of(line): Line2D([], [], color="grey", linestyle=styles[line]) for line in lines})
    add_legend(figure, list(entries.values()), list(entries))
    return figure
