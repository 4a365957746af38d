"""``align-eval extract``: word alignments in Pharaoh format from recorded maps."""

from __future__ import annotations

import argparse

from alignment_eval.alignment import align_pairs
from alignment_eval.errors import UsageError, say, warn_on_stderr
from alignment_eval.extraction.extract import check_same_text, max_norm_layer
from alignment_eval.extraction.method import JOINS, BidirectionalOptions
from alignment_eval.files import check_new, write_lines
from alignment_eval.maps.sentence import PairWords
from alignment_eval.maps.words import LEVELS
from alignment_eval.options.alignments import add_text_arguments
from alignment_eval.options.common import add_output
from alignment_eval.options.method import (
    MAX_NORM,
    WORD_TABLE,
    add_map_arguments,
    add_reverse_heads,
    stated_method,
    states_maps,
    warn_of_few_pairs,
)
from alignment_eval.options.records import add_records, open_reverse, texts_of_records, warn_skipped
from alignment_eval.profiles.chosen import Overrides, by_options, seen_warning
from alignment_eval.profiles.of_records import directed_pairs, method_of_records, with_words
from alignment_eval.progress import progress_bar
from alignment_eval.records.store import Records
from alignment_eval.signature import signature

EPILOG = """\
Examples, after make demo:
  align-eval extract out/demo/forced --heads 1 --setting awo --rule kobayashi2020
  align-eval extract out/demo/forced --heads 1.0,1.2,2 --combine product --setting awo \\
      --rule threshold=0.2 --confidences
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``extract``."""
    add_records(parser)
    group = add_map_arguments(
        parser, "default: the profile that the records carry; without one, maps chosen on the records themselves"
    )
    group.add_argument(
        "--level",
        choices=LEVELS,
        default="word",
        help="word: link words (default); token: link subword tokens, as fairseq-preprocess --align-suffix reads them",
    )
    add_text_arguments(parser)
    group = parser.add_argument_group("both directions")
    group.add_argument("--reverse", metavar="RECORDS", help="records of a target-source model on the same pairs")
    group.add_argument(
        "--join",
        choices=JOINS,
        help="mutual: the links that both directions have; average, product: the rule on the mean or the product of "
        "their word maps",
    )
    add_reverse_heads(group)
    parser.add_argument_group("word table", WORD_TABLE).add_argument(
        "--word-table",
        type=int,
        metavar="PASSES",
        help="count one on the text in PASSES passes (0: none; default: 0 where maps are named, else by the profile)",
    )
    group = parser.add_argument_group("output")
    group.add_argument("--confidences", action="store_true", help="write i-j:p, p: share of the link in its row")
    add_output(group, "Pharaoh file", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write one line a sentence in corpus order; the signature goes to stderr."""
    check_usage(args)
    check_new(args.output, args.overwrite)
    both = None if args.join is None else BidirectionalOptions(args.join)
    stated = stated_method(args, both, args.word_table or 0) if states_maps(args) else None
    records = Records(args.records)
    reverse = None if args.reverse is None else open_reverse(args.reverse, records)
    if stated is not None and args.heads == MAX_NORM:
        layer = max_norm_layer(records.best(), stated.forward.setting)
        stated = stated_method(args, both, args.word_table or 0, layer)
    if stated is None:
        runs = [records] if reverse is None else [records, reverse]
        overrides = Overrides(args.rule, args.word_table, both, args.final_punctuation)
        chosen = method_of_records(runs, args.profile, overrides, pair_by_pair=args.level == "token")
    else:
        chosen = by_options(stated)
    if chosen.profile is not None:
        say(f"align-eval extract: {chosen.reason}")

    described = signature(
        records=records.info.signature_hash,
        **({} if reverse is None else {"reverse": reverse.info.signature_hash}),
        **chosen.method.fields(),
        **({"layer_by": MAX_NORM} if args.heads == MAX_NORM else {}),
        **({} if args.level == "word" else {"level": args.level}),
        **chosen.fields,
    )
    words: dict[int, tuple[PairWords, PairWords | None]] = {}
    pairs = directed_pairs(records, reverse, chosen.method, args.level, texts_of_records(args, records))
    if chosen.profile is not None or reverse is not None:
        pairs = with_words(pairs, words)
    shown = progress_bar(pairs, records.info.size, "sentences")
    lines, skipped = {}, {}
    for alignment in align_pairs(shown, chosen.method, on_count=warn_of_few_pairs):
        lines[alignment.id] = alignment.to_pharaoh(args.confidences)
        if not alignment.ok:
            skipped[alignment.id] = alignment.status
    check_same_text((forward, back) for forward, back in words.values() if back is not None)
    write_lines(args.output, (lines[id_] for id_ in range(records.info.size)))

    warn_skipped(skipped, records.info.size, "their lines are blank")
    if not records.info.forced:
        warn_on_stderr(
            f"{records.directory} holds maps of the model's own translations: these links are of their words, "
            f"and cannot be scored against gold of the references (record with --score-reference for that)"
        )
    if warning := seen_warning(chosen.profile, (forward for forward, _ in words.values()), len(words)):
        warn_on_stderr(warning)
    say(described)


def check_usage(args: argparse.Namespace) -> None:
    """Check which options go together."""
    if states_maps(args) and args.reverse is not None and args.join is None:
        raise UsageError("--reverse without --join: expected how both directions become one alignment")
    if args.reverse is None and args.join is not None:
        raise UsageError("--join without --reverse: expected the records of the other direction too")
    if args.reverse is None and args.reverse_heads is not None:
        raise UsageError("--reverse-heads without --reverse: expected the records of the other direction too")
