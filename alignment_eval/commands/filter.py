"""``align-eval filter``: leave out the lines of parallel texts whose pairs have bad scores."""

from __future__ import annotations

import argparse
import itertools
import math
from array import array
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alignment_eval.command_line import add_output, file_name
from alignment_eval.errors import InputError, UsageError, say, shown
from alignment_eval.files import Value, check_new, signature, write_lines
from alignment_eval.reading import ForeignFile, TextFile, file_hash

EPILOG = """\
Example, after norm-align --scores out/filter.tsv:
  align-eval filter data/demo/demo.de data/demo/demo.en --scores out/filter.tsv \\
      --max-unsupported 0.5 --max-omitted 0.5 -o out/good.de out/good.en

Pairs that norm-align could not align are left out.  How many lines are left out and why goes to stderr, and so does the
signature.
"""
_SCORES, _STATUS = ("unsupported", "omitted"), "status"
_ADVICE = "give FILE.tsv of norm-align --scores, or the FILE.jsonl that it wrote with --scores"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts", nargs="+", type=file_name, metavar="TEXT", help="files with a line for each pair: texts, links, …"
    )
    help_ = "scores of the pairs: FILE.tsv of norm-align --scores, or its output FILE.jsonl"
    parser.add_argument("--scores", required=True, type=file_name, metavar="FILE", help=help_)
    parser.add_argument(
        "--keep", type=_share, metavar="SHARE", help="keep this share of all pairs, 0 to 1: the least unsupported"
    )
    for name in _SCORES:
        help_ = f"keep pairs whose {name} is X or less, 0 to 1"
        parser.add_argument(f"--max-{name}", type=_share, metavar="X", help=help_)
    add_output(parser, "the lines that are kept, a file for each TEXT", required=True, nargs="+")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= 1:
            return value
    raise argparse.ArgumentTypeError(f"{shown(text)}: expected a number from 0 to 1")


def run(args: argparse.Namespace) -> None:
    limits = {name: limit for name in _SCORES if (limit := getattr(args, f"max_{name}")) is not None}
    if (args.keep is None) == (not limits):
        raise UsageError("give either --keep, or --max-unsupported, --max-omitted or both")
    if len(args.output) != len(args.texts):
        raise UsageError(f"-o names {len(args.output)} files for {len(args.texts)} texts: expected one for each")
    for file in args.output:
        check_new(file, args.overwrite)
    names = list(limits) or _SCORES[:1]
    scores, left_out = _read_scores(args.scores, names)
    for text in args.texts:
        if (lines := sum(1 for _ in _lines(text))) != len(scores):
            raise InputError(f"{text}: {lines} lines, but {args.scores} scores {len(scores)} pairs: expected as many")
    scored = ~np.isnan(scores)
    option: dict[str, Value] = {f"max_{name}": limit for name, limit in limits.items()} or {"keep": args.keep}
    passed = scores <= list(limits.values() or [1.0])
    if args.keep is not None:
        passed[np.argsort(scores[:, 0], kind="stable")[round(args.keep * len(scores)) :]] = False  # NaN is last
    kept = np.logical_and.reduce(passed, axis=1)
    for text, output in zip(args.texts, args.output):
        write_lines(output, itertools.compress(_lines(text), kept))
    reasons = [
        f"{len(worse)} with {name} from {worse.min():g} on"
        for name, values, bad in zip(names, scores.T, (scored & ~passed).T)
        if len(worse := values[bad])
    ] + [f"{count} {status}" for status, count in left_out.items()]
    say(f"filter: {kept.sum()} of {len(kept)} lines kept; left out: {', '.join(reasons) or 'none'}")
    say(signature(scores=file_hash(args.scores), **option, kept=int(kept.sum())))


def _lines(path: str) -> Iterator[str]:
    return (line.decode() for _, line in TextFile(path, "a line for each pair").lines())


def _read_scores(path: str, names: Sequence[str]) -> tuple[NDArray[np.float64], Counter[str]]:
    """The scores [pairs, names], NaN for pairs that were not aligned, and the statuses of these."""
    scores = array("d")
    statuses: Counter[str] = Counter()
    for where, fields in _rows(path, (*names, _STATUS)):
        found, status = [fields[name] for name in names], fields[_STATUS]
        if status not in ("", "ok") and all(value in ("", None) for value in found):
            statuses[str(status)] += 1
            scores.extend(math.nan for _ in names)
            continue
        for name, value in zip(names, found):
            try:
                scores.append(_share(str(value)))
            except argparse.ArgumentTypeError as error:
                raise InputError(f"{where}: {name} is {error}") from None
    return np.array(scores).reshape(-1, len(names)), statuses


def _rows(path: str, wanted: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The columns of each pair, ``wanted`` among them, and where it stands in the file."""
    lines = TextFile(path, "a row for each pair").lines()
    header = None if path.endswith(".jsonl") else next(lines)[1].decode().split("\t")
    _check_columns(f"{path}:1", wanted if header is None else header, wanted)
    for number, line in lines:
        where = f"{path}:{number}"
        if header is None:
            fields = ForeignFile(where, "a pair with scores", _ADVICE).decode(line, dict[str, Any])
        else:
            fields = dict(zip(header, line.decode().split("\t"), strict=False))
        _check_columns(where, fields, wanted)
        yield where, fields


def _check_columns(where: str, columns: Collection[str], wanted: Sequence[str]) -> None:
    if missing := [name for name in wanted if name not in columns]:
        raise InputError(f"{where}: no column {missing[0]}; {_ADVICE}")
