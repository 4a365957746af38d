"""``align-eval report``: alignments compared, and maps of all layers, heads and sentences, in one HTML page."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path

from alignment_eval import options
from alignment_eval.command_line import add_output, positive_integer
from alignment_eval.errors import UsageError, progress_bar, say, warn_user
from alignment_eval.extraction.method import DEFAULTS, MapName
from alignment_eval.figures.report import build, render
from alignment_eval.figures.style import visible
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.files import AlignmentFile, read_hypothesis
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.profile import fit_profile, parse_profile
from alignment_eval.reading import Size
from alignment_eval.records import Records
from alignment_eval.scoring.diagnosis import doubts
from alignment_eval.signature import Value, signature

EPILOG = """\
The page is one file that needs no network and a browser of 2024 or later.

Examples, after make demo:
  align-eval report --gold data/demo/demo.talp --gold-base 1 --hyp out/demo/hyp.pharaoh out/demo/both.pharaoh \\
      --source data/demo/demo.de --target data/demo/demo.en -o out/aligners.html
  align-eval report out/demo/forced --gold data/demo/demo.talp --gold-base 1 --output out/report.html
"""
#: Larger pages open slowly.
LARGE = 20e6


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_records(parser, optional=True)
    options.add_gold_arguments(parser, required=False, more="; without gold the page has no scores")
    options.add_text_arguments(parser)
    options.add_hypothesis_arguments(parser.add_argument_group("hypotheses", "the alignments to compare"), "--hyp")
    group = parser.add_argument_group("records")
    options.add_kinds(group)
    options.add_rule(group)
    group = parser.add_argument_group("page")
    group.add_argument("--title", metavar="TEXT", help="heading (default: what is compared)")
    help_ = "show at most N sentences, evenly spaced over the corpus, to keep the page small (default: all)"
    group.add_argument("--max-sentences", type=positive_integer, metavar="N", help=help_)
    add_output(group, "the page (-: standard output)", required=True)


def run(args: argparse.Namespace) -> None:
    options.refuse_without_records(args, ("kinds", "rule"))
    if args.records is None and not args.hyp:
        raise UsageError("neither RECORDS nor --hyp: expected alignments to compare, or records of maps, or both")
    if args.records is None and None in (args.source, args.target):
        raise UsageError("--hyp without RECORDS: expected the texts too, by --source and --target")
    check_new(args.output, args.overwrite)
    systems = args.hyp or []
    records = (
        None if args.records is None else options.forced_records(args.records) if args.gold else Records(args.records)
    )
    words = options.words_of_texts(args)
    gold: AlignmentFile | None = None
    if args.gold is None:
        texts = options.texts_of(args)
        hypotheses = [read_hypothesis(system.path, options.read_options(args, "hyp"), texts) for system in systems]
        size = records.size if records is not None else Size(args.source, len(words or ()), "lines")
    else:
        texts, gold, hypotheses = options.read_systems(args, systems)
        if records is not None:
            gold.fit(records.size)
        size = gold.size
    for read in hypotheses:
        read.fit(size)
    length = size.sentences
    if gold is not None:
        for read in hypotheses:
            if warning := doubts(read, gold):
                warn_user(warning)
        options.warn_of_few(length)
    names = options.distinct_names(systems)
    kinds: tuple[str, ...] = ()
    fields: dict[str, Value] = {}
    if records is None:
        sentences: Iterable[SentenceMaps] = (
            SentenceMaps(id_, SentenceSide.of_words(source), SentenceSide.of_words(target), layers=())
            for id_, (source, target) in enumerate(words or ())
        )
        title = f"Word alignments compared: {', '.join(names)}"
    else:
        kinds, sentences = tuple(args.kinds or records.info.kinds), records.best()
        title = f"Attention maps and word alignments: {visible(Path(args.records).resolve().name)}"
        fields["records"] = records.info.signature_hash
    report = build(
        progress_bar(sentences, length, "sentences"),
        length if gold is None else list(gold),
        kinds=kinds,
        rule=args.rule or DEFAULTS.map_rule,
        systems=[(name, list(read.each_links())) for name, read in zip(names, hypotheses)],
        texts=texts,
        words=words,
        max_sentences=args.max_sentences,
        opened=None if records is None or gold is not None else _telling_map(records),
    )
    options.warn_skipped(
        report.skipped, length, "they have no maps" if gold is None else "each counts as an empty hypothesis"
    )
    if gold is not None:
        fields |= options.reading_fields("gold", gold)
    if (method := report.method) is not None:
        fields |= {"kinds": ",".join(kinds), "settings": ",".join(SETTINGS), "rule": method.rule, "null": method.null}
    if gold is not None:
        fields |= options.resampling_fields(report.resampling, interval="bootstrap-percentile")
    for number, read in enumerate(hypotheses, 1):
        fields |= {f"{name}_{number}": value for name, value in options.reading_fields("hyp", read).items()}
    signed = signature(**fields)
    provenance = {} if records is None else dict(records.info.signature)
    html = render(report, title if args.title is None else args.title, signed, provenance)
    write_lines(args.output, [html])
    if (bytes_ := len(html.encode())) > LARGE:
        fitting = max(1, int(len(report.shown) * LARGE / bytes_))
        warn_user(f"{args.output}: {bytes_ / 1e6:.0f} MB; --max-sentences {fitting} makes a page of about 20 MB")
    say(signed)


def _telling_map(records: Records) -> MapName:
    """The first map that the profile of a run reads; without a profile, that one of its first sentences would read."""
    if records.info.profile is not None:
        maps = parse_profile(records.info.profile, str(records.directory)).maps
    else:
        first = islice((sentence for sentence in records.best() if sentence.ok), DEFAULTS.profile_pairs)
        maps = fit_profile([*first] if DEFAULTS.kind in records.info.kinds else (), records.info.layers, "").maps
    name = maps.heads[0]
    return replace(name, setting=name.setting or maps.setting)
