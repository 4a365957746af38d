"""``align-eval select``: the maps and the rule to take, chosen on a development gold or by agreement without gold."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from alignment_eval.arguments.alignments import (
    add_gold_reading,
    add_text_arguments,
    check_standard_input,
    reading_fields,
    texts_of,
)
from alignment_eval.arguments.maps import add_final_punctuation_argument
from alignment_eval.arguments.records import (
    add_configuration_arguments,
    check_forced,
    configuration_fields,
    configurations_of,
    forced_records,
    gold_and_texts,
    open_reverse,
    warn_skipped,
)
from alignment_eval.errors import UsageError
from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import parse_maps
from alignment_eval.extraction.rules import rule_of
from alignment_eval.files import STANDARD, check_new, write_lines
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import COMBINATIONS, FLOOR
from alignment_eval.records.store import Records
from alignment_eval.selection.profile import Profile, pair_hash, text_hash
from alignment_eval.selection.search import LEVELS, Candidate, Selection, SelectionOptions, select, select_by_agreement
from alignment_eval.signature import Value, signature

_EPILOG = """\
Example, after make demo (a real choice is made on one gold set and used on another):
  align-eval select out/demo/forced --dev-gold data/demo/demo.talp --gold-base 1 --output out/profile.json --overwrite
  align-eval extract out/demo/forced --profile out/profile.json
"""
_SHOWN = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``select``."""
    parser.epilog = _EPILOG
    parser.add_argument("records", metavar="RECORDS", help="records directory of a run (--norm-records)")
    group = parser.add_argument_group("what to choose by (one of the two)")
    by = group.add_mutually_exclusive_group(required=True)
    by.add_argument(
        "--dev-gold",
        dest="gold",
        metavar="FILE",
        help="gold alignments of these sentences, which no figure is to be reported on: lowest AER",
    )
    by.add_argument(
        "--reverse",
        metavar="RECORDS",
        help="records of a target-source model on the same pairs: most agreement of the two directions' links",
    )
    add_gold_reading(group)
    add_text_arguments(parser)
    group = parser.add_argument_group("what to choose from")
    add_configuration_arguments(group)
    add_final_punctuation_argument(group)
    group.add_argument("--levels", nargs="+", choices=LEVELS, default=LEVELS, help="default: heads and whole layers")
    group.add_argument(
        "--combine",
        nargs="+",
        choices=COMBINATIONS,
        default=COMBINATIONS,
        help="how a set of maps may be combined (default: all; with --dev-gold)",
    )
    group.add_argument(
        "--mix-settings", action="store_true", help="a set may hold maps of AWO and of AWI (with --dev-gold)"
    )
    group.add_argument(
        "--max-heads", type=int, default=8, metavar="N", help="maps in a set at most (default: 8; with --dev-gold)"
    )
    group = parser.add_argument_group("output")
    group.add_argument("-o", "--output", metavar="FILE", help="profile, for align-eval extract --profile")
    group.add_argument("--overwrite", action="store_true", help="replace FILE")


def run(args: argparse.Namespace) -> None:
    """Print the ranking and the choice; write the profile."""
    check_free(args.output, args.overwrite)
    check_standard_input([args.gold, args.source, args.target])
    records = forced_records(args.records)
    configurations = configurations_of(args, records)
    if args.mix_settings:  # the settings of all maps are tried in each
        configurations = [option for option in configurations if option.setting == configurations[0].setting]
    options = SelectionOptions(
        configurations,
        tuple(dict.fromkeys(args.levels)),
        tuple(dict.fromkeys(args.combine)),
        args.max_heads,
        args.mix_settings,
    )
    sentences = list(records.best())
    selection, chosen_on = (_by_agreement if args.gold is None else _by_gold)(args, records, sentences, options)
    fields: dict[str, Value] = {
        "records": records.info.signature_hash,
        **chosen_on,
        **configuration_fields(configurations),
        "levels": ",".join(options.levels),
        **({"mix_settings": True} if options.mix_settings else {}),
    }
    usable = [words_of(sentence) for sentence in sentences if sentence.ok]
    profile = Profile(
        model=str(records.info.signature.get("model")),
        alone=AlignmentMethod(selection.choice.extraction),
        streamed=AlignmentMethod(selection.choice.extraction),
        both=_both(selection.choice),
        reverse_model=None if args.reverse is None else str(Records(args.reverse).info.signature.get("model")),
        chosen_by="agreement" if args.gold is None else "gold",
        figure=selection.choice.figure,
        pairs=records.info.size,
        text=text_hash(enumerate(usable)),
        gold=None if args.gold is None else str(chosen_on["dev_gold"]),
        sentences=() if args.gold is None else tuple(sorted(map(pair_hash, usable))),
        signature=signature(**fields),
    )
    if args.output is not None:
        write_lines(args.output, [profile.to_json()])
    print(report(selection, profile))
    print(profile.signature, file=sys.stderr)


def _both(choice: Candidate) -> AlignmentMethod | None:
    """The method for both directions, if maps of both were chosen."""
    if choice.reverse_heads is None:
        return None
    reverse = choice.extraction.with_maps(parse_maps(choice.reverse_heads))
    join = "average" if rule_of(choice.extraction.rule).units == "words" else "mutual"
    return AlignmentMethod(choice.extraction, reverse, BidirectionalOptions(join=join))


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


def _by_gold(
    args: argparse.Namespace, records: Records, sentences: Sequence[SentenceMaps], options: SelectionOptions
) -> tuple[Selection, dict[str, Value]]:
    gold, texts = gold_and_texts(args, records)
    selection = select(sentences, gold.links.to_sentences(), options, texts)
    warn_skipped(selection.skipped, records.info.size, "each counts as an empty hypothesis")
    combinations = ",".join(options.combinations)
    floor: dict[str, Value] = {"floor": FLOOR} if "product" in options.combinations else {}
    fields = {**reading_fields("dev_gold", gold), "combine": combinations, **floor, "max_heads": options.max_maps}
    return selection, fields


def _by_agreement(
    args: argparse.Namespace, records: Records, sentences: Sequence[SentenceMaps], options: SelectionOptions
) -> tuple[Selection, dict[str, Value]]:
    if texts_of(args) is not None:
        raise UsageError("--source and --target beside --reverse: they check a gold; expected --dev-gold, or neither")
    reverse = open_reverse(args.reverse, records)
    check_forced(reverse)
    selection = select_by_agreement(sentences, reverse.best(), options)
    warn_skipped(selection.skipped, records.info.size, "in one direction at least; they are left out")
    return selection, {"reverse": reverse.info.signature_hash}


def report(selection: Selection, profile: Profile) -> str:
    """The ranking and the choice for a reader, figures in %."""
    by_gold = profile.chosen_by == "gold"
    figure = "AER" if by_gold else "Dice"
    shown = selection.ranking[:_SHOWN]
    what = "single maps of the lowest AER" if by_gold else "pairs of maps that agree most"
    lines = [f"The {len(shown)} {what} on these {profile.pairs} sentences", *_table(shown, figure), ""]
    if len(selection.steps) > 1:
        lines += ["From the best map of the choice's configuration to the choice", *_table(selection.steps, figure), ""]
    choice = selection.choice
    chosen = choice.extraction
    maps = f"heads {chosen.map_names}" + (f" ({chosen.combine})" if len(chosen.maps) > 1 else "")
    if choice.reverse_heads is not None:
        maps += f", reverse heads {choice.reverse_heads}"
    lines.append(
        f"Choice: {chosen.kind}, {maps}, {chosen.setting}, {chosen.rule}, null {chosen.null}: {figure} "
        f"{100 * choice.figure:.2f} %, the best of {selection.candidates} candidates"
    )
    if by_gold:
        lines.append("That AER is an optimistic figure: report one on other sentences.")
    return "\n".join(lines)


def _table(candidates: Iterable[Candidate], figure: str) -> list[str]:
    rows = [(f"{figure} %", "kind", "heads", "combine", "setting", "rule", "null")]
    for candidate in candidates:
        option = candidate.extraction
        maps = option.map_names + ("" if candidate.reverse_heads is None else f" / {candidate.reverse_heads}")
        combine = option.combine if len(option.maps) > 1 else "-"
        rows.append(
            (f"{100 * candidate.figure:.2f}", option.kind, maps, combine, option.setting, option.rule, str(option.null))
        )
    widths = [max(map(len, column)) for column in zip(*rows)]
    # figures to the right, names to the left
    return [
        "  ".join([row[0].rjust(widths[0]), *(cell.ljust(width) for cell, width in zip(row[1:], widths[1:]))]).rstrip()
        for row in rows
    ]
