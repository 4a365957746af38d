"""``align-eval select``: the maps and the rule to take, chosen on a development gold or by agreement without gold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from alignment_eval.arguments.alignments import (
    add_gold_reading,
    add_text_arguments,
    check_standard_input,
    reading_fields,
)
from alignment_eval.arguments.lists import add_list
from alignment_eval.arguments.maps import add_final_punctuation_argument
from alignment_eval.arguments.output import add_output
from alignment_eval.arguments.records import (
    add_configuration_arguments,
    add_records,
    check_forced,
    configuration_fields,
    configurations_of,
    forced_records,
    gold_and_texts,
    open_reverse,
    warn_skipped,
    with_progress,
)
from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import parse_maps
from alignment_eval.extraction.rules import rule_of
from alignment_eval.files import STANDARD, check_new, write_lines
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import COMBINATIONS, FLOOR
from alignment_eval.progress import progress_bar
from alignment_eval.records.store import Records
from alignment_eval.selection.describe import describe_by_agreement, describe_by_gold
from alignment_eval.selection.methods import choose_by_gold
from alignment_eval.selection.of_records import model_of
from alignment_eval.selection.profile import Profile, pair_hash, text_hash
from alignment_eval.selection.search import (
    FINALISTS,
    LEVELS,
    Candidate,
    SelectionOptions,
    select_by_agreement,
)
from alignment_eval.signature import Value, signature

_EPILOG = """\
Example, after make demo (a real choice is made on one gold set and used on another):
  align-eval select out/demo/forced --dev-gold data/demo/demo.talp --gold-base 1 --output out/profile.json --overwrite
  align-eval extract out/demo/forced --profile out/profile.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``select``."""
    parser.epilog = _EPILOG
    add_records(parser)
    group = parser.add_argument_group("what to choose by (at least one of the two)")
    group.add_argument(
        "--dev-gold",
        dest="gold",
        metavar="FILE",
        help="gold alignments of these sentences: choose the lowest AER; report figures on other sentences",
    )
    group.add_argument(
        "--reverse",
        metavar="RECORDS",
        help="records of a target-source model on the same pairs: choose for both directions; without --dev-gold, by "
        "the agreement of their links",
    )
    add_gold_reading(group)
    add_text_arguments(parser)
    group = parser.add_argument_group("what to choose from")
    add_configuration_arguments(group)
    add_final_punctuation_argument(group)
    add_list(group, "--levels", f"of {', '.join(LEVELS)} (default: both)", metavar="LEVEL", default=LEVELS)
    add_list(
        group,
        "--combine",
        f"how a set of maps may be combined: {', '.join(COMBINATIONS)} (default: both; with --dev-gold)",
        metavar="HOW",
        default=COMBINATIONS,
    )
    group.add_argument(
        "--mix-settings", action="store_true", help="a set may hold maps of AWO and of AWI (with --dev-gold)"
    )
    group.add_argument(
        "--max-heads", type=int, default=8, metavar="N", help="maps in a set at most (default: 8; with --dev-gold)"
    )
    group.add_argument(
        "--lexicon",
        type=int,
        default=0,
        metavar="PASSES",
        help="also try a lexicon of the text, counted so many times (default: 0, none; with --dev-gold)",
    )
    group = parser.add_argument_group("output")
    add_output(group, "profile, for align-eval extract --profile")


@dataclass(frozen=True)
class _Chosen:
    """A choice: the profile as far as it follows from it, its own fields of the signature, the report's lines."""

    profile: Profile
    fields: dict[str, Value]
    lines: list[str]


def run(args: argparse.Namespace) -> None:
    """Print the ranking and the choice; write the profile."""
    check_usage(args)
    check_free(args.output, args.overwrite)
    check_standard_input([args.gold, args.source, args.target])
    records = forced_records(args.records)
    reverse = None if args.reverse is None else open_reverse(args.reverse, records)
    if reverse is not None:
        check_forced(reverse)
    options = _options(args, records)
    sentences = list(with_progress(records))
    chosen = (_by_agreement if args.gold is None else _by_gold)(args, records, reverse, sentences, options)
    profile = replace(
        chosen.profile,
        signature=signature(
            records=records.info.signature_hash,
            **chosen.fields,
            **({} if reverse is None else {"reverse": reverse.info.signature_hash}),
            **configuration_fields(options.configurations),
            levels=",".join(options.levels),
            **({"mix_settings": True} if options.mix_settings else {}),
        ),
    )
    if args.output is not None:
        write_lines(args.output, [profile.to_json()])
    print("\n".join(chosen.lines))
    print(profile.signature, file=sys.stderr)


def check_usage(args: argparse.Namespace) -> None:
    """Check which options go together.

    Raises:
        UsageError: there is nothing to choose by, or an option is for a choice by gold only.
    """
    if args.gold is None and args.reverse is None:
        raise UsageError("nothing to choose by: expected --dev-gold FILE, --reverse RECORDS, or both")
    if args.gold is None:
        if args.source is not None or args.target is not None:
            raise UsageError("--source and --target without --dev-gold: they check a gold; expected --dev-gold too")
        if args.lexicon:
            raise UsageError("--lexicon without --dev-gold: agreement compares single maps; expected --dev-gold too")


def check_free(output: str | None, overwrite: bool) -> None:
    """Check that the choice may be written.

    Raises:
        UsageError: to the standard output, which has the report.
        InputError: as :func:`alignment_eval.files.check_new`.
    """
    if output == STANDARD:
        raise UsageError("--output -: the standard output has the report; expected the name of a file")
    if output is not None:
        check_new(output, overwrite)


def _options(args: argparse.Namespace, records: Records) -> SelectionOptions:
    configurations = configurations_of(args, records)
    if args.mix_settings:  # the settings of all maps are tried in each
        configurations = [option for option in configurations if option.setting == configurations[0].setting]
    return SelectionOptions(configurations, args.levels, args.combine, args.max_heads, args.mix_settings)


def _by_gold(
    args: argparse.Namespace,
    records: Records,
    reverse: Records | None,
    sentences: Sequence[SentenceMaps],
    options: SelectionOptions,
) -> _Chosen:
    gold, texts = gold_and_texts(args, records)
    back = [] if reverse is None else list(reverse.best())
    choice = choose_by_gold(sentences, gold.links.to_sentences(), options, texts, back, args.lexicon, progress_bar)
    warn_skipped(choice.forward.skipped, records.info.size, "each counts as an empty hypothesis")
    best = choice.both or choice.alone
    profile = Profile(
        **_model_and_text(records, reverse, sentences),
        alone=choice.alone.method,
        streamed=choice.streamed.method,
        both=None if choice.both is None else choice.both.method,
        chosen_by="gold",
        figure=best.aer,
        gold=gold.file.hash,
        sentences=tuple(sorted(pair_hash(words_of(sentence)) for sentence in sentences if sentence.ok)),
    )
    fields: dict[str, Value] = {
        **reading_fields("dev_gold", gold),
        "combine": ",".join(options.combinations),
        **({"floor": FLOOR} if "product" in options.combinations else {}),
        "max_heads": options.max_maps,
        **({"lexicon": args.lexicon} if args.lexicon else {}),
        **({"finalists": FINALISTS} if args.lexicon or reverse is not None else {}),
    }
    return _Chosen(profile, fields, describe_by_gold(choice, records.info.size))


def _by_agreement(
    args: argparse.Namespace,
    records: Records,
    reverse: Records | None,
    sentences: Sequence[SentenceMaps],
    options: SelectionOptions,
) -> _Chosen:
    selection = select_by_agreement(sentences, [] if reverse is None else reverse.best(), options, progress_bar)
    warn_skipped(selection.skipped, records.info.size, "in one direction at least; they are left out")
    alone = AlignmentMethod(selection.choice.extraction)
    profile = Profile(
        **_model_and_text(records, reverse, sentences),
        alone=alone,
        streamed=alone,
        both=_both(selection.choice),
        chosen_by="agreement",
        figure=selection.choice.figure,
    )
    return _Chosen(profile, {}, describe_by_agreement(selection, records.info.size))


def _model_and_text(records: Records, reverse: Records | None, sentences: Sequence[SentenceMaps]) -> dict[str, Any]:
    """What a profile says of the models, and of the sentence pairs that it was chosen on."""
    return {
        "model": str(model_of(records.info)),
        "reverse_model": None if reverse is None else str(model_of(reverse.info)),
        "pairs": records.info.size,
        "text": text_hash(enumerate(words_of(sentence) for sentence in sentences if sentence.ok)),
    }


def _both(choice: Candidate) -> AlignmentMethod:
    """The method for the two maps that agree."""
    reverse = choice.extraction.with_maps(parse_maps(str(choice.reverse_heads)))
    join = "average" if rule_of(choice.extraction.rule).units == "words" else "mutual"
    return AlignmentMethod(choice.extraction, reverse, BidirectionalOptions(join=join))
