"""Runs the analyses of Kobayashi et al. (2020, 2021) on a trained model and a data set; writes tables and figures.

The model runs once over the subset, teacher-forced, in float32; memory does not grow with the data.  OUT receives
``summary.json``, the tables ``*.csv`` and figures (docs/analysis.md).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from alignment_eval.command_line import CommandParser, add_list, add_output, check_outputs, exit_status
from alignment_eval.errors import InputError, UsageError, require_known, say
from alignment_eval.figures.style import (
    COLUMN,
    DEFAULT,
    MARKERS,
    FigureOptions,
    add_figure_options,
    add_legend,
    draw_heatmap,
    figure_options,
    kind_look,
    kind_name,
    layer_colours,
    new_figure,
    place_name,
    save_figures,
    styled,
)
from alignment_eval.files import check_directory, new_directory, write_bytes, write_lines
from alignment_eval.maps.sentence import mixing_kinds
from fairseq_norm_plugin.environment import set_up_torch, silence_libraries

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


#: The five kinds of Kobayashi et al. 2021; an option adds those through the feed-forward network.
DEFAULT_MIXING = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n")
PROG = "norm-analyze"
_DESCRIPTION = "Mixing ratios, special tokens, norms and frequency of every block, over a data set; tables and figures"
_EPILOG = """\
Example, after make demo:
  norm-analyze out/demo/bin --path data/demo/checkpoint.pt -o out/analysis --cpu
"""
_BLOCKS = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "encoder-decoder attention",
}
_TABLES = ("mixing", "mixing_by_frequency", "attention", "weight_norm_correlation", "norm_by_frequency", "token_norms")
_OWN_FILES = re.compile(
    rf"summary\.json|({'|'.join(_TABLES)})\.csv|(mixing|mixing-heads|norm-frequency)-[a-z-]+\.(png|svg|pdf)"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    set_up_torch()
    silence_libraries()
    words = sys.argv[1:] if argv is None else list(argv)
    return exit_status(PROG, lambda: _parsed(words), run)


def _parsed(words: Sequence[str]) -> Any:
    """Parse the command line: first what is known without fairseq, then everything."""
    ours = CommandParser(lenient=True, prog=PROG, description=_DESCRIPTION, epilog=_EPILOG)
    more = "also any other option of fairseq-generate that reads them, such as --max-tokens"
    group = ours.add_argument_group("data and model", more)
    group.add_argument("data", metavar="DATA", help="directory that fairseq-preprocess made")
    group.add_argument("--path", required=True, metavar="CHECKPOINT", help="the model, a fairseq checkpoint")
    for name in ("source", "target"):
        group.add_argument(f"-{name[0]}", f"--{name}-lang", metavar="LANG", help="default: by the names in DATA")
    group.add_argument("--gen-subset", metavar="NAME", help="subset of DATA to analyse (default: test)")
    help_ = "translation_norm (default), or masked_lm_norm for a masked language model, such as BERT"
    group.add_argument("--task", metavar="TASK", help=help_)
    group.add_argument("--cpu", action="store_true", help="do not use a GPU")
    _add_analysis(ours)
    ours.parse_known_args(words)

    import fairseq_norm_plugin.tasks  # noqa: F401  # fairseq is imported there first

    # isort: split
    from fairseq import options

    fairseqs = options.get_parser("analyze", default_task="translation_norm")
    options.add_dataset_args(fairseqs, gen=True)
    options.add_common_eval_args(fairseqs)
    # options of a task and a model come later; -h is fairseq's, too
    parser = CommandParser(lenient=True, prog=PROG, parents=[fairseqs], conflict_handler="resolve")
    _add_analysis(parser)
    return options.parse_args_and_arch(parser, input_args=list(words))


def _add_analysis(parser: CommandParser) -> None:
    """Declare what is analysed and written."""
    group = parser.add_argument_group("analysis")
    add_output(group, "directory for tables and figures", metavar="DIR", required=True)
    help_ = f"kinds of mixing ratios, of {', '.join(mixing_kinds())} (default: the first five)"
    add_list(group, "--mixing-kinds", help_, metavar="KIND", default=DEFAULT_MIXING)
    add_figure_options(parser, several=True)


def run(args: Any) -> None:
    """Check ``args`` (fairseq's namespace), analyse the model and subset that they name, and write the results."""
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    from fairseq_norm_plugin.analyze.statistics import analyse

    for kind in args.mixing_kinds:
        require_known("kind of mixing ratio", kind, mixing_kinds())
    check_outputs(args, [args.data, args.path])
    check_directory(args.output, args.overwrite, _OWN_FILES)
    if ":" in args.path:
        raise UsageError(f"--path {args.path}: give one checkpoint; analyse the models of an ensemble one by one")
    if not Path(args.path).is_file():
        raise InputError(
            f"{args.path}: no such file; give a fairseq checkpoint; python -m fairseq_norm_plugin.convert makes one of "
            f"a model in the format of Transformers"
        )
    tables, summary = analyse(convert_namespace_to_omegaconf(args), args.path, args.mixing_kinds)
    layers = tables["mixing"].query("head.isna() and token_class == 'all'")
    summary["mixing_ratio"] = json.loads(layers[["block", "layer", "kind", "mean"]].to_json(orient="records"))
    with new_directory(args.output, args.overwrite, _OWN_FILES) as directory:
        for name, table in tables.items():
            write_bytes(directory / f"{name}.csv", [table.to_csv(index=False).encode()])
        write_lines(directory / "summary.json", [json.dumps(summary, indent=1, ensure_ascii=False)])
        save_figures(draw_figures(tables, figure_options(args)), directory, args.figure_formats)
    means = layers.pivot(index=["block", "layer"], columns="kind", values="mean").mul(100).round(1)
    order = layers.set_index(["block", "layer"]).index.unique()  # pivot sorts rows and columns
    print(means.reindex(index=order, columns=layers["kind"].unique()).to_string(na_rep="-"))
    say(f"{PROG}: wrote {args.output}")


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
        of_classes = mixing[(mixing["block"] == block) & mixing["head"].isna() & (mixing["token_class"] != "all")]
        kind = layers["kind"].iloc[-1]
        heading = f"{kind_name(kind).capitalize()} by token, {title}"
        figures[f"mixing-classes-{name}"] = _lines(
            of_classes[of_classes["kind"] == kind], heading, options, "token_class"
        )
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
def _lines(rows: pd.DataFrame, heading: str, options: FigureOptions, lines: str = "kind") -> Figure:
    """Mean mixing ratios by layer, with a line for each value of the column ``lines``."""
    figure = new_figure(options.width or COLUMN, 2.3, options.heading_of(heading))
    axes = figure.add_subplot()
    for number, (name, of_line) in enumerate(rows.groupby(lines, sort=False)):
        look = kind_look(str(name)) if lines == "kind" else {"marker": MARKERS[number]}
        axes.plot(of_line["layer"], 100 * of_line["mean"], label=kind_name(str(name)), **look)
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
