"""``align-eval score``: AER, precision and recall of word alignments against gold."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from alignment_eval.aer import Counts, Score, aer, defined, precision, recall, score
from alignment_eval.checks import direction_warning
from alignment_eval.commands.reading import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_text_arguments,
    gold_options,
    hypothesis_options,
    reading_fields,
    texts_of,
)
from alignment_eval.errors import InputError, UsageError
from alignment_eval.formats import Alignments, read_gold, read_hypothesis, warn_on_stderr
from alignment_eval.signature import signature
from alignment_eval.textfiles import STANDARD, write_lines

_EPILOG = """\
Examples:
  align-eval score --gold gold.talp --gold-base 1 --hyp out.pharaoh
  align-eval score --gold gold.talp --gold-base 1 --hyp a.pharaoh b.pharaoh --format tsv
  align-eval score --gold gold.talp --gold-base 1 --hyp out.pharaoh --source test.de --target test.en
  fairseq-generate … --print-alignment hard | align-eval score --gold gold.talp --gold-base 1 --hyp -

json: one object a line and hypothesis; AER, precision and recall are fractions, null where undefined.
text, tsv: they are percentages.  Exit status: 0 success, 1 bad data, 2 bad usage.
"""

#: Column of the tables -> its value in the object of :func:`_result`.
_COLUMNS = ("hypothesis", "aer", "precision", "recall")
_COUNTS = ("hypothesis_links", "hypothesis_links_sure", "hypothesis_links_possible", "sure_links", "possible_links")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``score``."""
    parser.epilog = _EPILOG
    add_gold_arguments(parser)
    add_hypothesis_arguments(parser)
    add_text_arguments(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--format", choices=tuple(_FORMATS), default="json", help="of the output (default: json)")
    group.add_argument("--per-sentence", metavar="FILE", help="write the counts and scores of each sentence, as TSV")


def run(args: argparse.Namespace) -> None:
    """Score every hypothesis; nothing is printed before all have been."""
    paths = [args.gold, *args.hyp, *filter(None, (args.source, args.target))]
    if paths.count(STANDARD) > 1:
        raise UsageError("several inputs are -: expected at most one to come from the standard input")
    if args.per_sentence == STANDARD:
        raise UsageError("--per-sentence -: expected a file; the standard output takes the scores")
    texts = texts_of(args)
    gold = read_gold(args.gold, gold_options(args), texts)
    if not len(gold.links.possible):
        warn_on_stderr(f"{gold.file.name}: no links in the gold: AER says nothing")
    results, scores = [], []
    for path in args.hyp:
        hypothesis = read_hypothesis(path, hypothesis_options(args), texts)
        scores.append((hypothesis.file.name, score_files(hypothesis, gold)))
        results.append(_result(hypothesis, gold, scores[-1][1], args.hyp_allow_possible))
    if args.per_sentence:
        write_lines(args.per_sentence, _per_sentence(scores))
    for line in _FORMATS[args.format](results):
        print(line)


def score_files(hypothesis: Alignments, gold: Alignments) -> Score:
    """Score one file against another; warns on stderr where the direction looks swapped.

    Raises:
        InputError: they are not of as many sentences.
    """
    names = hypothesis.file.name, gold.file.name
    counts = hypothesis.links.sentences, gold.links.sentences
    if counts[0] != counts[1]:
        naacl = "naacl" in (hypothesis.file.format, gold.file.format)
        raise InputError(
            f"{names[0]} has {counts[0]} sentences, {names[1]} has {counts[1]}: expected as many, a blank line for a "
            f"sentence without links{'; NAACL files end with the last link: give --source and --target' * naacl}"
        )
    links = hypothesis.links.possible
    if warning := direction_warning(names[0], links, gold.links, hypothesis.swap):
        warn_on_stderr(warning)
    return score(links, gold.links)


def _result(hypothesis: Alignments, gold: Alignments, scored: Score, allow_possible: bool) -> dict[str, Any]:
    return {
        "hypothesis": hypothesis.file.name,
        "aer": scored.aer,
        "precision": scored.precision,
        "recall": scored.recall,
        "hypothesis_links": int(scored.counts.hypothesis),
        "hypothesis_links_sure": int(scored.counts.hypothesis_sure),
        "hypothesis_links_possible": int(scored.counts.hypothesis_possible),
        "sure_links": int(scored.counts.sure),
        "possible_links": len(gold.links.possible) - len(gold.links.sure),
        "sentences": gold.links.sentences,
        "signature": signature(
            metric="aer",
            **reading_fields("gold", gold),
            **reading_fields("hyp", hypothesis),
            hyp_possible=allow_possible,
            sentences=gold.links.sentences,
        ),
    }


def _json(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    return (json.dumps(result) for result in results)


def _text(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    for r in results:
        yield f"{r['hypothesis']}: " + ", ".join(
            f"{name} {'undefined' if r[key] is None else f'{100 * r[key]:.2f} %'}"
            for name, key in (("AER", "aer"), ("precision", "precision"), ("recall", "recall"))
        )
        yield (
            f"  {r['hypothesis_links']} links, gold {r['sure_links']} sure and {r['possible_links']} more possible, "
            f"{r['sentences']} sentences"
        )
        yield f"  {r['signature']}"


def _tsv(results: Iterable[dict[str, Any]]) -> Iterator[str]:
    yield "\t".join(("hypothesis", "aer_percent", "precision_percent", "recall_percent", *_COUNTS, "sentences"))
    for r in results:
        scores = ("" if r[key] is None else f"{100 * r[key]:.2f}" for key in ("aer", "precision", "recall"))
        yield "\t".join((r["hypothesis"], *scores, *(str(r[key]) for key in (*_COUNTS, "sentences"))))
    for r in results:
        print(f"{r['hypothesis']}: {r['signature']}", file=sys.stderr)


def _per_sentence(scores: Iterable[tuple[str, Score]]) -> Iterator[str]:
    counts = ("hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible")
    yield "\t".join(("hypothesis", "line", *counts, "aer", "precision", "recall"))
    for name, scored in scores:
        yield from _rows(name, scored.per_sentence)


def _rows(name: str, counts: Counts) -> Iterator[str]:
    """One row a sentence; scores are fractions, empty where undefined."""
    values = (measure(counts).tolist() for measure in (aer, precision, recall))
    integers = (array.tolist() for array in counts.arrays())
    for line, row in enumerate(zip(*integers, *values), 1):
        fields = ("" if defined(value) is None else repr(value) for value in row)
        yield "\t".join((name, str(line), *fields))


_FORMATS = {"json": _json, "text": _text, "tsv": _tsv}
