"""``align-eval score``: AER, precision and recall of word alignments against gold."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from alignment_eval.cli import add_format
from alignment_eval.errors import InputError, UsageError, printable, say, warn_on_stderr
from alignment_eval.links.read import AlignmentFile
from alignment_eval.options import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_resamples,
    add_text_arguments,
    check_as_many,
    distinct_names,
    print_table,
    read_systems,
    reading_fields,
    resampling_fields,
    system_name,
    warn_of_few,
)
from alignment_eval.progress import progress_bar
from alignment_eval.scoring.aer import METRIC_LABELS, METRICS, Counts, Score, defined, score
from alignment_eval.scoring.diagnosis import diagnose, doubts
from alignment_eval.scoring.significance import Resampling, confidence
from alignment_eval.scoring.tables import Table, counted, interval_text, percent, score_table
from alignment_eval.signature import joined, signature

EPILOG = """\
Examples, after make demo:
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh \\
      --source data/demo/demo.de --target data/demo/demo.en
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh out/demo/both.pharaoh --format latex
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh --gold-swap --diagnose
  fairseq-generate … --print-alignment hard | align-eval score --gold gold.talp --gold-base 1 -

Several hypotheses, md and latex: a table, with intervals; a star or bold type marks the best; latex needs booktabs.
json: one object a line and hypothesis; AER, precision and recall are fractions, null where undefined.
Other formats: they are percentages.  sentences: counts and scores of each sentence, as TSV.
"""

_COUNTS = (
    *("hypothesis_links", "hypothesis_links_sure", "hypothesis_links_possible"),
    *("sure_links", "possible_links", "sentences"),
)
#: The counts of a sentence, in the order of :class:`Counts`.
_SENTENCE_COUNTS = ("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible")
#: Formats of a table that people read.
_TABLES = ("md", "latex")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``score``."""
    add_gold_arguments(parser)
    add_hypothesis_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("output")
    add_format(group, ("text", *_TABLES, "tsv", "json", "sentences"))
    group = parser.add_argument_group("confidence", "95 % intervals from a bootstrap over sentences")
    add_resamples(group, "add intervals to AER, precision and recall, from N resamples, such as 10000")
    parser.add_argument(
        "--diagnose",
        action="store_true",
        help="add AER under other index bases and directions, and with lines shifted by one",
    )


def run(args: argparse.Namespace) -> None:
    """Score every hypothesis, then print all results."""
    is_table = args.format in _TABLES or (args.format == "text" and len(args.hypotheses) > 1)
    resampling = None if args.resamples is None else Resampling(args.resamples)
    if resampling is not None and args.format == "sentences":
        raise UsageError("--resamples with --format sentences: expected another format; an interval is of a corpus")
    if is_table and resampling is None:
        resampling = Resampling()
    if args.diagnose and args.format not in ("text", "json"):
        raise UsageError(f"--diagnose with --format {args.format}: expected text or json; a table has no place for it")
    _, gold, hypotheses = read_systems(args, args.hypotheses)
    if resampling is not None:
        warn_of_few(len(gold))
    scores = [_score(hypothesis, gold, args.diagnose) for hypothesis in hypotheses]
    names = [system_name(path) for path in args.hypotheses]
    results = [_result(*each, gold, resampling) for each in zip(names, hypotheses, scores)]
    if args.diagnose:
        results = [result | _diagnosis(hypothesis, gold) for result, hypothesis in zip(results, hypotheses)]
    signatures = [result["signature"] for result in results]
    if is_table:
        intervals = [result["confidence"]["aer"] for result in results]
        table = score_table(_of_gold(results[0]), distinct_names(args.hypotheses), scores, intervals)
        print_table(table, args.format, signatures)
    elif args.format == "tsv":
        print_table(_machine_table(results), "tsv", signatures)
    elif args.format == "sentences":
        print("\t".join(("hypothesis", "line", *_SENTENCE_COUNTS, *METRICS)))
        for name, scored in zip(names, scores):
            for row in progress_bar(_rows(name, scored.per_sentence), len(gold), "sentences"):
                print(row)
        say(joined(signatures))
    else:
        for result in results:
            print(json.dumps(result, default=asdict) if args.format == "json" else _text(result))
    if args.diagnose and args.format == "text":
        for result in results:
            print("\n".join([*[printable(result["hypothesis"])] * is_table, *_diagnosis_text(result["diagnosis"])]))


def _score(hypothesis: AlignmentFile, gold: AlignmentFile, diagnosed: bool) -> Score:
    """The score; with a warning of a doubtful AER, unless it is ``diagnosed`` anyway."""
    try:
        check_as_many(hypothesis, gold)
    except InputError as error:
        if (explanation := diagnose(hypothesis, gold).explanation) is None:
            raise
        raise InputError(f"{error} The links fit best if you {' and '.join(explanation.changes)}") from None
    if not diagnosed and (warning := doubts(hypothesis, gold)):
        warn_on_stderr(warning)
    return score(hypothesis.each_links(), gold)


def _result(
    name: str, hypothesis: AlignmentFile, scored: Score, gold: AlignmentFile, resampling: Resampling | None
) -> dict[str, Any]:
    sentences = len(gold)
    drawn = resampling_fields(resampling, interval="bootstrap-percentile") if resampling else {}
    result = {
        "hypothesis": name,
        "aer": scored.aer,
        "precision": scored.precision,
        "recall": scored.recall,
        "hypothesis_links": int(scored.counts.hypothesis),
        "hypothesis_links_sure": int(scored.counts.hypothesis_sure),
        "hypothesis_links_possible": int(scored.counts.hypothesis_possible),
        "sure_links": int(scored.counts.sure),
        "possible_links": gold.file.possible - gold.file.sure,
        "sentences": sentences,
        "signature": signature(
            metric="aer",
            **reading_fields("gold", gold),
            **reading_fields("hyp", hypothesis),
            hyp_possible=False,
            sentences=sentences,
            **drawn,
        ),
    }
    return result | ({"confidence": confidence(scored.per_sentence, resampling, progress_bar)} if resampling else {})


def _diagnosis(hypothesis: AlignmentFile, gold: AlignmentFile) -> dict[str, Any]:
    found = diagnose(hypothesis, gold)
    readings = [{"changes": reading.changes, "aer": reading.aer} for reading in found.readings]
    explanation = found.explanation and found.explanation.changes
    return {"diagnosis": {"explanation": explanation, "readings": readings, "diagonal": found.diagonal}}


def _diagnosis_text(diagnosis: dict[str, Any]) -> Iterator[str]:
    explained = " and ".join(diagnosis["explanation"] or ())
    yield f"  diagnosis: {explained or 'no other reading of the files explains this AER'}"
    for reading in diagnosis["readings"]:
        yield f"  {100 * reading['aer']:8.2f} %  {' and '.join(reading['changes']) or 'as read'}"
    yield f"  {100 * diagnosis['diagonal']:8.2f} %  a diagonal instead of the hypothesis"


def _text(r: dict[str, Any]) -> str:
    scores = ", ".join(_shown(r, key) for key in METRICS)
    return f"{printable(r['hypothesis'])}: {scores}\n  {r['hypothesis_links']} links, {_of_gold(r)}\n  {r['signature']}"


def _of_gold(r: dict[str, Any]) -> str:
    return f"gold {r['sure_links']} sure and {r['possible_links']} more possible, {counted(r['sentences'])}"


def _shown(result: dict[str, Any], metric: str) -> str:
    """One metric, with its interval where there is one."""
    value = result[metric]
    text = f"{METRIC_LABELS[metric]} {'undefined' if value is None else f'{percent(value)} %'}"
    if "confidence" not in result:
        return text
    interval = result["confidence"][metric]
    return f"{text} {'[undefined]' if interval is None else interval_text(interval)}"


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


def _rows(name: str, counts: Counts) -> Iterator[str]:
    """One row a sentence; scores are fractions, empty where undefined."""
    columns = (*counts, *(measure(counts) for measure in METRICS.values()))
    for line, row in enumerate(zip(*columns), 1):
        fields = ("" if defined(value) is None else repr(value.item()) for value in row)
        yield "\t".join((printable(name), str(line), *fields))
