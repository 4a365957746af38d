"""``align-eval curve``: AER and mixing ratios by update, from the logs of fairseq-train."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.errors import InputError, UsageError, printable, say, warn_on_stderr
from alignment_eval.figures.style import ENDINGS, figure_ending, save_figure
from alignment_eval.figures.training_curves import draw_curves, is_share
from alignment_eval.figures.training_log import read_training_log
from alignment_eval.files import STANDARD, check_new, write_lines
from alignment_eval.options.common import add_list, add_output
from alignment_eval.options.figures import add_figure_options, figure_options
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
    parser.add_argument("logs", nargs="+", metavar="LOG", help="log of fairseq-train, one a run (-: standard input)")
    add_list(parser, "--metrics", f"names of metrics, or patterns (default: {','.join(_METRICS)})", metavar="GLOB")
    add_output(parser, f"picture: .{', .'.join(ENDINGS)}; or .csv: the values that it shows", required=True)
    add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    """Draw the picture and print the extremes; the signature goes to stderr and into the picture's metadata."""
    import pandas as pd

    _check_usage(args)
    patterns = args.metrics or _METRICS
    tables, hashes = [], []
    for path, name in zip(args.logs, run_names(args.logs)):
        table, content_hash = read_training_log(path, name, warn_on_stderr)
        tables.append(_chosen(table, patterns, path))
        hashes.append(content_hash)
    metrics = pd.concat(tables, ignore_index=True)
    for pattern in args.metrics or ():
        if not _matches(metrics, [pattern]).any():
            raise UsageError(f"--metrics: {pattern} matches no metric: expected names or patterns that the logs have")
    if missing := int(metrics["value"].isna().sum()):
        warn_on_stderr(f"{missing} of {len(metrics)} values are not finite: left out")
    signed = signature(logs=",".join(hashes), metrics=",".join(patterns))
    if _is_csv(args.output):
        write_lines(args.output, metrics.to_csv(index=False, lineterminator="\n").splitlines())
    else:
        save_figure(draw_curves(metrics, figure_options(args)), args.output, signed)
    print(extremes(metrics))
    say(signed)


def _check_usage(args: argparse.Namespace) -> None:
    """Check the options before anything is read.

    Raises:
        UsageError: two contradict each other, or a log is a duplicate.
        InputError: an output file exists.
    """
    if not _is_csv(args.output):
        figure_ending(args.output)
    elif (args.width, args.title) != (None, None):
        raise UsageError(f"{args.output}: a table has no --width or --title: expected a picture, or neither of the two")
    if len(set(args.logs)) < len(args.logs):
        raise UsageError(f"{', '.join(args.logs)}: a log is a duplicate: expected each log once")
    check_new(args.output, args.overwrite)


def _is_csv(path: str) -> bool:
    return path.lower().endswith(".csv")


def run_names(paths: Sequence[str]) -> list[str]:
    """Names of the runs: the file names without ending, or the paths if two names are the same."""
    stems = ["stdin" if path == STANDARD else Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def _chosen(table: pd.DataFrame, patterns: Sequence[str], log: str) -> pd.DataFrame:
    """The rows of the metrics that ``patterns`` name.

    Raises:
        InputError: there are none.
    """
    chosen = table[_matches(table, patterns)]
    if not len(chosen):
        names = ", ".join((table["subset"] + "_" + table["metric"]).unique())
        raise InputError(
            f"{log}: no metric {','.join(patterns)} in it (fairseq-train logs AER with --aer-gold SUBSET=GOLD): "
            f"expected some of {names}; name them with --metrics"
        )
    return chosen


def _matches(table: pd.DataFrame, patterns: Sequence[str]) -> pd.Series[bool]:
    def named(name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    return table["metric"].map(named).astype(bool) | (table["subset"] + "_" + table["metric"]).map(named).astype(bool)


def extremes(table: pd.DataFrame) -> str:
    """The lowest, the highest and the last value of each run, subset and metric, and at which update; shares in %."""
    import pandas as pd

    rows = []
    for key, group in table.dropna(subset="value").groupby(["run", "subset", "metric"], sort=False):
        number = "{:.2%}" if is_share(str(key[2])) else "{:g}"
        shown = group.iloc[[int(group["value"].argmin()), int(group["value"].argmax()), -1]]
        rows.append(
            [
                *(printable(str(name)) for name in key),
                *(cell for v, at in zip(shown["value"], shown["update"]) for cell in (number.format(v), at)),
            ]
        )
    columns = ["run", "subset", "metric", "lowest", "update", "highest", "update", "last", "update"]
    return str(pd.DataFrame(rows, columns=columns).to_string(index=False))
