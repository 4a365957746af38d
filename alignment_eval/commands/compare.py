"""``align-eval compare``: differences of systems from a baseline, with paired significance tests."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from alignment_eval.errors import printable
from alignment_eval.links.read import AlignmentFile, ReadOptions, read_hypothesis
from alignment_eval.options.alignments import (
    add_base,
    add_gold_arguments,
    add_resampling_arguments,
    add_text_arguments,
    check_standard_input,
    gold_of,
    reading_fields,
    resampling_fields,
    resampling_of,
    score_files,
    texts_of,
    warn_of_few,
)
from alignment_eval.options.common import add_format
from alignment_eval.progress import progress_bar
from alignment_eval.scoring.aer import METRIC_LABELS
from alignment_eval.scoring.significance import Difference, Resampling, compare
from alignment_eval.signature import signature

_EPILOG = """\
Example, after make demo: do norms align better than attention weights?
  align-eval extract out/demo/forced --kind attn_w --layer 1 --setting awo --rule kobayashi2020 \\
      > out/demo/weights.pharaoh
  align-eval compare --gold data/demo/demo.talp --gold-base 1 \\
      out/demo/weights.pharaoh out/demo/hyp.pharaoh

json: one object a line and system; metrics are fractions, null where undefined.  text: they are percentages.
Exit status: 0 success, whatever the p-values; 1 bad data, 2 bad usage.
"""
_HEADER = ("", "baseline", "system", "delta", "95 % interval", "p bootstrap", "p randomisation")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``compare``."""
    parser.epilog = _EPILOG
    group = parser.add_argument_group("hypotheses", "word alignments (-: standard input); all are read in the same way")
    group.add_argument("baseline", metavar="BASELINE", help="the system that the others are compared with")
    group.add_argument("systems", metavar="SYSTEM", nargs="+", help="each is compared with the baseline")
    add_base(group, "hyp", "0")
    add_gold_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("resampling", "paired bootstrap and approximate randomisation over sentences")
    add_resampling_arguments(group, f"number of resamples (default: {Resampling().resamples})")
    group = parser.add_argument_group("output")
    add_format(group, _FORMATS)


def run(args: argparse.Namespace) -> None:
    """Compare every system with the baseline, then print all results."""
    check_standard_input([args.gold, args.baseline, *args.systems, args.source, args.target])
    resampling = resampling_of(args)
    texts = texts_of(args)
    gold = gold_of(args, texts)
    warn_of_few(len(gold))
    files = [read_hypothesis(path, ReadOptions(base=args.hyp_base), texts) for path in (args.baseline, *args.systems)]
    baseline, *systems = (score_files(file, gold).per_sentence for file in files)
    results = [
        _result(gold, files[0], system, differences, resampling)
        for system, differences in zip(files[1:], compare(baseline, systems, resampling, progress_bar))
    ]
    for line in _FORMATS[args.format](results):
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
                resampling,
                len(gold),
                interval="bootstrap-percentile",
                tests="paired-bootstrap,approximate-randomisation",
            ),
        ),
    }


def _json(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (json.dumps(result) for result in results)


def _text(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    for result in results:
        rows = [_HEADER, *(_row(label, result[name]) for name, label in METRIC_LABELS.items())]
        widths = [max(map(len, column)) for column in zip(*rows)]
        names = [printable(str(result[name])) for name in ("system", "baseline")]
        yield f"{names[0]} against {names[1]}, {result['sentences']} sentences"
        for row in rows:
            yield "  " + "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
        yield f"  {result['signature']}"


def _row(label: str, difference: Mapping[str, Any]) -> tuple[str, ...]:
    """One metric as text: percentages, percentage points and p-values."""
    interval = difference["interval"]
    return (
        label,
        *(_shown(difference[name], 100, ".2f") for name in ("baseline", "system")),
        _shown(difference["delta"], 100, "+.2f"),
        "-" if interval is None else f"[{100 * interval['low']:+.2f}, {100 * interval['high']:+.2f}]",
        *(_shown(difference[name], 1, ".3g") for name in ("p_bootstrap", "p_randomisation")),
    )


def _shown(value: float | None, factor: int, form: str) -> str:
    return "-" if value is None else format(factor * value, form)


_FORMATS = {"text": _text, "json": _json}
