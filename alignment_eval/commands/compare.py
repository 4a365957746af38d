"""``align-eval compare``: differences of systems from a baseline, with paired significance tests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from alignment_eval.command_line import add_format, system
from alignment_eval.errors import printable, progress_bar
from alignment_eval.options import (
    add_base,
    add_gold_arguments,
    add_text_arguments,
    distinct_names,
    print_table,
    read_systems,
    reading_fields,
    resampling_fields,
    score_files,
    system_name,
    warn_of_few,
)
from alignment_eval.scoring.aer import METRIC_LABELS
from alignment_eval.scoring.significance import Difference, Resampling, compare_all
from alignment_eval.scoring.tables import FORMATS, UNDEFINED, Table, counted, difference_table, interval_text, percent
from alignment_eval.signature import signature

EPILOG = """\
Examples, after make demo: do norms align better than attention weights?
  align-eval extract out/demo/forced --kind attn_w --heads 1 --setting awo --rule kobayashi2020 \\
      > out/demo/weights.pharaoh
  align-eval compare --gold data/demo/demo.talp --gold-base 1 \\
      out/demo/weights.pharaoh out/demo/hyp.pharaoh
  align-eval compare --gold data/demo/demo.talp --gold-base 1 --format latex \\
      out/demo/weights.pharaoh out/demo/hyp.pharaoh out/demo/both.pharaoh

Several systems, md, latex and tsv: a table of all pairs; a star or bold type marks the best; latex needs booktabs.
json: one object a line and pair; metrics are fractions, null where undefined.  Other formats: they are percentages.
"""
_HEADER = ("", "baseline", "system", "delta", "95 % interval", "p bootstrap", "p randomisation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``compare``."""
    group = parser.add_argument_group(
        "hypotheses", "word alignments (-: standard input), FILE or NAME=FILE; all are read in the same way"
    )
    group.add_argument("baseline", type=system, metavar="BASELINE", help="the system that the others are compared with")
    group.add_argument("systems", metavar="SYSTEM", nargs="+", type=system, help="each is compared with all before it")
    add_base(group, "hyp", "0")
    add_gold_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("resampling", "paired bootstrap and approximate randomisation over sentences")
    group.add_argument(
        "--resamples", type=int, metavar="N", help=f"number of resamples (default: {Resampling().resamples})"
    )
    group = parser.add_argument_group("output")
    add_format(group, (*FORMATS, "json"))


def run(args: argparse.Namespace) -> None:
    """Compare every pair of systems, then print all results."""
    paths = [args.baseline, *args.systems]
    resampling = Resampling() if args.resamples is None else Resampling(args.resamples)
    _, gold, files = read_systems(args, paths)
    warn_of_few(len(gold))
    scores = [score_files(file, gold) for file in files]
    pairs = compare_all([score.per_sentence for score in scores], resampling, progress_bar)
    methods = {"interval": "bootstrap-percentile", "tests": "paired-bootstrap,approximate-randomisation"}
    results: list[dict[str, Any]] = [
        {
            "baseline": system_name(paths[first]),
            "system": system_name(paths[second]),
            **differences,
            "sentences": len(gold),
            "signature": signature(
                metric="aer",
                **reading_fields("gold", gold),
                **reading_fields("baseline", files[first]),
                **reading_fields("hyp", files[second]),
                hyp_possible=False,
                sentences=len(gold),
                **resampling_fields(resampling, **methods),
            ),
        }
        for (first, second), differences in pairs.items()
    ]
    if args.format == "json":
        for result in results:
            print(json.dumps(result, default=asdict))
    elif args.format == "text" and len(results) == 1:
        print("\n".join(_text(results[0])))
    else:
        title = f"{counted(len(gold))}; AER minus that of a system above, with p of approximate randomisation"
        table = difference_table(title, distinct_names(paths), scores, pairs)
        print_table(table, args.format, [result["signature"] for result in results])


def _text(result: dict[str, Any]) -> Iterator[str]:
    """The metrics of a pair: percentages, percentage points and p-values."""
    yield f"{printable(result['system'])} against {printable(result['baseline'])}, {counted(result['sentences'])}"
    rows = []
    for name, label in METRIC_LABELS.items():
        found: Difference = result[name]
        p_values = (UNDEFINED if p is None else f"{p:.3g}" for p in (found.p_bootstrap, found.p_randomisation))
        metrics = percent(found.baseline), percent(found.system), percent(found.delta, "+")
        rows.append((label, *metrics, interval_text(found.interval, "+"), *p_values))
    yield from (f"  {line}" for line in Table("", _HEADER, rows).lines())
    yield f"  {result['signature']}"
