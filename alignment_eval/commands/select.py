"""``align-eval select``: the maps and the rule to read from records, chosen without gold or on a development gold."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from alignment_eval.errors import InputError, UsageError, say
from alignment_eval.extraction.defaults import FEWEST_PAIRS, SINGLE_RULE
from alignment_eval.extraction.extract import WordMaps, check_same_size, check_same_text
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.rules import RULE_NAMES
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import words_of
from alignment_eval.options.alignments import add_gold_reading, add_text_arguments, reading_fields
from alignment_eval.options.common import add_list, add_output, file_name
from alignment_eval.options.records import (
    add_kinds,
    add_records,
    check_forced,
    forced_records,
    gold_and_texts,
    open_reverse,
    warn_skipped,
)
from alignment_eval.profiles.chosen import described, description
from alignment_eval.profiles.of_records import calibrated_records, directed_pairs, model_of
from alignment_eval.profiles.profile import Profile, calibrated_by_gold, together
from alignment_eval.profiles.search import GoldChoice, aer_of_method, choose_by_gold, exchanged_gold
from alignment_eval.progress import progress_bar
from alignment_eval.records.store import Records
from alignment_eval.scoring.gold_corpus import confirmed
from alignment_eval.signature import Value, signature

_SHOWN = 10
EPILOG = """\
Example, after make demo (a real choice is made on one gold set and used on another):
  align-eval select out/demo/forced --dev-gold data/demo/demo.talp --gold-base 1 --output out/profile.json --overwrite
  align-eval extract out/demo/forced --profile out/profile.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``select``."""
    add_records(parser)
    parser.add_argument(
        "--reverse", metavar="RECORDS", help="records of a target-source model on the same pairs: choose for both"
    )
    group = parser.add_argument_group("development gold (default: the maps that agree most, without gold)")
    group.add_argument(
        "--dev-gold",
        dest="gold",
        metavar="FILE",
        help="gold alignments of these sentences: choose the lowest AER; report figures on other sentences",
    )
    add_gold_reading(group)
    add_kinds(group)
    add_list(
        group,
        "--rules",
        f"rules to choose among: {', '.join(RULE_NAMES)} (default: {SINGLE_RULE})",
        metavar="RULE",
    )
    add_text_arguments(parser)
    group = parser.add_argument_group("output")
    add_output(group, "profile, for align-eval extract --profile", type=file_name)


def run(args: argparse.Namespace) -> None:
    """Print the choice; write the profile."""
    check_usage(args)
    runs = [forced_records(args.records)]
    if args.reverse is not None:
        runs.append(open_reverse(args.reverse, runs[0]))
        check_forced(runs[1])
    by_gold = args.gold is not None
    profiles, fields = (_by_gold if by_gold else _by_agreement)(args, runs)
    profile = profiles[0]
    if len(runs) > 1:
        profile = together(*profiles)
        assert profile.both is not None
        pairs = list(directed_pairs(runs[0], runs[1], profile.both, "word", None))
        check_same_pairs(pairs)
        if args.rules:
            gold, _ = gold_and_texts(args, runs[0])
            profile = replace(profile, both=best_product(profile.both, pairs, args.rules, list(gold)))
    signed = signature(
        records=runs[0].info.signature_hash,
        **({} if len(runs) == 1 else {"reverse": runs[1].info.signature_hash}),
        **fields,
        **profile.fields(),
    )
    profile = replace(profile, signature=signed)
    if args.output is not None:
        write_lines(args.output, [profile.to_json()])
    print(f"Choice: {description(profile)}")
    say(signed)


def check_usage(args: argparse.Namespace) -> None:
    """Check which options go together, and that the choice may be written."""
    if args.gold is None:
        for name in ("source", "target", "kinds", "rules"):
            if getattr(args, name) is not None:
                raise UsageError(f"--{name} without --dev-gold: expected a gold to choose by")
    if args.output is not None:
        check_new(args.output, args.overwrite)


def _by_agreement(args: argparse.Namespace, runs: Sequence[Records]) -> tuple[list[Profile], dict[str, Value]]:
    """The choice of each run without gold, and the signature fields of the choice."""
    profiles = [calibrated_records(records)[0] for records in runs]
    for records, profile in zip(runs, profiles):
        if profile.pairs < FEWEST_PAIRS:
            raise InputError(
                f"{records.directory}: fewer than {FEWEST_PAIRS} different sentence pairs with maps: expected "
                f"{FEWEST_PAIRS} or more to choose maps by; record more text, or give --dev-gold"
            )
    return profiles, {}


def _by_gold(args: argparse.Namespace, runs: Sequence[Records]) -> tuple[list[Profile], dict[str, Value]]:
    """The same as :func:`_by_agreement` by AER on ``--dev-gold``; prints what was compared."""
    gold, texts = gold_and_texts(args, runs[0])
    sentences = list(gold)
    own = (sentences, texts), (exchanged_gold(sentences), None if texts is None else texts.exchanged)
    profiles: list[Profile] = []
    for records, (own_gold, own_texts) in zip(runs, own):
        best = progress_bar(records.best(), records.info.size, "sentences")
        read = [sentence if own_texts is None else confirmed(sentence, own_texts) for sentence in best]
        kinds = args.kinds or records.info.kinds
        choice = choose_by_gold(read, own_gold, kinds, args.rules or [SINGLE_RULE])
        if not profiles:
            warn_skipped(choice.skipped, records.info.size, "each counts as an empty hypothesis")
        print("\n".join(ranking(choice, records)))
        profiles.append(calibrated_by_gold(choice, str(model_of(records.info)), gold.file.hash))
    fields: dict[str, Value] = {**reading_fields("dev_gold", gold), "kinds": ",".join(args.kinds or runs[0].info.kinds)}
    return profiles, {**fields, **({"rules": ",".join(args.rules)} if args.rules else {})}


def ranking(choice: GoldChoice, records: Records) -> list[str]:
    """The best candidates, for a reader."""
    shown = choice.ranking[:_SHOWN]
    lines = [f"The {len(shown)} lowest AERs of {len(choice.ranking)} sets of maps in {records.directory}"]
    rows = [(f"{100 * aer:.2f}", maps.kind, maps.rule, described(maps)) for maps, aer in shown]
    return [*lines, *("  ".join(row) for row in [("AER %", "kind", "rule", "maps"), *rows]), ""]


def check_same_pairs(pairs: Sequence[WordMaps]) -> None:
    """Check that both directions have the same sentence pairs."""
    both = [(forward.sentence, reverse.sentence) for forward, reverse in pairs if reverse is not None]
    for sentence, other in both:
        if sentence.ok and other.ok:
            check_same_size(sentence, other)
    check_same_text((words_of(sentence), words_of(other)) for sentence, other in both)


def best_product(
    both: AlignmentMethod, pairs: Sequence[WordMaps], rules: Sequence[str], gold: Sequence[GoldSentence]
) -> AlignmentMethod:
    """The product of both directions' word maps with the rule of the lowest AER; of equal ones the first."""
    assert both.reverse is not None
    methods = []
    for rule in rules:
        with suppress(UsageError):
            directions = both.forward.with_rule(rule), both.reverse.with_rule(rule)
            methods.append(AlignmentMethod(*directions, both.both))
    if not methods:
        raise UsageError(
            f"--rules {','.join(rules)}: none reads the product of two models: expected one such as grow=0.4"
        )
    return min(methods, key=lambda method: aer_of_method(method, pairs, gold))
