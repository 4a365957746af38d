"""``align-eval report``: figures and maps of all layers, heads and sentences in one HTML page."""

from __future__ import annotations

import argparse

from alignment_eval.errors import say, warn_on_stderr
from alignment_eval.extraction.corpus import align_corpus, check_same_text
from alignment_eval.extraction.rules import RULES
from alignment_eval.figures.names import visible
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.checks import Texts
from alignment_eval.links.read import AlignmentFile, ReadOptions, read_hypothesis
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import SETTINGS
from alignment_eval.options.alignments import (
    add_base,
    add_gold_arguments,
    add_text_arguments,
    check_standard_input,
    distinct_names,
    reading_fields,
    resampling_fields,
    warn_of_few,
)
from alignment_eval.options.common import add_output
from alignment_eval.options.records import (
    add_kinds,
    add_records,
    forced_records,
    gold_and_texts,
    gold_of_records,
    open_reverse,
    warn_skipped,
)
from alignment_eval.profiles.chosen import NO_PROFILE, ChosenMethod
from alignment_eval.profiles.of_records import directed_pairs, method_of_records, with_words
from alignment_eval.progress import progress_bar
from alignment_eval.records.store import Records
from alignment_eval.report.build import ReportOptions, System, build
from alignment_eval.report.page import render
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
    parser.add_argument("--rule", default="kobayashi2020", metavar="RULE", help=f"extraction rule: {', '.join(RULES)}")
    parser.add_argument(
        "--profile",
        metavar="FILE",
        help="also show the links by this profile (default: the profile in the records, if any; none: no links)",
    )
    parser.add_argument(
        "--reverse",
        metavar="RECORDS",
        help="records of a target-source model on the same pairs: the links by the profiles are of both directions",
    )
    group = parser.add_argument_group("hypotheses", "shown next to each other and to the maps")
    group.add_argument(
        "--hyp", action="extend", nargs="+", metavar="HYP", help="word alignments, all read in the same way"
    )
    add_base(group, "hyp", "0")
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
    check_standard_input([args.gold, *(args.hyp or [])])
    records = forced_records(args.records)
    options = ReportOptions(
        kinds=tuple(args.kinds or records.info.kinds),
        rule=args.rule,
        max_sentences=args.max_sentences,
    )
    gold, texts = gold_and_texts(args, records)
    reverse = None if args.reverse is None else open_reverse(args.reverse, records)
    hypotheses = [
        gold_of_records(read_hypothesis(path, ReadOptions(base=args.hyp_base)), records) for path in args.hyp or []
    ]
    warn_of_few(records.info.size)
    chosen = _by_profile(args.profile, records, reverse)
    systems = [] if chosen is None else [_aligned(records, reverse, chosen, texts)]
    systems += [_read(path, read) for path, read in zip(distinct_names(args.hyp or []), hypotheses)]
    report = build(progress_bar(records.best(), records.info.size, "sentences"), list(gold), options, texts, systems)
    warn_skipped(report.skipped, records.info.size, "each counts as an empty hypothesis")
    extraction = options.extraction()[0]
    signed = signature(
        records=records.info.signature_hash,
        **reading_fields("gold", gold),
        kinds=",".join(options.kinds),
        settings=",".join(SETTINGS),
        rule=extraction.rule,
        null=extraction.null,
        **resampling_fields(options.resampling, records.info.size, interval="bootstrap-percentile"),
        **({} if chosen is None else _alignment_fields(chosen, reverse)),
        **{f"{name}_{n}": v for n, read in enumerate(hypotheses, 1) for name, v in reading_fields("hyp", read).items()},
    )
    html = render(report, f"Word alignments in {args.records}", signed, records.info.signature)
    write_lines(args.output, [html])
    if (size := len(html.encode())) > LARGE:
        fitting = max(1, int(len(report.shown) * LARGE / size))
        warn_on_stderr(f"{args.output}: {size / 1e6:.0f} MB; --max-sentences {fitting} makes a page of about 15 MB")
    say(signed)


def _by_profile(named: str | None, records: Records, reverse: Records | None) -> ChosenMethod | None:
    """The method that ``extract`` takes by a profile; None if there is no profile."""
    if named == NO_PROFILE or (named is None and reverse is None and records.info.profile is None):
        return None
    chosen = method_of_records([records] if reverse is None else [records, reverse], named)
    say(f"align-eval report: {chosen.reason}")
    return chosen


def _alignment_fields(chosen: ChosenMethod, reverse: Records | None) -> dict[str, Value]:
    """The fields of the signature that describe the alignment by the profile."""
    back = {} if reverse is None else {"reverse": reverse.info.signature_hash}
    return {f"alignment_{name}": value for name, value in {**back, **chosen.method.fields(), **chosen.fields}.items()}


def _aligned(records: Records, reverse: Records | None, chosen: ChosenMethod, texts: Texts | None) -> System:
    """The links by the profile, as ``extract`` draws them.

    Raises:
        InputError: those of the records; or the two directions are not of the same text.
    """
    words: dict[int, tuple[PairWords, PairWords | None]] = {}
    pairs = with_words(directed_pairs(records, reverse, chosen.method, "word", texts), words)
    links = {pair.id: pair.links.links for pair in align_corpus(pairs, chosen.method) if pair.links is not None}
    check_same_text((forward, back) for forward, back in words.values() if back is not None)
    name = "the profile" if reverse is None else "the profiles of both directions"
    return System(name, chosen.reason, links)


def _read(name: str, read: AlignmentFile) -> System:
    return System(name, f"read from {visible(read.file.name)}", dict(enumerate(read.each_links())))
