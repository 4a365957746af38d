"""``align-eval score``: AER, precision and recall of word alignments against gold, with paired tests of systems."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from alignment_eval import options
from alignment_eval.command_line import add_format
from alignment_eval.errors import UsageError, printable, progress_bar, say
from alignment_eval.files import Value, joined, signature
from alignment_eval.links.files import AlignmentFile
from alignment_eval.scoring.aer import COUNT_NAMES, METRICS, Score, defined
from alignment_eval.scoring.diagnosis import MIN_BETTER, diagnose
from alignment_eval.scoring.significance import Difference, Resampling, compare_all, confidence_each
from alignment_eval.scoring.tables import Table, counted, interval_text, pair_table, percent, score_table

EPILOG = """\
Examples:
  align-eval score data/demo/hyp.pharaoh --gold data/demo/demo.talp --gold-base 1
  align-eval score data/demo/hyp.pharaoh --gold data/demo/demo.talp --gold-base 1 \\
      --source data/demo/demo.de --target data/demo/demo.en
  align-eval score data/demo/hyp.pharaoh data/demo/both.pharaoh --gold data/demo/demo.talp --gold-base 1 --format latex
  align-eval score data/demo/hyp.pharaoh --gold data/demo/demo.talp --gold-base 1 --gold-swap --diagnose
  fairseq-generate … --print-alignment hard | align-eval score - --gold gold.talp --gold-base 1

Several hypotheses, md and latex make a table: it has intervals, and AER minus that of each row above with p of
approximate randomisation.  A star or bold type marks the best.  latex needs booktabs.  sentences has a row for each
sentence, as TSV; json has an object for each hypothesis, on a line, and null where a metric is undefined.  In these two
metrics are fractions, else percentages.
"""

#: The columns of counts of a table for machines.
_COUNTS = (
    *("hypothesis_links", "hypothesis_links_sure", "hypothesis_links_possible"),
    *("sure_links", "possible_links", "sentences"),
)
#: Formats of a table that people read.
_TABLES = ("md", "latex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_gold_arguments(parser)
    options.add_hypothesis_arguments(parser.add_argument_group("hypotheses"))
    options.add_text_arguments(parser)
    group = parser.add_argument_group("output")
    add_format(group, ("text", *_TABLES, "tsv", "json", "sentences"))
    help_ = "add AER under other index bases and directions, and with lines shifted by one"
    group.add_argument("--diagnose", action="store_true", help=help_)
    group = parser.add_argument_group(
        "resampling", "95 % intervals from a bootstrap over sentences; paired bootstrap and approximate randomisation"
    )
    help_ = f"number of resamples (default: {Resampling().resamples} for a table, else no intervals and tests)"
    group.add_argument("--resamples", type=int, metavar="N", help=help_)


def run(args: argparse.Namespace) -> None:
    is_table = args.format in _TABLES or (args.format == "text" and len(args.hypotheses) > 1)
    if args.resamples is not None and args.format == "sentences":
        raise UsageError("--resamples with --format sentences: expected another format; an interval is of a corpus")
    if args.diagnose and args.format not in ("text", "json"):
        raise UsageError(f"--diagnose with --format {args.format}: expected text or json; a table has no place for it")
    resampling = Resampling(args.resamples) if args.resamples is not None else Resampling() if is_table else None
    _, gold, hypotheses = options.read_systems(args, args.hypotheses)
    if resampling is not None:
        options.warn_of_few(len(gold))
    scores = [options.score_files(hypothesis, gold, args.diagnose) for hypothesis in hypotheses]
    names = [options.system_name(path) for path in args.hypotheses]
    tests = {"tests": "paired-bootstrap,approximate-randomisation"} if len(scores) > 1 else {}
    sampled = options.resampling_fields(resampling, interval="bootstrap-percentile", **tests) if resampling else {}
    results = [_result(*each, gold, sampled) for each in zip(names, hypotheses, scores)]
    pairs: dict[tuple[int, int], dict[str, Difference]] = {}
    if resampling is not None:
        counts = [scored.per_sentence for scored in scores]
        for result, intervals in zip(results, confidence_each(np.stack(counts, axis=1), resampling, progress_bar)):
            result["confidence"] = intervals
        if len(counts) > 1:
            pairs = compare_all(counts, resampling, progress_bar)
        for (first, second), differences in pairs.items():
            results[second].setdefault("differences", []).append({"baseline": names[first], **differences})
    if args.diagnose:
        for result, hypothesis in zip(results, hypotheses):
            found = diagnose(hypothesis, gold)
            result["diagnosis"] = {
                "explanation": found.explanation and found.explanation.changes,
                "readings": [{"changes": reading.changes, "aer": reading.aer} for reading in found.readings],
                "diagonal": found.diagonal,
            }
    signatures = [result["signature"] for result in results]
    if is_table:
        aers = [result["confidence"]["aer"] for result in results]
        shown = options.distinct_names(args.hypotheses)
        table = score_table(_of_gold(results[0]), shown, scores, aers, pairs)
        if args.format == "text" and len(pairs) == 1:
            print("\n".join([*table.lines(), ""]))
            table = pair_table(f"{shown[1]} against {shown[0]}", pairs[0, 1])
        options.print_table(table, args.format, signatures)
    elif args.format == "tsv":
        options.print_table(_machine_table(results), "tsv", signatures)
    elif args.format == "sentences":
        print("\t".join(("hypothesis", "line", *COUNT_NAMES, *METRICS)))
        for name, scored in zip(names, scores):
            columns = (*scored.per_sentence, *(metric(scored.per_sentence) for metric in METRICS.values()))
            for line, row in enumerate(progress_bar(zip(*columns), len(gold), "sentences"), 1):
                fields = ("" if defined(value) is None else repr(value.item()) for value in row)
                print("\t".join((printable(name), str(line), *fields)))
        say(joined(signatures))
    else:
        for result in results:
            print(json.dumps(result, default=asdict) if args.format == "json" else _text(result))
    if args.diagnose and args.format == "text":
        for result in results:
            print("\n".join([*[printable(result["hypothesis"])] * is_table, *_diagnosis_text(**result)]))


def _result(
    name: str, hypothesis: AlignmentFile, scored: Score, gold: AlignmentFile, sampled: Mapping[str, Value]
) -> dict[str, Any]:
    """The object of a hypothesis; ``sampled`` are fields of its signature."""
    counts = dict(zip(COUNT_NAMES, map(int, scored.counts)))
    counts |= {"possible_links": gold.possible - gold.sure, "sentences": len(gold)}
    return {
        "hypothesis": name,
        **scored.metrics,
        **{count: counts[count] for count in _COUNTS},
        "signature": signature(
            metric="aer",
            **options.reading_fields("gold", gold),
            **options.reading_fields("hyp", hypothesis),
            hyp_possible=False,
            sentences=len(gold),
            **sampled,
        ),
    }


def _diagnosis_text(diagnosis: dict[str, Any], sentences: int, **_: object) -> Iterator[str]:
    found = " and ".join(diagnosis["explanation"] or ())
    if sentences < MIN_BETTER:
        found = f"only {counted(sentences)}: {f'likely {found}' if found else 'too few to explain this AER'}"
    yield f"  diagnosis: {found or 'no other reading of the files explains this AER'}"
    for reading in diagnosis["readings"]:
        yield f"  {100 * reading['aer']:8.2f} %  {' and '.join(reading['changes']) or 'as read'}"
    yield f"  {100 * diagnosis['diagonal']:8.2f} %  a diagonal instead of the hypothesis"


def _text(r: dict[str, Any]) -> str:
    scores = []
    for name, metric in METRICS.items():
        text = f"{metric.label} undefined" if r[name] is None else f"{metric.label} {percent(r[name])} %"
        if "confidence" in r:
            interval = r["confidence"][name]
            text += " [undefined]" if interval is None else f" {interval_text(interval)}"
        scores.append(text)
    name, links = printable(r["hypothesis"]), r["hypothesis_links"]
    return f"{name}: {', '.join(scores)}\n  {links} links, {_of_gold(r)}\n  {r['signature']}"


def _of_gold(r: dict[str, Any]) -> str:
    return f"gold {r['sure_links']} sure and {r['possible_links']} more possible, {counted(r['sentences'])}"


def _machine_table(results: Sequence[dict[str, Any]]) -> Table:
    limits = [(name, end) for name in results[0].get("confidence", ()) for end in ("low", "high")]
    heads = ["hypothesis", *(f"{name}_percent" for name in METRICS), *_COUNTS]
    rows = [
        [
            r["hypothesis"],
            *("" if r[key] is None else percent(r[key]) for key in METRICS),
            *(str(r[key]) for key in _COUNTS),
            *("" if (pair := r["confidence"][name]) is None else percent(getattr(pair, end)) for name, end in limits),
        ]
        for r in results
    ]
    return Table("", [*heads, *(f"{name}_{end}_percent" for name, end in limits)], rows)
