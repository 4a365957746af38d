"""``align-eval curve``: AER and loss by update, from the logs of fairseq-train."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from alignment_eval.arguments.alignments import check_standard_input
from alignment_eval.arguments.figures import add_figure_options, figure_options
from alignment_eval.arguments.lists import add_list
from alignment_eval.arguments.output import add_output
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.figures.saving import ENDINGS, figure_ending, save_figure
from alignment_eval.figures.training_curves import draw_curves
from alignment_eval.figures.training_log import Metric, TrainingLog, best, chosen, read_training_log
from alignment_eval.files import STANDARD, check_new, write_bytes
from alignment_eval.signature import signature

if TYPE_CHECKING:
    import pandas as pd

_EPILOG = """\
Examples:
  align-eval curve data/demo/training-a.log --loss nll_loss,train_nll_loss -o out/curve.png
  align-eval curve data/demo/training-a.log data/demo/training-b.log --metrics aer --subset test1 -o out/runs.svg

Patterns have *, ? and [...]; a metric of a subset may be given by its name in the log (train_loss).
AER is drawn and printed in %; --csv has fractions.  An axis covers at least 5 points of a percentage (5 % of the
largest value of other metrics), so that noise stays small.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""
_METRICS = ("aer", "aer_l*")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``curve``."""
    parser.epilog = _EPILOG
    parser.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="log of fairseq-train --log-format json, one a run (-: standard input)",
    )
    group = parser.add_argument_group("what is drawn")
    metrics = f"names of metrics, without subset (default: {','.join(_METRICS)}: all AERs)"
    add_list(group, "--metrics", metrics, metavar="GLOB")
    add_list(group, "--subset", "validation subsets (default: all that have such metrics, except train)")
    add_list(group, "--loss", "metrics of a second panel under the first", metavar="GLOB")
    group = parser.add_argument_group("output")
    add_output(group, f"picture: .{', .'.join(ENDINGS)}", required=True)
    group.add_argument("--csv", metavar="FILE", help="write the best and last values of each run and metric as CSV")
    add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    """Draw the picture and print the best values; the signature goes to stderr and into the picture's metadata."""
    _check_usage(args)
    logs = [read_training_log(path, warn_on_stderr) for path in args.logs]
    tables = [log.table(name) for name, log in zip(run_names(args.logs), logs)]
    metrics = _select(logs, tables, args.metrics or _METRICS, args.subset)
    _check_metrics(metrics, args.metrics or (), args.subset, "--metrics")
    losses = None
    if args.loss is not None:
        subsets = list(metrics["subset"].unique())
        losses = _select(logs, tables, args.loss, subsets)
        _check_metrics(losses, args.loss, subsets, "--loss")
    figures = [metrics] if losses is None else [metrics, losses]
    for table in figures:
        _warn_of_gaps(table)
    signed = signature(
        logs=",".join(log.hash for log in logs),
        metrics=",".join(args.metrics or _METRICS),
        subset=",".join(args.subset or ["all"]),
        loss=",".join(args.loss or ["none"]),
    )
    found = _concatenated([best(table) for table in figures]).drop_duplicates()
    look = figure_options(args)
    save_figure(draw_curves(metrics, losses, look), args.output, signed, look.dpi)
    if args.csv is not None:
        write_bytes(args.csv, found.to_csv(index=False).encode())
    if args.csv != STANDARD:
        print(best_text(found))
    print(signed, file=sys.stderr)


def _check_usage(args: argparse.Namespace) -> None:
    """Check the options before anything is read.

    Raises:
        UsageError: two contradict each other, or a log is a duplicate.
        InputError: an output file exists.
    """
    check_standard_input(args.logs)
    figure_ending(args.output)
    twice = [path for n, path in enumerate(args.logs) if path in args.logs[:n]]
    if twice:
        raise UsageError(f"{twice[0]} is a duplicate: expected each log once")
    if args.csv is not None and args.csv == args.output:
        raise UsageError(f"-o and --csv are both {args.csv}: expected two files")
    for path in (args.output, args.csv):
        if path is not None:
            check_new(path, args.overwrite)


def run_names(paths: Sequence[str]) -> list[str]:
    """Names of the runs: the file names without ending, or the paths if two names are the same."""
    stems = ["stdin" if path == STANDARD else Path(path).stem for path in paths]
    return stems if len(set(stems)) == len(stems) else list(paths)


def _select(
    logs: Sequence[TrainingLog],
    tables: Iterable[pd.DataFrame],
    patterns: Sequence[str],
    subsets: Sequence[str] | None,
) -> pd.DataFrame:
    """The chosen rows of all runs.

    Raises:
        InputError: a run has none.
    """
    found = []
    for log, table in zip(logs, tables):
        found.append(chosen(table, patterns, subsets))
        if not len(found[-1]):
            raise InputError(_absent(log.name, table, patterns, subsets))
    return _concatenated(found)


def _absent(log: str, table: pd.DataFrame, patterns: Sequence[str], subsets: Sequence[str] | None) -> str:
    """What is said of a log without the metrics of ``patterns``."""
    there = _listed(table["subset"] + "_" + table["metric"])
    names = table["metric"].unique()
    if any(pattern.startswith("aer") for pattern in patterns) and not any(name.startswith("aer") for name in names):
        return (
            f"{log}: no AER in it, as of a run without --aer-gold: expected a log of fairseq-train … --aer-gold "
            f"SUBSET=GOLD; to draw other metrics, name them with --metrics, such as some of {there}"
        )
    of = f" of subset {','.join(subsets)}" if subsets else ""
    return f"{log}: no metric {','.join(patterns)}{of} in it: expected some of {there}"


def _listed(names: pd.Series[str]) -> str:
    shown = list(names.unique())
    return ", ".join(shown[:30]) + (f" and {len(shown) - 30} more" if len(shown) > 30 else "")


def _concatenated(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


def _check_metrics(table: pd.DataFrame, patterns: Iterable[str], subsets: Sequence[str] | None, option: str) -> None:
    """Check that every pattern matches a metric, and that the metrics of a panel can share an axis.

    Raises:
        UsageError: they are not.
    """
    for pattern in patterns:
        if not len(chosen(table, [pattern], subsets)):
            raise UsageError(f"{option}: {pattern} matches no metric: expected names or patterns that the logs have")
    shares = {Metric.of(name).share: name for name in table["metric"].unique()}
    if len(shares) > 1:
        raise UsageError(
            f"{option}: {shares[True]} is drawn in %, {shares[False]} is not: expected metrics that can share an axis; "
            f"draw one of them with --loss or in another picture"
        )
    for subset in subsets or ():
        if subset not in set(table["subset"]) and option == "--metrics":
            raise UsageError(
                f"--subset: {subset} has no such metric in any log: expected some of {_listed(table['subset'])}"
            )


def _warn_of_gaps(table: pd.DataFrame) -> None:
    for (run, subset, metric), rows in table.groupby(["run", "subset", "metric"], sort=False):
        if missing := int(rows["value"].isna().sum()):
            warn_on_stderr(f"{run}: {missing} of {len(rows)} values of {subset}_{metric} are not finite: left out")


def best_text(table: pd.DataFrame) -> str:
    """The table of :func:`~alignment_eval.figures.training_log.best` for a reader, AER in %."""
    shown = table[["run", "subset", "metric"]].copy()
    for name in ("best", "last"):
        pairs = zip(table["metric"], table[name])
        shown[name] = ["-" if value != value else Metric.of(metric).shown(value) for metric, value in pairs]
        shown[f"{name} update"] = table[f"{name}_update"].astype(object).where(table[f"{name}_update"].notna(), "-")
    return str(shown.to_string(index=False))
