"""``align-eval score``: AER, precision and recall of word alignments against gold."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from alignment_eval.arguments.alignments import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_text_arguments,
    check_standard_input,
    gold_of,
    hypotheses_of,
    hypothesis_options,
    reading_fields,
    score_files,
    texts_of,
)
from alignment_eval.arguments.output import add_format, add_overwrite
from alignment_eval.arguments.resampling import (
    add_resampling_arguments,
    resampling_fields,
    resampling_of,
    warn_of_few,
)
from alignment_eval.errors import UsageError, printable
from alignment_eval.files import STANDARD, check_new, write_lines
from alignment_eval.formats.reading import Alignments, read_hypothesis
from alignment_eval.progress import progress_bar
from alignment_eval.scoring.aer import METRIC_LABELS, METRICS, Counts, Score, defined
from alignment_eval.scoring.significance import Resampling, confidence
from alignment_eval.signature import signature

_EPILOG = """\
Examples, after make demo:
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh \\
      --source data/demo/demo.de --target data/demo/demo.en
  align-eval score --gold data/demo/demo.talp --gold-base 1 out/demo/hyp.pharaoh --confidence
  fairseq-generate … --print-alignment hard | align-eval score --gold gold.talp --gold-base 1 -

json: one object a line and hypothesis; AER, precision and recall are fractions, null where undefined.
text, tsv: they are percentages.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""

_COUNTS = ("hypothesis_links", "hypothesis_links_sure", "hypothesis_links_possible", "sure_links", "possible_links")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``score``."""
    parser.epilog = _EPILOG
    add_gold_arguments(parser)
    add_hypothesis_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("output")
    add_format(group, _FORMATS)
    group.add_argument("--per-sentence", metavar="FILE", help="write counts and scores of each sentence, as TSV")
    add_overwrite(group)
    group = parser.add_argument_group("confidence", "95 % intervals from a bootstrap over sentences")
    group.add_argument("--confidence", action="store_true", help="add intervals to AER, precision and recall")
    add_resampling_arguments(group)


def run(args: argparse.Namespace) -> None:
    """Score every hypothesis, then print all results."""
    paths = hypotheses_of(args)
    check_standard_input([args.gold, *paths, args.source, args.target])
    if args.per_sentence == STANDARD:
        raise UsageError("--per-sentence -: expected a file; the scores go to the standard output")
    if args.per_sentence is not None:
        check_new(args.per_sentence, args.overwrite)
    resampling = _resampling(args)
    texts = texts_of(args)
    gold = gold_of(args, texts)
    if resampling:
        warn_of_few(gold.links.sentences)
    results, scores = [], []
    for path in paths:
        hypothesis = read_hypothesis(path, hypothesis_options(args), texts)
        scores.append((hypothesis.file.name, score_files(hypothesis, gold)))
        results.append(_result(hypothesis, gold, scores[-1][1], args.hyp_allow_possible, resampling))
    if args.per_sentence is not None:
        write_lines(args.per_sentence, _per_sentence(scores))
    for line in _FORMATS[args.format](results):
        print(line)


def _resampling(args: argparse.Namespace) -> Resampling | None:
    """How to resample; None without ``--confidence``."""
    if args.confidence:
        return resampling_of(args)
    for name in ("resamples", "seed"):
        if getattr(args, name) is not None:
            raise UsageError(f"--{name} without --confidence: expected --confidence too; only intervals are resampled")
    return None


def _result(
    hypothesis: Alignments, gold: Alignments, scored: Score, allow_possible: bool, resampling: Resampling | None
) -> dict[str, Any]:
    sentences = gold.links.sentences
    drawn = resampling_fields(resampling, sentences, interval="bootstrap-percentile") if resampling else {}
    result = {
        "hypothesis": hypothesis.file.name,
        "aer": scored.aer,
        "precision": scored.precision,
        "recall": scored.recall,
        "hypothesis_links": int(scored.counts.hypothesis),
        "hypothesis_links_sure": int(scored.counts.hypothesis_sure),
        "hypothesis_links_possible": int(scored.counts.hypothesis_possible),
        "sure_links": int(scored.counts.sure),
        "possible_links": len(gold.links.possible) - len(gold.links.sure),
        "sentences": sentences,
        "signature": signature(
            metric="aer",
            **reading_fields("gold", gold),
            **reading_fields("hyp", hypothesis),
            hyp_possible=allow_possible,
            sentences=sentences,
            **drawn,
        ),
    }
    if resampling:
        intervals = confidence(scored.per_sentence, resampling, progress_bar)
        result["confidence"] = {name: interval and asdict(interval) for name, interval in intervals.items()}
    return result


def _json(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (json.dumps(result) for result in results)


def _text(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    for r in results:
        yield f"{printable(r['hypothesis'])}: " + ", ".join(_shown(r, key) for key in METRICS)
        yield (
            f"  {r['hypothesis_links']} links, gold {r['sure_links']} sure and {r['possible_links']} more possible, "
            f"{r['sentences']} sentences"
        )
        yield f"  {r['signature']}"


def _shown(result: dict[str, Any], metric: str) -> str:
    """One metric, with its interval where there is one."""
    value = result[metric]
    text = f"{METRIC_LABELS[metric]} {'undefined' if value is None else f'{100 * value:.2f} %'}"
    if "confidence" not in result:
        return text
    interval = result["confidence"][metric]
    return f"{text} [{'undefined' if interval is None else ', '.join(_limits(interval))}]"


def _limits(interval: dict[str, float] | None) -> tuple[str, str]:
    """Both limits in percent, empty where undefined."""
    return (f"{100 * interval['low']:.2f}", f"{100 * interval['high']:.2f}") if interval else ("", "")


def _tsv(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    limits = [f"{name}_{end}_percent" for name in results[0].get("confidence", ()) for end in ("low", "high")]
    yield "\t".join(("hypothesis", *(f"{name}_percent" for name in METRICS), *_COUNTS, "sentences", *limits))
    for r in results:
        scores = ("" if r[key] is None else f"{100 * r[key]:.2f}" for key in METRICS)
        intervals = (text for interval in r.get("confidence", {}).values() for text in _limits(interval))
        yield "\t".join(
            (printable(r["hypothesis"]), *scores, *(str(r[key]) for key in (*_COUNTS, "sentences")), *intervals)
        )
    for r in results:
        print(f"{printable(r['hypothesis'])}: {r['signature']}", file=sys.stderr)


def _per_sentence(scores: Iterable[tuple[str, Score]]) -> Iterator[str]:
    counts = ("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible")
    yield "\t".join(("hypothesis", "line", *counts, *METRICS))
    for name, scored in scores:
        yield from progress_bar(_rows(name, scored.per_sentence), len(scored.per_sentence.sure), "sentences")


def _rows(name: str, counts: Counts) -> Iterator[str]:
    """One row a sentence; scores are fractions, empty where undefined."""
    values = (measure(counts).tolist() for measure in METRICS.values())
    integers = (array.tolist() for array in counts.arrays())
    for line, row in enumerate(zip(*integers, *values), 1):
        fields = ("" if defined(value) is None else repr(value) for value in row)
        yield "\t".join((printable(name), str(line), *fields))


_FORMATS = {"text": _text, "json": _json, "tsv": _tsv}
