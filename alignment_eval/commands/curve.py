"""``align-eval curve``: AER and mixing ratios by update, from the logs of fairseq-train."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.cli import Input, add_list, add_output
from alignment_eval.errors import InputError, UsageError, printable, say, warn_on_stderr
from alignment_eval.figures.curves import draw_curves, is_share, read_training_log, training_page
from alignment_eval.figures.options import add_figure_options, figure_options
from alignment_eval.figures.style import ENDINGS, figure_ending, save_figure
from alignment_eval.files import check_new, write_lines
from alignment_eval.signature import signature

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\
Examples:
  align-eval curve data/demo/training-a.log -o out/curve.png
  align-eval curve data/demo/training-a.log -o out/curve.csv
  align-eval curve data/demo/training-a.log data/demo/training-b.log --metrics aer,nll_loss -o out/runs.svg

A pattern has *, ? and [...].  It is compared with the name of a metric, with and without its subset (test1_aer, aer).
"""
_METRICS = ("aer", "aer_l*", "mixing_*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``curve``."""
    parser.add_argument(
        "logs", nargs="+", type=Input, metavar="LOG", help="log of fairseq-train, one a run (-: standard input)"
    )
    add_list(parser, "--metrics", f"names of metrics, or patterns (default: {','.join(_METRICS)})", metavar="GLOB")
    help_ = "folder of the pictures of --aer-picture (SAVE_DIR/aer-picture), for a page .html"
    parser.add_argument("--pictures", type=Input, metavar="DIR", help=help_)
    help_ = f"picture: .{', .'.join(ENDINGS)}; .csv: its values; .html: a page of picture, table and --pictures"
    add_output(parser, help_, required=True)
    add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    """Draw the picture and print the extremes; the signature goes to stderr and into the picture's metadata."""
    import pandas as pd

    ending = Path(args.output).suffix.lower()
    if ending not in (".csv", ".html"):
        figure_ending(args.output)
    if args.pictures is not None and ending != ".html":
        raise UsageError(f"--pictures goes into a page: expected -o FILE.html, not {args.output}")
    check_new(args.output, args.overwrite)
    stems = [Path(path).stem for path in args.logs]
    names = stems if len({*stems}) == len(stems) else args.logs
    read = [read_training_log(path, name) for path, name in zip(args.logs, names)]
    metrics = _chosen(pd.concat([table for table, _ in read], ignore_index=True), args.metrics)
    if missing := int(metrics["value"].isna().sum()):
        warn_on_stderr(f"{missing} of {len(metrics)} values are not finite: left out")
    patterns = args.metrics or _METRICS
    signed = signature(logs=",".join(content_hash for _, content_hash in read), metrics=",".join(patterns))
    table = extremes(metrics)
    if ending == ".csv":
        write_lines(args.output, metrics.to_csv(index=False, lineterminator="\n").splitlines())
    else:
        figure = draw_curves(metrics, figure_options(args))
        if ending == ".html":
            write_lines(args.output, [training_page(figure, f"{table}\n\n{signed}", _pictures(args.pictures))])
        else:
            save_figure(figure, args.output, signed)
    print(table)
    say(signed)


def _pictures(folder: str | None) -> list[Path]:
    """The pictures of a folder by update; raises InputError if it has none."""
    found = [] if folder is None else sorted(path for path in Path(folder).glob("*.png") if path.stem.isdecimal())
    if folder is not None and not found:
        raise InputError(f"{folder}: no pictures, such as 000200.png, as fairseq-train --aer-picture writes them")
    return found


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


def extremes(table: pd.DataFrame) -> str:
    """The lowest, the highest and the last value of each run, subset and metric, and at which update; shares in %.

    Each part of a run has its own.
    """
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
