"""``align-eval report``: figures and maps of all layers, heads and sentences in one HTML page."""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from alignment_eval.arguments.alignments import (
    add_gold_arguments,
    add_text_arguments,
    reading_fields,
)
from alignment_eval.arguments.maps import add_final_punctuation_argument
from alignment_eval.arguments.output import add_output
from alignment_eval.arguments.records import (
    add_kinds,
    add_records,
    add_settings,
    forced_records,
    gold_and_texts,
    warn_skipped,
    with_progress,
)
from alignment_eval.arguments.resampling import (
    add_resampling_arguments,
    resampling_fields,
    resampling_of,
    warn_of_few,
)
from alignment_eval.errors import warn_on_stderr
from alignment_eval.extraction.corpus import align_corpus
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.rules import NULLS, RULES
from alignment_eval.files import check_new, write_lines
from alignment_eval.formats.checks import Texts
from alignment_eval.maps.words import SETTINGS
from alignment_eval.records.store import Records
from alignment_eval.report.build import ReportOptions, build
from alignment_eval.report.page import render
from alignment_eval.selection.chosen import ChosenMethod
from alignment_eval.selection.of_records import NO_PROFILE, method_of_records
from alignment_eval.selection.recorded_pairs import directed_pairs
from alignment_eval.signature import Value, signature

_EPILOG = """\
The page is one file that needs no network and a browser of 2024 or later.

Example, after make demo:
  align-eval report out/demo/forced --gold data/demo/demo.talp --gold-base 1 --output out/report.html
"""
#: Larger pages open slowly.
LARGE = 15e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``report``."""
    parser.epilog = _EPILOG
    add_records(parser)
    add_gold_arguments(parser)
    add_text_arguments(parser)
    add_kinds(parser)
    add_settings(parser)
    parser.add_argument("--rule", default="kobayashi2020", metavar="RULE", help=f"extraction rule: {', '.join(RULES)}")
    parser.add_argument(
        "--null", metavar="NULL", help=f"{', '.join(NULLS)}: may </s> and tags win? (default: by the rule)"
    )
    add_final_punctuation_argument(parser)
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="also show the links by this profile (default: the profile in the records, if any; none: no links)",
    )
    add_resampling_arguments(parser)
    parser.add_argument(
        "--max-sentences",
        type=int,
        metavar="N",
        help="maps of at most N sentences, evenly spaced over the corpus, to keep the page small (default: all)",
    )
    add_output(parser, "the page (-: standard output)", required=True)


def run(args: argparse.Namespace) -> None:
    """Write the page; the signature of its figures goes to stderr."""
    check_new(args.output, args.overwrite)
    records = forced_records(args.records)
    options = ReportOptions(
        kinds=tuple(args.kinds or records.info.kinds),
        settings=tuple(args.settings or SETTINGS),
        rule=args.rule,
        null=args.null,
        final_punctuation=args.final_punctuation,
        max_sentences=args.max_sentences,
        resampling=resampling_of(args),
    )
    gold, texts = gold_and_texts(args, records)
    warn_of_few(records.info.size)
    chosen = _by_profile(args.profile, records)
    alignment = None if chosen is None else _aligned(records, chosen.method, texts)
    report = build(with_progress(records), gold.links.to_sentences(), options, texts, alignment)
    warn_skipped(report.skipped, records.info.size, "each counts as an empty hypothesis")
    extraction = options.extraction()[0]
    signed = signature(
        records=records.info.signature_hash,
        **reading_fields("gold", gold),
        kinds=",".join(options.kinds),
        settings=",".join(options.settings),
        rule=extraction.rule,
        null=extraction.null,
        final_punctuation=options.final_punctuation,
        **resampling_fields(options.resampling, records.info.size, interval="bootstrap-percentile"),
        **({} if chosen is None else _alignment_fields(chosen)),
    )
    method = "" if chosen is None else chosen.reason
    html = render(report, f"Word alignments in {args.records}", signed, records.info.signature, method)
    write_lines(args.output, [html])
    if (size := len(html.encode())) > LARGE:
        fitting = max(1, int(len(report.shown) * LARGE / size))
        warn_on_stderr(f"{args.output}: {size / 1e6:.0f} MB; --max-sentences {fitting} makes a page of about 15 MB")
    print(signed, file=sys.stderr)


def _by_profile(named: str | None, records: Records) -> ChosenMethod | None:
    """The method that ``extract`` takes by a profile; None if there is no profile."""
    if named == NO_PROFILE or (named is None and records.info.profile is None):
        return None
    chosen = method_of_records([records], named)
    print(f"align-eval report: {chosen.reason}", file=sys.stderr)
    return chosen


def _alignment_fields(chosen: ChosenMethod) -> dict[str, Value]:
    """What the signature says of the alignment beside the maps."""
    return {f"alignment_{name}": value for name, value in {**chosen.method.fields(), **chosen.fields}.items()}


def _aligned(records: Records, method: AlignmentMethod, texts: Texts | None) -> dict[int, NDArray[np.bool_]]:
    """The links of each sentence that can be aligned, as ``extract`` draws them."""
    pairs = directed_pairs(records, None, method, "word", texts)
    return {pair.id: pair.links.linked for pair in align_corpus(pairs, method) if pair.links is not None}
