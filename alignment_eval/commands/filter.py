"""``align-eval filter``: leave out the lines of parallel texts whose pairs have bad scores."""

from __future__ import annotations

import argparse
import itertools
import math
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from alignment_eval.command_line import add_output, file_name
from alignment_eval.errors import InputError, UsageError, say, shown
from alignment_eval.files import Value, check_new, signature, write_lines
from alignment_eval.reading import TextFile, file_hash

EPILOG = """\
Example, after norm-align --scores out/filter.tsv:
  align-eval filter data/demo/demo.de data/demo/demo.en --scores out/filter.tsv \\
      --max-unsupported 0.5 -o out/good.de out/good.en

Pairs that norm-align could not align are left out.  How many lines are left out and why goes to stderr, and so does the
signature.
"""
_COLUMN, _STATUS = "unsupported", "status"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "texts", nargs="+", type=file_name, metavar="TEXT", help="files with a line for each pair: texts, links, …"
    )
    parser.add_argument(
        "--scores", required=True, type=file_name, metavar="FILE.tsv", help="scores of the pairs: norm-align --scores"
    )
    group = parser.add_mutually_exclusive_group(required=True)
    group.add_argument(
        "--keep", type=_share, metavar="SHARE", help="keep this share of all pairs, 0 to 1: the least unsupported"
    )
    group.add_argument(
        "--max-unsupported", type=_share, metavar="X", help="keep pairs whose unsupported is X or less, 0 to 1"
    )
    add_output(parser, "the lines that are kept, a file for each TEXT", required=True, nargs="+")


def _share(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (value := float(text)) <= 1:
            return value
    raise argparse.ArgumentTypeError(f"{shown(text)}: expected a number from 0 to 1")


def run(args: argparse.Namespace) -> None:
    if len(args.output) != len(args.texts):
        raise UsageError(f"-o names {len(args.output)} files for {len(args.texts)} texts: expected one for each")
    for file in args.output:
        check_new(file, args.overwrite)
    scores, left_out = _read_scores(args.scores)
    for text in args.texts:
        if (lines := sum(1 for _ in _lines(text))) != len(scores):
            raise InputError(f"{text}: {lines} lines, but {args.scores} scores {len(scores)} pairs: expected as many")
    if args.keep is None:
        option: dict[str, Value] = {"max_unsupported": args.max_unsupported}
        kept = scores <= args.max_unsupported
    else:
        option = {"keep": args.keep}
        best = np.argsort(scores, kind="stable")[: round(args.keep * len(scores))]  # NaN is last
        kept = np.zeros(len(scores), dtype=np.bool_)
        kept[best] = ~np.isnan(scores[best])
    for text, output in zip(args.texts, args.output):
        write_lines(output, itertools.compress(_lines(text), kept))
    worse = scores[~kept & ~np.isnan(scores)]
    reasons = [f"{count} {status}" for status, count in left_out.items()]
    if len(worse):
        reasons.insert(0, f"{len(worse)} with unsupported from {worse.min():g} on")
    say(f"filter: {kept.sum()} of {len(kept)} lines kept; left out: {', '.join(reasons) or 'none'}")
    say(signature(scores=file_hash(args.scores), **option, kept=int(kept.sum())))


def _lines(path: str) -> Iterator[str]:
    return (line.decode() for _, line in TextFile(path, "a line for each pair").lines())


def _read_scores(path: str) -> tuple[NDArray[np.float64], Counter[str]]:
    """The column ``unsupported``, NaN for pairs that were not aligned, and the statuses of these."""
    lines = _lines(path)
    names = next(lines).split("\t")
    if not {_COLUMN, _STATUS} <= set(names):
        raise InputError(f"{path}:1: no columns {_COLUMN} and {_STATUS}; give FILE.tsv of norm-align --scores")
    scores = array("d")
    statuses: Counter[str] = Counter()
    for number, line in enumerate(lines, 2):
        fields = dict(zip(names, line.split("\t"), strict=False))
        score, status = fields.get(_COLUMN, ""), fields.get(_STATUS, "")
        if status not in ("", "ok") and not score:
            statuses[status] += 1
            scores.append(math.nan)
            continue
        try:
            scores.append(_share(score))
        except argparse.ArgumentTypeError as error:
            raise InputError(f"{path}:{number}: {_COLUMN} is {error}") from None
    return np.frombuffer(scores, dtype=np.float64), statuses
