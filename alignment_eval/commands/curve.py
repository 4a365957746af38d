"""``align-eval curve``: AER and mixing ratios by update, from the logs of fairseq-train.

A line of statistics is one of these, after its date and tag, as fairseq or hydra writes them; the last value says at
which update it was logged::

    {"epoch": 1, "test1_loss": "7.6", "test1_aer": "0.4", "test1_num_updates": "200"}
    epoch 001 | valid on 'test1' subset | loss 7.6 | aer 0.4 | num_updates 200
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase
from html import escape
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alignment_eval.command_line import Input, add_list, add_output
from alignment_eval.errors import InputError, UsageError, printable, say, warn_user
from alignment_eval.figures import style
from alignment_eval.files import check_new, signature, write_lines
from alignment_eval.reading import TextFile

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

EPILOG = """\
Examples:
  align-eval curve data/demo/training.log -o out/curve.png
  align-eval curve data/demo/training.log --metrics aer,nll_loss -o out/curve.csv

A pattern has *, ? and [...].  It is compared with the name of a metric, with and without its subset (test_aer, aer).
"""
_METRICS = ("aer", "aer_l*", "mixing_*")
#: Columns of the table; ``value`` is as logged (AER is a fraction), NaN if it was not finite.  ``part`` counts from 0:
#: AERs of different parts of a run are of another gold, other texts or another map, so they are no one curve.
COLUMNS = ("run", "subset", "update", "metric", "part", "value")
#: Metrics that say what an AER is of -> what that is.
_OF = {"aer_gold": "the gold", "aer_texts": "the texts", "aer_method": "the map or the rule"}
_OF_GOLD = re.compile(r"aer(_l[0-9]+_.*|_precision|_recall)?")
_JSON = re.compile(r'(?:^|[|\]:-] )(\{".*)')
_PLAIN = re.compile(r"(?:^|[|\]:-] )epoch [0-9]+ \| (?:valid on '([^']+)' subset \| )?(.*)")
#: A metric: the family that has a row of panels, and of which layer and map it is.
_METRIC_NAME = re.compile(r"(?P<family>.+?)(?:_l(?P<layer>[0-9]+)_(?P<map>.+))?$")
#: Lines of subsets and maps, in the order in which they appear.
_LINES = ("-", (0, (1, 2)), (0, (5, 1.5)), (0, (9, 2, 1, 2, 1, 2)), (0, (3, 1, 1, 1)), (0, (1, 4)))
#: The line of a metric of the whole, under those of its layers.
_BROAD = {"color": "0.8", "linewidth": 4, "zorder": 1}
_STYLE = (
    "body{font-family:sans-serif;margin:2em auto;padding:0 1em;max-width:60em}figure{margin:2em 0}"
    "img{max-width:min(100%,40em)}pre{overflow-x:auto}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "logs", nargs="+", type=Input, metavar="LOG", help="log of fairseq-train, one a run (-: standard input)"
    )
    help_ = f"picture: .{', .'.join(style.ENDINGS)}; .csv: its values; .html: a page of picture, table and --pictures"
    add_output(parser, help_, required=True)
    add_list(parser, "--metrics", f"names of metrics, or patterns (default: {','.join(_METRICS)})", metavar="GLOB")
    help_ = "folder of the pictures of --aer-picture (SAVE_DIR/aer-picture), for a page .html"
    parser.add_argument("--pictures", type=Input, metavar="DIR", help=help_)
    style.add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    import pandas as pd

    ending = Path(args.output).suffix.lower()
    if ending not in (".csv", ".html"):
        style.figure_ending(args.output)
    check_new(args.output, args.overwrite)
    pictures: list[Path] = []
    if args.pictures is not None:
        if ending != ".html":
            raise UsageError(f"--pictures goes into a page: expected -o FILE.html, not {args.output}")
        pictures = sorted(path for path in Path(args.pictures).glob("*.png") if path.stem.isdecimal())
        if not pictures:
            raise InputError(f"{args.pictures}: no pictures, such as 000200.png, as --aer-picture writes them")
    stems = [Path(path).stem for path in args.logs]
    names = stems if len({*stems}) == len(stems) else args.logs
    tables, hashes = zip(*(read_training_log(path, name) for path, name in zip(args.logs, names)))
    metrics = _chosen(pd.concat(tables, ignore_index=True), args.metrics)
    if missing := int(metrics["value"].isna().sum()):
        warn_user(f"{missing} of {len(metrics)} values are not finite: left out")
    signed, table = signature(logs=",".join(hashes), metrics=",".join(args.metrics or _METRICS)), _extremes(metrics)
    if ending == ".csv":
        write_lines(args.output, metrics.to_csv(index=False, lineterminator="\n").splitlines())
    else:
        figure = draw_curves(metrics, style.figure_options(args))
        if ending == ".html":
            write_lines(args.output, _page(figure, f"{table}\n\n{signed}", pictures))
        else:
            style.save_figure(figure, args.output, signed)
    print(table)
    say(signed)


# ---- the log


def read_training_log(path: str | Path, run: str) -> tuple[pd.DataFrame, str]:
    """Read a log of fairseq-train: a table with :data:`COLUMNS`, in the order of the log; the hash of the content.

    If the number of updates goes back, as after resuming from an earlier checkpoint, the values from that update on are
    dropped and the following lines count.  Lines without statistics are ignored.  Warnings name what is dropped.
    """
    import pandas as pd

    file = TextFile(path, "the log of fairseq-train")
    values: dict[tuple[str, int, str, int], float] = {}
    basis: dict[tuple[str, str], float] = {}  # what the AER of a subset is of
    parts = Counter[str]()
    last = 0
    for number, line in file.lines():
        where = f"{file.name}:{number}"
        try:
            subset, update, metrics = _statistics(line.decode())
        except (ValueError, RecursionError) as error:  # cut off, as the last line of a job that runs
            warn_user(f"{where}: no whole line of statistics ({error}): left out")
            continue
        if not metrics:
            continue
        if update < last:
            warn_user(
                f"{where}: the run goes back from update {last} to {update} (it was resumed); the earlier values from "
                f"update {update} on are dropped"
            )
            values = {key: value for key, value in values.items() if key[1] < update}
        last = update
        of = {name: metrics.pop(name) for name in _OF if name in metrics}
        if changed := [_OF[name] for name in of if basis.get((subset, name), of[name]) != of[name]]:
            warn_user(
                f"{where}: from update {update} on the AER of {subset} is of another kind: "
                f"{' and '.join(changed)} changed; the curve is broken there"
            )
            parts[subset] += 1
        basis.update({(subset, name): value for name, value in of.items()})
        for metric, value in metrics.items():
            values[subset, update, metric, parts[subset] if _OF_GOLD.fullmatch(metric) else 0] = value
    if not values:
        raise InputError(
            f"{file.name}: the file has no lines of statistics; give a log of fairseq-train, with lines like "
            f'… {{"epoch": 1, "valid_loss": "7.6", "valid_num_updates": "200", …}}'
        )
    table = pd.DataFrame([(run, *key, value) for key, value in values.items()], columns=list(COLUMNS))
    return table.astype({"value": "float64"}).replace([math.inf, -math.inf], math.nan), file.hash


def _statistics(text: str) -> tuple[str, int, dict[str, float]]:
    """Subset, update and metrics of a line; no metrics if it is another kind of line."""
    subset, fields = "train", dict[str, Any]()
    if match := _JSON.search(text):
        logged = json.loads(match[1])
        subset = next((key.removesuffix("_num_updates") for key in logged if key.endswith("_num_updates")), "")
        fields = {key[len(subset) + 1 :]: logged[key] for key in logged if subset and key.startswith(f"{subset}_")}
    elif match := _PLAIN.search(text):
        subset = match[1] or subset
        fields = dict(field.split(" ", 1) for field in match[2].split(" | ") if " " in field)
    if "num_updates" not in fields:
        return subset, 0, {}
    values = {key: float(str(value)) for key, value in fields.items() if value not in (None, "None")}
    update = values.pop("num_updates", math.nan)
    if not (update.is_integer() and update >= 0):
        raise ValueError(f"num_updates is {fields['num_updates']}: expected a number of updates")
    return subset, int(update), values


# ---- what is shown


def _chosen(table: pd.DataFrame, stated: Sequence[str] | None) -> pd.DataFrame:
    """The rows of the metrics that are ``stated`` by name or pattern, or of the default ones."""
    whole = table["subset"] + "_" + table["metric"]
    found = {
        pattern: [any(fnmatchcase(name, pattern) for name in names) for names in zip(table["metric"], whole)]
        for pattern in stated or _METRICS
    }
    chosen = table[[any(row) for row in zip(*found.values())]]
    lacking = [pattern for pattern, rows in found.items() if not any(rows)] if stated else []
    without = sorted({*table["run"]} - {*chosen["run"]})
    if lacking or without:
        raise InputError(
            f"--metrics {','.join(lacking or found)}: no such metric in {', '.join(without) or 'the logs'} "
            f"(fairseq-train logs AER with --aer-gold SUBSET=GOLD): expected some of {', '.join(whole.unique())}"
        )
    return chosen


def is_share(metric: str) -> bool:
    """Whether a metric is a fraction that is shown in %: AER, its precision and recall, mixing ratios."""
    return metric.startswith("mixing_") or _OF_GOLD.fullmatch(metric) is not None


def _extremes(table: pd.DataFrame) -> str:
    """The lowest, the highest and the last value of each run, subset, metric and part, and at which update."""
    import pandas as pd

    keys = ["run", "subset", "metric", *(["part"] if table["part"].any() else [])]
    rows = []
    for key, group in table.dropna(subset="value").groupby(keys, sort=False):
        number = "{:.2%}" if is_share(str(key[2])) else "{:g}"
        shown = group.iloc[[int(group["value"].argmin()), int(group["value"].argmax()), -1]]
        cells = (cell for value, at in zip(shown["value"], shown["update"]) for cell in (number.format(value), at))
        rows.append([*(printable(str(name)) for name in key), *cells])
    columns = [*keys, "lowest", "update", "highest", "update", "last", "update"]
    return str(pd.DataFrame(rows, columns=columns).to_string(index=False))


def _map_name(letters: str) -> str:
    """``weights, AWO`` for the map ``w_awo``, ``norms, residual`` for ``attnres_n``."""
    short = re.fullmatch("([wn])_(awo|awi)", letters)
    return f"{style.kind_name(f'attn_{short[1]}')}, {short[2].upper()}" if short else style.kind_name(letters)


@style.styled()
def draw_curves(table: pd.DataFrame, options: style.FigureOptions = style.DEFAULT) -> Figure:
    """A figure of metrics by update; values that are not finite leave a gap, and a new part begins a new line.

    ``aer`` and ``aer_l1_n_awo`` share a row of panels, as all metrics do that differ in layer and map only.  If there
    are metrics of layers, each run has a column and each layer a colour; else each run has a colour.  Lines show subset
    and map; a broad line under those of its layers is the metric of the whole, such as ``aer``.  ``table`` has
    :data:`COLUMNS`.
    """
    from matplotlib.lines import Line2D
    from matplotlib.ticker import MaxNLocator

    names = table["metric"].str.extract(_METRIC_NAME)
    layers = sorted(names["layer"].dropna().astype(int).unique())
    of_maps = names["map"].map(_map_name, na_action="ignore").fillna(table["metric"])
    table = table.assign(**names, line=table["subset"] + (", " + of_maps if layers else ""))  # else the axis says it
    table["value"] *= [100 if is_share(metric) else 1 for metric in table["metric"]]
    runs, families, lines = (list(table[name].unique()) for name in ("run", "family", "line"))
    colours: dict[Any, Any] = (
        {**style.layer_colours(layers)} if layers else {run: f"C{n}" for n, run in enumerate(runs)}
    )
    broad = {f"{row.subset}, {row.family}" for row in table.dropna(subset="layer").itertuples()}
    styles = dict(zip([line for line in lines if line not in broad], cycle(_LINES)))
    looks = {line: {"linestyle": styles[line], "color": "grey"} if line in styles else _BROAD for line in lines}

    columns = runs if layers else [None]
    width = options.width or (style.COLUMN if len(columns) == 1 else style.PAGE)
    figure = style.new_figure(width, 1.0 + 1.5 * len(families), options.heading_of(""))
    panels = figure.subplots(len(families), len(columns), sharex=True, sharey="row", squeeze=False)
    for family, row in zip(families, panels):
        row[0].set_ylabel(family.replace("aer", "AER") + (" %" if is_share(family) else ""))
        for run, axes in zip(columns, row):
            drawn = table[(table["family"] == family) & (True if run is None else table["run"] == run)]
            for (name, line, layer, _), rows in drawn.groupby(
                ["run", "line", "layer", "part"], sort=False, dropna=False
            ):
                own = {} if layer != layer and layers else {"color": colours[name if layer != layer else int(layer)]}
                marker = "." if len(rows) <= 40 and line in styles else None
                axes.plot(rows["update"], rows["value"], marker=marker, **{**looks[line], **own})
            axes.grid()
            axes.xaxis.set_major_locator(MaxNLocator(4, integer=True, steps=[1, 2, 5, 10]))
    for run, above, below in zip(columns, panels[0], panels[-1]):
        above.set_title("" if run is None else style.label_of(run), parse_math=False)
        below.set_xlabel("update")
    entries = {
        style.place_name(key) if layers else style.label_of(key): Line2D([], [], color=c) for key, c in colours.items()
    }
    if len(looks) > 1 or layers:  # else no line tells a subset from another
        entries.update({style.label_of(line): Line2D([], [], **looks[line]) for line in lines})
    style.add_legend(figure, list(entries.values()), list(entries))
    return figure


def _page(figure: Figure, table: str, pictures: Sequence[Path]) -> list[str]:
    """An HTML page of a training run: its curves, a table, and the pictures of ``--aer-picture``, by update."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=200)

    def shown(name: str, image: bytes) -> str:
        source = f"data:image/png;base64,{base64.b64encode(image).decode()}"
        return f'<figure><figcaption>{name}</figcaption><img alt="{name}" src="{source}"></figure>'

    view = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head = f'<!doctype html><html lang="en">{view}<title>Training</title><style>{_STYLE}</style>'
    others = (shown(f"update {int(path.stem)}", path.read_bytes()) for path in pictures)
    curves = shown("curves", content.getvalue())
    return [head, "<h1>Training</h1>", curves, f"<pre>{escape(table)}</pre>", *others, "</html>"]
