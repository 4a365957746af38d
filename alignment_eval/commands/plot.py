"""``align-eval plot``: a picture of the maps of one sentence, with gold and predicted links."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from alignment_eval.arguments.alignments import (
    add_gold_reading,
    add_hypothesis_reading,
    check_standard_input,
    gold_of,
    hypothesis_options,
    reading_fields,
)
from alignment_eval.arguments.figures import add_figure_options, figure_options, warn_of_width
from alignment_eval.arguments.lists import add_list
from alignment_eval.arguments.maps import add_final_punctuation_argument
from alignment_eval.arguments.output import add_output
from alignment_eval.arguments.records import add_records, check_forced, gold_of_records
from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import NULLS, RULE_NAMES
from alignment_eval.figures.fonts import font_families, set_in_disorder, visible
from alignment_eval.figures.names import kind_name, layer_label, place_name, rule_name
from alignment_eval.figures.page import draw, layout
from alignment_eval.figures.saving import ENDINGS, figure_ending, save_figure
from alignment_eval.figures.sentence import NULL_LABEL, Panel, Picture, panel_of, sides_of
from alignment_eval.files import check_new, write_lines
from alignment_eval.formats.reading import Alignments, read_hypothesis
from alignment_eval.maps.sentence import KINDS, SentenceMaps
from alignment_eval.maps.words import LEVELS, SETTINGS
from alignment_eval.records.store import Records
from alignment_eval.scoring.gold_corpus import check_links
from alignment_eval.signature import Value, signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from alignment_eval.links.table import GoldSentence, Links

_EPILOG = """\
Examples, after make demo:
  align-eval plot out/demo/forced --sentence 0 --layer 1 --kinds attn_w,attn_n --setting awo \\
      --gold data/demo/demo.talp --gold-base 1 -o out/demo/sentence-0.png
  align-eval plot out/demo/forced --sentence 0 --grid -o out/demo/grid-0.pdf

Exit status: 0 success, 1 bad data, 2 bad usage.
"""
#: What rows and the last column stand for, in a caption.
_NULL = f"{NULL_LABEL} stands for </s> and other special source tokens together."
_ROWS = {
    "awo": "AWO: the row of a target word is the step that outputs it.",
    "awi": "AWI: the row of a target word is the step that has it as input.",
}
_SCALE = "Each map has its own scale, from 0 to its largest value."
#: How many characters without a glyph are named.
_NAMED = 10


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
    group.add_argument("--layer", type=int, metavar="N", help="decoder layer, from 0; required without --grid")
    group.add_argument("--head", type=int, metavar="N", help="head, from 0 (default: the map of the whole layer)")
    group.add_argument(
        "--grid", action="store_true", help="all heads and the whole of each layer (or of --layer, or --head alone)"
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
    group.add_argument("--null", metavar="NULL", help=f"{', '.join(NULLS)} (default: the rule's own)")
    add_final_punctuation_argument(group)
    group.add_argument("--hyp", metavar="FILE", help="word alignments (-: standard input)")
    add_hypothesis_reading(group)
    group = parser.add_argument_group("gold")
    group.add_argument("--gold", metavar="FILE", help="gold alignments (-: standard input)")
    add_gold_reading(group)
    group = parser.add_argument_group("output")
    add_output(group, f"picture: .{', .'.join(ENDINGS)}", required=True)
    group.add_argument("--caption", metavar="FILE", help="write what the picture shows in words (-: standard output)")
    group = add_figure_options(parser)
    group.add_argument("--font", metavar="FILE", help="TrueType or OpenType font to try first")


def run(args: argparse.Namespace) -> None:
    """Draw the picture; the signature goes to stderr and into the file's metadata."""
    ending = figure_ending(args.output)
    kinds = list(args.kinds)
    first = check_usage(args, kinds)
    for path in (args.output, args.caption):
        if path is not None:
            check_new(path, args.overwrite)
    records = Records(args.records)
    gold, hypothesis = read_alignments(args, records)
    sentence = find(records, args.sentence)
    predicted = None if hypothesis is None else links_in(hypothesis, sentence).possible
    look = figure_options(args)
    links = links_named(args, first, hypothesis)
    picture = Picture(
        look.heading_of(f"{maps_named(args, sentence)}; predicted: {links}"),
        *sides_of(sentence, args.level),
        panels_of(args, kinds, sentence, predicted),
        None if gold is None else links_in(gold, sentence),
        rows_of(args, kinds, sentence),
    )
    families = font_families(picture.texts, args.font)
    signed = signature(
        records=records.info.signature_hash,
        sentence=args.sentence,
        kinds=",".join(kinds),
        layer="all" if args.layer is None else args.layer,
        head="all" if args.grid and args.head is None else args.head,
        setting=args.setting,
        level=args.level,
        **_link_fields(first, hypothesis),
        **({} if gold is None else reading_fields("gold", gold)),
    )
    missing = save_figure(draw(picture, families, look), args.output, signed, look.dpi)
    warn_of_width(layout(picture, families, look), args.output, look)
    if ending != "svg":  # its text is drawn by the viewer and with the viewer's fonts
        warn_of_text(picture.texts, missing)
    if args.caption is not None:
        write_lines(args.caption, [caption_of(args, maps_named(args, sentence), links, gold is not None)])
    print(signed, file=sys.stderr)


def check_usage(args: argparse.Namespace, kinds: list[str]) -> ExtractionOptions:
    """Check the options, and give the extraction of the first kind.

    Raises:
        UsageError: one is missing, one too many, or names nothing known.
    """
    if args.layer is None and not args.grid:
        raise UsageError("no --layer: expected the number of a layer, from 0, or --grid for all")
    ruled = [name for name in ("rule", "null", "final_punctuation") if getattr(args, name)]
    if args.hyp is not None and ruled:
        raise UsageError(
            f"--{ruled[0].replace('_', '-')} together with --hyp, which brings the links: leave one of the two out"
        )
    check_standard_input([args.gold, args.hyp])
    options = [_options(args, kind, args.layer or 0, args.head) for kind in kinds]
    return options[0]


def _options(args: argparse.Namespace, kind: str, layer: int, head: int | None) -> ExtractionOptions:
    return ExtractionOptions(
        kind, layer, head, args.setting, args.rule or "kobayashi2020", args.null, args.final_punctuation
    )


def read_alignments(args: argparse.Namespace, records: Records) -> tuple[Alignments | None, Alignments | None]:
    """The gold and the hypothesis, if given.

    Raises:
        InputError: they have another number of sentences than the records, or there is gold but the records hold maps
            of the model's own translations.
    """
    gold = hypothesis = None
    if args.gold is not None:
        check_forced(records)
        gold = gold_of_records(gold_of(args, None), records)
    if args.hyp is not None:
        hypothesis = gold_of_records(read_hypothesis(args.hyp, hypothesis_options(args)), records)
    return gold, hypothesis


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


def links_in(alignments: Alignments, sentence: SentenceMaps) -> GoldSentence:
    """The links of ``sentence``.

    Raises:
        InputError: one is outside the sentence.
    """
    found = alignments.links.to_sentences()[sentence.id]
    check_links(found.possible, sentence, alignments.file.where(sentence.id))
    return found


def panels_of(
    args: argparse.Namespace, kinds: list[str], sentence: SentenceMaps, predicted: Links | None
) -> tuple[tuple[Panel, ...], ...]:
    """The panels: kinds side by side, or with ``--grid`` one row a kind and layer, one column a head."""
    if not args.grid:
        options = [_options(args, kind, args.layer, args.head) for kind in kinds]
        names = [kind_name(kind) for kind in kinds]
        return (tuple(panel_of(sentence, o, args.level, name, predicted) for o, name in zip(options, names)),)
    lines = []
    for kind in kinds:
        for layer in _layers(args, sentence):
            line = []
            for head in _heads(args, kind, sentence):
                name = "whole layer" if head is None else f"head {head}"
                line.append(panel_of(sentence, _options(args, kind, layer, head), args.level, name, predicted))
            lines.append(tuple(line))
    return tuple(lines)


def rows_of(args: argparse.Namespace, kinds: list[str], sentence: SentenceMaps) -> tuple[str, ...]:
    """The names of the rows of :func:`panels_of`; empty without ``--grid``."""
    if not args.grid:
        return ()
    named = [f", {kind_name(kind)}" if len(kinds) > 1 else "" for kind in kinds]
    return tuple(f"{place_name(layer)}{name}" for name in named for layer in _layers(args, sentence))


def _layers(args: argparse.Namespace, sentence: SentenceMaps) -> Sequence[int]:
    return sentence.layers if args.layer is None else [args.layer]


def _heads(args: argparse.Namespace, kind: str, sentence: SentenceMaps) -> Sequence[int | None]:
    return [*range(sentence.head_maps(kind).shape[1]), None] if args.head is None else [args.head]


def maps_named(args: argparse.Namespace, sentence: SentenceMaps) -> str:
    """The heading: which maps are drawn."""
    maps = [] if args.layer is None else [layer_label(args.layer)]
    maps += [] if args.head is None else [f"head {args.head}"]
    kinds = [] if len(args.kinds) > 1 and args.grid else [kind_name(kind) for kind in args.kinds if args.grid]
    return ", ".join([f"Sentence {sentence.id}", *kinds, *maps, args.setting.upper()])


def links_named(args: argparse.Namespace, first: ExtractionOptions, hypothesis: Alignments | None) -> str:
    """Where the predicted links come from."""
    if hypothesis is not None:
        return visible(hypothesis.file.name)
    links = rule_name(first.rule, str(first.null))
    return f"{links}, final punctuation" if first.final_punctuation else links


def caption_of(args: argparse.Namespace, maps: str, links: str, gold: bool) -> str:
    """What the picture shows, in sentences."""
    kinds = "; ".join(f"{kind_name(kind)} ({kind})" for kind in args.kinds)
    marks = "Squares: sure gold links; diamonds: possible gold links; dots" if gold else "Dots"
    sentences = [f"{maps}: {kinds}.", "Rows are target words, columns source words.", _ROWS[args.setting]]
    sentences += [f"{marks}: predicted links ({links}).", *([_NULL] if args.level == "word" else []), _SCALE]
    return " ".join(sentences)


def _link_fields(first: ExtractionOptions, hypothesis: Alignments | None) -> dict[str, Value]:
    if hypothesis is not None:
        return reading_fields("hyp", hypothesis)
    return {"rule": first.rule, "null": first.null, "final_punctuation": first.final_punctuation}


def warn_of_text(texts: Iterable[str], missing: str) -> None:
    """Say which characters will be boxes, and whether labels will be in disorder."""
    if missing:
        named = ", ".join(f"{character} (U+{ord(character):04X})" for character in missing[:_NAMED])
        more = "" if len(missing) <= _NAMED else f", … ({len(missing)} in all)"
        warn_on_stderr(
            f"no installed font has {named}{more}: drawn as boxes; name a font with --font FILE, or write .svg"
        )
    if set_in_disorder(texts):
        warn_on_stderr(
            "this Matplotlib draws right-to-left and Indic letters one by one from left to right, so that such labels "
            "are wrong: expected 3.11 or later (it needs Python 3.11); install that, or write .svg"
        )
