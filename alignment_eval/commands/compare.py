"""``align-eval compare``: differences of systems from a baseline, with paired significance tests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from alignment_eval.errors import printable
from alignment_eval.links.read import AlignmentFile
from alignment_eval.options.alignments import (
    add_base,
    add_gold_arguments,
    add_resamples,
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
from alignment_eval.options.common import add_format, system
from alignment_eval.progress import progress_bar
from alignment_eval.scoring.aer import METRIC_LABELS
from alignment_eval.scoring.significance import Difference, Interval, Resampling, compare_all
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
    add_resamples(group, f"number of resamples (default: {Resampling().resamples})")
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
    results = [
        _result(gold, files[first], files[second], differences, resampling)
        | {"baseline": system_name(paths[first]), "system": system_name(paths[second])}
        for (first, second), differences in pairs.items()
    ]
    if args.format != "json" and (args.format != "text" or len(results) > 1):
        title = f"{len(gold)} sentences; AER minus that of a system above, with p of approximate randomisation"
        table = difference_table(title, distinct_names(paths), scores, pairs)
        print_table(table, args.format, [result["signature"] for result in results])
        return
    for line in map(json.dumps, results) if args.format == "json" else _text(results[0]):
        print(line)


def _result(
    gold: AlignmentFile,
    baseline: AlignmentFile,
    system: AlignmentFile,
    differences: Mapping[str, Difference],
    resampling: Resampling,
) -> dict[str, Any]:
    return {
        "baseline": baseline.file.name,
        "system": system.file.name,
        **{name: asdict(difference) for name, difference in differences.items()},
        "sentences": len(gold),
        "signature": signature(
            metric="aer",
            **reading_fields("gold", gold),
            **reading_fields("baseline", baseline),
            **reading_fields("hyp", system),
            hyp_possible=False,
            sentences=len(gold),
            **resampling_fields(
                resampling, interval="bootstrap-percentile", tests="paired-bootstrap,approximate-randomisation"
            ),
        ),
    }


def _text(result: dict[str, Any]) -> Iterator[str]:
    names = [printable(str(result[name])) for name in ("system", "baseline")]
    yield f"{names[0]} against {names[1]}, {counted(result['sentences'])}"
    rows = [_row(label, result[name]) for name, label in METRIC_LABELS.items()]
    yield from (f"  {line}" for line in Table("", _HEADER, rows).lines())
    yield f"  {result['signature']}"


def _row(label: str, difference: Mapping[str, Any]) -> tuple[str, ...]:
    """One metric as text: percentages, percentage points and p-values."""
    interval = difference["interval"]
    tests = [difference[name] for name in ("p_bootstrap", "p_randomisation")]
    return (
        label,
        *(percent(difference[name]) for name in ("baseline", "system")),
        percent(difference["delta"], "+"),
        interval_text(interval and Interval(**interval), "+"),
        *(UNDEFINED if p is None else f"{p:.3g}" for p in tests),
    )
