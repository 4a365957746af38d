"""``align-eval plot``: a picture of the maps of one sentence, with gold and predicted links."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from alignment_eval.errors import InputError, UsageError, say
from alignment_eval.extraction.method import NO_MAPS, ExtractionOptions, MapName, MapNames
from alignment_eval.extraction.rules import RULE_NAMES
from alignment_eval.figures.names import kind_name, layer_label, place_name, rule_name, visible
from alignment_eval.figures.page import draw
from alignment_eval.figures.sentence import Panel, Picture, panel_of, sides_of
from alignment_eval.figures.style import ENDINGS, figure_ending, save_figure
from alignment_eval.files import check_new
from alignment_eval.links.read import AlignmentFile, ReadOptions, read_hypothesis
from alignment_eval.maps.sentence import KINDS, SentenceMaps
from alignment_eval.maps.words import LEVELS, SETTINGS
from alignment_eval.options.alignments import add_base, add_gold_reading, check_standard_input, gold_of, reading_fields
from alignment_eval.options.common import add_list, add_output
from alignment_eval.options.figures import add_figure_options, figure_options
from alignment_eval.options.records import add_records, check_forced, gold_of_records
from alignment_eval.records.store import Records
from alignment_eval.scoring.gold_corpus import check_links
from alignment_eval.signature import signature

if TYPE_CHECKING:
    from alignment_eval.links.sets import GoldSentence, Links

_EPILOG = """\
Examples, after make demo:
  align-eval plot out/demo/forced --sentence 0 --heads 1 --kinds attn_w,attn_n --setting awo \\
      --gold data/demo/demo.talp --gold-base 1 -o out/demo/sentence-0.png
  align-eval plot out/demo/forced --sentence 0 -o out/demo/grid-0.pdf

Exit status: 0 success, 1 bad data, 2 bad usage.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``plot``."""
    parser.epilog = _EPILOG
    add_records(parser)
    parser.add_argument("--sentence", required=True, type=int, metavar="ID", help="sentence, from 0 (line ID + 1)")
    group = parser.add_argument_group("maps")
    add_list(
        group,
        "--kinds",
        f"drawn side by side: {', '.join(KINDS)} (default: attn_n)",
        metavar="KIND",
        default=("attn_n",),
    )
    add_list(
        group,
        "--heads",
        "LAYER.HEAD, or LAYER for a whole layer, counted from 0, such as 1.2,1; several stand one below the other "
        "(default: all, one row a layer)",
        metavar="MAP",
        type=str,
    )
    group.add_argument(
        "--setting",
        default="awo",
        metavar="SETTING",
        help=f"{', '.join(SETTINGS)}: the row that predicts a target word, or whose input it is (default: awo)",
    )
    group.add_argument("--level", default="word", metavar="LEVEL", help=f"{', '.join(LEVELS)} (default: word)")
    group = parser.add_argument_group("predicted links", "of each map by a rule, or from a file")
    group.add_argument(
        "--rule", metavar="RULE", help=f"extraction rule: {', '.join(RULE_NAMES)} (default: kobayashi2020)"
    )
    group.add_argument("--hyp", metavar="FILE", help="word alignments (-: standard input)")
    add_base(group, "hyp", "0")
    group = parser.add_argument_group("gold")
    group.add_argument("--gold", metavar="FILE", help="gold alignments (-: standard input)")
    add_gold_reading(group)
    group = parser.add_argument_group("output")
    add_output(group, f"picture: .{', .'.join(ENDINGS)}", required=True)
    add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    """Draw the picture; the signature goes to stderr and into the file's metadata."""
    figure_ending(args.output)
    kinds = list(args.kinds)
    maps, first = check_usage(args, kinds)
    check_new(args.output, args.overwrite)
    records = Records(args.records)
    gold = hypothesis = None
    if args.gold is not None:
        check_forced(records)
        gold = gold_of_records(gold_of(args, None), records)
    if args.hyp is not None:
        hypothesis = gold_of_records(read_hypothesis(args.hyp, ReadOptions(base=args.hyp_base)), records)
    sentence = find(records, args.sentence)
    predicted = None if hypothesis is None else links_in(hypothesis, sentence).possible
    look = figure_options(args)
    picture = Picture(
        look.heading_of(heading_of(args, maps, first, hypothesis)),
        *sides_of(sentence, args.level),
        panels_of(args, kinds, maps, sentence, predicted),
        None if gold is None else links_in(gold, sentence),
    )
    signed = signature(
        records=records.info.signature_hash,
        sentence=args.sentence,
        kinds=",".join(kinds),
        heads=str(maps) or "all",
        setting=args.setting,
        level=args.level,
        **({"rule": first.rule, "null": first.null} if hypothesis is None else reading_fields("hyp", hypothesis)),
        **({} if gold is None else reading_fields("gold", gold)),
    )
    save_figure(draw(picture, look), args.output, signed, look.dpi)
    say(signed)


def check_usage(args: argparse.Namespace, kinds: list[str]) -> tuple[MapNames, ExtractionOptions]:
    """Check the options; give the maps that are named, none for all, and the extraction of the first kind.

    Raises:
        UsageError: one is too many, or names nothing known.
    """
    maps = NO_MAPS if args.heads is None else MapNames(args.heads)
    if any(name.setting for name in maps):
        raise UsageError(f"--heads {maps}: all maps of a picture have one setting: expected it by --setting")
    if args.hyp is not None and args.rule is not None:
        raise UsageError("--rule together with --hyp, which brings the links: leave one of the two out")
    check_standard_input([args.gold, args.hyp])
    options = [_options(args, kind, MapName(0)) for kind in kinds]
    return maps, options[0]


def _options(args: argparse.Namespace, kind: str, name: MapName) -> ExtractionOptions:
    return ExtractionOptions(kind, name.layer, name.head, args.setting, args.rule or "kobayashi2020")


def find(records: Records, id_: int) -> SentenceMaps:
    """The best hypothesis of sentence ``id_``.

    Raises:
        InputError: there is no such sentence, or it has no maps or no certain words.
    """
    if 0 <= id_ < records.info.size:
        for sentence in records.best():
            if sentence.id == id_ and not sentence.ok:
                raise InputError(
                    f"{records.directory}: sentence {id_} cannot be drawn ({sentence.status}): expected one with "
                    f"maps and certain words; name another"
                )
            if sentence.id == id_:
                return sentence
    raise InputError(
        f"{records.directory}: no sentence {id_}: expected one of 0 to {records.info.size - 1}, counted from 0"
    )


def links_in(alignments: AlignmentFile, sentence: SentenceMaps) -> GoldSentence:
    """The links of ``sentence``.

    Raises:
        InputError: one is outside the sentence.
    """
    found = list(alignments)[sentence.id]
    check_links(found.possible, sentence, alignments.file.where(sentence.id))
    return found


def panels_of(
    args: argparse.Namespace, kinds: list[str], maps: MapNames, sentence: SentenceMaps, predicted: Links | None
) -> tuple[tuple[Panel, ...], ...]:
    """The panels: a row for each of ``maps``, a column for each kind; of all maps a row for each kind and layer."""
    rows = []
    if maps:
        for name in maps:
            place = f"{place_name(name.layer, name.head)}, " if len(maps) > 1 else ""
            rows.append([(_options(args, kind, name), f"{place}{kind_name(kind)}") for kind in kinds])
    else:
        for kind in kinds:
            of_kind = f", {kind_name(kind)}" if len(kinds) > 1 else ""
            heads = [*range(sentence.head_maps(kind).shape[1]), None]
            for layer in sentence.layers:
                row = [(_options(args, kind, MapName(layer, head)), place_name(layer, head)) for head in heads]
                rows.append([(option, f"{place}{of_kind}") for option, place in row])
    return tuple(tuple(panel_of(sentence, option, args.level, name, predicted) for option, name in row) for row in rows)


def heading_of(
    args: argparse.Namespace, maps: MapNames, first: ExtractionOptions, hypothesis: AlignmentFile | None
) -> str:
    """Which maps are drawn, and where the predicted links come from."""
    names = [f"Sentence {args.sentence}"]
    names += [kind_name(kind) for kind in args.kinds if not maps and len(args.kinds) == 1]
    if len(maps) == 1:
        (name,) = maps
        names += [layer_label(name.layer), *([] if name.head is None else [f"head {name.head}"])]
    links = rule_name(first.rule, str(first.null)) if hypothesis is None else visible(hypothesis.file.name)
    return f"{', '.join([*names, args.setting.upper()])}; predicted: {links}"
