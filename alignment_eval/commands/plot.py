"""``align-eval plot``: a picture of one sentence: its maps or the links of aligners, with gold."""

from __future__ import annotations

import argparse
from dataclasses import replace

import numpy as np

from alignment_eval import options
from alignment_eval.command_line import add_list, add_output
from alignment_eval.errors import InputError, UsageError, say
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName, MapNames
from alignment_eval.figures import style
from alignment_eval.figures.maps import Panel, Picture, draw, panel_of, sides_of
from alignment_eval.files import Value, check_new, signature
from alignment_eval.links.formats import GoldSentence, Links
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide, kinds_help
from alignment_eval.maps.words import LEVELS
from alignment_eval.profiles.chosen import add_options
from alignment_eval.records import Records
from alignment_eval.scoring.gold_corpus import check_links

EPILOG = """\
Examples, the last two after make demo:
  align-eval plot --sentence 0 --hyp data/demo/hyp.pharaoh data/demo/both.pharaoh \\
      --gold data/demo/demo.talp --gold-base 1 --source data/demo/demo.de --target data/demo/demo.en \\
      -o out/aligners-0.png
  align-eval plot out/demo/forced --sentence 0 --heads 1 --kinds attn_w,attn_n --setting awo \\
      --gold data/demo/demo.talp --gold-base 1 -o out/demo/sentence-0.png
  align-eval plot out/demo/forced --sentence 0 -o out/demo/layers-0.pdf
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_records(parser, optional=True)
    parser.add_argument("--sentence", required=True, type=int, metavar="ID", help="sentence, from 0 (line ID + 1)")
    add_output(parser, f"picture: .{', .'.join(style.ENDINGS)}", required=True)
    group = parser.add_argument_group("maps of RECORDS")
    help_ = f"kinds, drawn side by side: {kinds_help()} (default: {DEFAULTS.kind})"
    add_list(group, "--kinds", help_, metavar="KIND")
    help_ = "LAYER.HEAD, or LAYER for all its heads, counted from 0, one below the other (default: all whole layers)"
    add_list(group, "--heads", help_, metavar="MAP", type=str)
    add_options(group, "setting")
    group.add_argument("--level", metavar="LEVEL", help=f"{', '.join(LEVELS)} (default: word)")
    group = parser.add_argument_group("links", "of each map by a rule, or from a file; without RECORDS from each file")
    options.add_rule(group)
    options.add_hypothesis_arguments(group, "--hyp", "; one with RECORDS")
    options.add_gold_arguments(parser, required=False)
    options.add_text_arguments(parser)
    style.add_figure_options(parser)


def run(args: argparse.Namespace) -> None:
    style.figure_ending(args.output)
    options.refuse_without_records(args, ("kinds", "heads", "setting", "level", "rule"))
    if args.records is None and not (args.hyp and args.source and args.target):
        raise UsageError("without RECORDS: expected alignments (--hyp) and their texts (--source and --target)")
    if args.records is not None and len(args.hyp or []) > 1:
        raise UsageError(f"{len(args.hyp)} files of --hyp with RECORDS: expected one, whose links all maps show")
    if args.records is not None and not args.source is args.target is None:
        raise UsageError("texts with RECORDS: leave --source and --target out; records have the words")
    if args.hyp is not None and args.rule is not None:
        raise UsageError("--rule together with --hyp, which brings the links: leave one of the two out")
    check_new(args.output, args.overwrite)
    records = options.read_records(args)
    texts, systems = options.texts_of(args), args.hyp or []
    gold = [] if args.gold is None else [options.gold_of(args, texts)]
    files = [*gold, *options.read_hypotheses(args, [system.path for system in systems], texts)]
    if records is not None:
        for file in files:
            file.fit(records.size)
    sentence = _of_texts(args) if records is None else _of_records(records, args.sentence)
    found = [list(file)[sentence.id] for file in files]
    for file, read in zip(files, found):
        check_links(read.possible, sentence, file.where(sentence.id))
    truth, links = found[0] if gold else None, [alignment.possible for alignment in found[len(gold) :]]
    if records is None:
        fields: dict[str, Value] = {"sentence": args.sentence}
        empty = np.zeros((sentence.target.word_count, sentence.source.word_count))
        panels = [Panel(name, empty, drawn) for name, drawn in zip(options.distinct_names(systems), links)]
        picture = Picture(f"Sentence {args.sentence}", sentence.source, sentence.target, [panels], truth)
    else:
        picture, fields = _maps(args, sentence, truth, *links)
        fields = {"records": records.info.signature_hash, **fields}
    for number, file in enumerate(files[len(gold) :], 1):
        of_number = f"_{number}" if records is None else ""
        fields |= {f"{name}{of_number}": value for name, value in options.reading_fields("hyp", file).items()}
    signed = signature(**fields, **(options.reading_fields("gold", files[0]) if gold else {}))
    look = style.figure_options(args)
    style.save_figure(draw(replace(picture, title=look.heading_of(picture.title)), look), args.output, signed)
    say(signed)


def _maps(
    args: argparse.Namespace, sentence: SentenceMaps, truth: GoldSentence | None, predicted: Links | None = None
) -> tuple[Picture, dict[str, Value]]:
    """The picture of the maps of a sentence, with links of a rule or those ``predicted``; fields of its signature."""
    kinds, setting, level = args.kinds or (DEFAULTS.kind,), args.setting or DEFAULTS.setting, args.level or "word"
    maps, rule = MapNames(args.heads or ()), args.rule or DEFAULTS.map_rule
    if any(name.setting for name in maps):
        raise UsageError(f"--heads {maps}: a picture has one setting for all maps; name it by --setting only")
    maps = maps or MapNames(map(MapName, sentence.layers))
    methods = [ExtractionOptions(kind, MapNames("0"), setting=setting, rule=rule) for kind in kinds]

    def panel(option: ExtractionOptions, name: MapName) -> Panel:
        title = f"{style.place_name(name.layer, name.head)}, {style.kind_name(option.kind)}"
        return panel_of(sentence, replace(option, heads=MapNames([name])), level, title, predicted)

    fields: dict[str, Value] = {"sentence": args.sentence, "kinds": ",".join(kinds), "heads": str(maps)}
    fields |= {"setting": setting, "level": level}
    null = str(methods[0].null)
    if predicted is None:
        shown = style.rule_name(rule, null)
        fields |= {"rule": methods[0].rule, "null": null}
    else:
        shown = style.visible(options.system_name(args.hyp[0]))
    panels = [[panel(option, name) for option in methods] for name in maps]  # a column for each kind
    heading = f"Sentence {args.sentence}, {setting.upper()}; predicted: {shown}"
    return Picture(heading, *sides_of(sentence, level), panels, truth, style.kind_name(kinds[0])), fields


def _of_texts(args: argparse.Namespace) -> SentenceMaps:
    """The sentence of the texts, without maps."""
    words = options.words_of_texts(args) or []
    if not 0 <= args.sentence < len(words):
        raise InputError(f"no sentence {args.sentence}: expected one of 0 to {len(words) - 1}, counted from 0")
    source, target = map(SentenceSide.of_words, words[args.sentence])
    return SentenceMaps(args.sentence, source, target, layers=())


def _of_records(records: Records, id_: int) -> SentenceMaps:
    """The best hypothesis of sentence ``id_``."""
    found = next((sentence for sentence in records.best() if sentence.id == id_), None)
    if found is None:
        last = records.info.size - 1
        raise InputError(f"{records.directory}: no sentence {id_}: expected one of 0 to {last}, counted from 0")
    if not found.ok:
        raise InputError(f"{records.directory}: sentence {id_} cannot be drawn ({found.status}): name another")
    return found
