"""``align-eval extract``: word alignments in Pharaoh format from recorded maps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from alignment_eval.arguments.maps import (
    MAX_NORM,
    add_lexicon_argument,
    add_map_arguments,
    check_lexicon_passes,
    given_map_options,
    stated_options,
)
from alignment_eval.arguments.numbers import finite_number
from alignment_eval.commands._record_args import open_reverse, warn_skipped
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import JOINS, Words, check_join, check_same_text, join, words_of
from alignment_eval.extraction.extract import ExtractionOptions, WordLinks, max_norm_layer, parse_maps, word_links
from alignment_eval.extraction.lexicon import check_lexicon, with_lexicon, without_maps
from alignment_eval.files import check_new, write_lines
from alignment_eval.formats.line_style import LineStyle
from alignment_eval.formats.reading import warn_on_stderr
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import LEVELS
from alignment_eval.records.store import Records
from alignment_eval.selection.choice_file import (
    Choice,
    check_maps,
    model_warning,
    read_choice,
    same_sentences,
    text_hash,
)
from alignment_eval.signature import Value, signature

_EPILOG = """\
Examples, after make demo:
  align-eval extract out/demo/forced --kind attn_n --layer 1 --setting awo --rule kobayashi2020
  align-eval extract out/demo/forced --kind attn_n --heads 1.0,1.2,2 --combine product --setting awo \\
      --rule threshold=0.2 --confidences
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``extract``."""
    parser.epilog = _EPILOG
    parser.add_argument("records", metavar="RECORDS", help="records directory of a run (--norm-records)")
    group = add_map_arguments(parser, "kind, setting, rule and one of --layer and --heads are required")
    group.add_argument(
        "--level",
        choices=LEVELS,
        default="word",
        help="word: link words (default); token: link subword tokens, as fairseq-preprocess --align-suffix reads them",
    )
    group = parser.add_argument_group("both directions")
    group.add_argument("--reverse", metavar="RECORDS", help="records of a target-source model on the same pairs")
    group.add_argument(
        "--join",
        choices=JOINS,
        help="mutual: the links that both directions have; average, product: the rule on the mean or the product of "
        "their word maps",
    )
    group.add_argument("--reverse-heads", metavar="MAPS", help="the maps of the other model (default: the same)")
    group = parser.add_argument_group("the text as a whole")
    add_lexicon_argument(group, "0")
    group = parser.add_argument_group("output")
    group.add_argument("--confidences", action="store_true", help="write i-j:p, p the share of the link in its row")
    group.add_argument(
        "--min-confidence", type=finite_number, metavar="P", help="leave out links of a smaller share (0 to 1)"
    )
    group.add_argument("--output", default="-", metavar="FILE", help="Pharaoh file (default: -, the standard output)")
    group.add_argument("--overwrite", action="store_true", help="replace FILE")


@dataclass(frozen=True)
class Reverse:
    """The other direction, read: links and words of each sentence that has maps, status of each that has none."""

    records: Records
    options: ExtractionOptions
    join: str
    links: Mapping[int, WordLinks]
    words: Mapping[int, Words]
    skipped: Mapping[int, str]

    def fields(self) -> dict[str, Value]:
        """What a signature says of it."""
        return {
            "join": self.join,
            "reverse": self.records.info.signature_hash,
            "reverse_heads": self.options.map_names,
        }


def run(args: argparse.Namespace) -> None:
    """Write one line a sentence in corpus order; the signature goes to stderr."""
    check_usage(args)
    check_new(args.output, args.overwrite)
    choice = None if args.choice is None else read_choice(args.choice)
    options = stated_options(args) if choice is None else choice.extraction
    if args.reverse is not None:
        check_join(args.join, options)
    if args.lexicon:
        check_lexicon(options, args.join)
    records = Records(args.records)
    if args.layer == MAX_NORM:
        options = replace(options, layer=max_norm_layer(records.best(), options.setting))
    if choice is not None:
        check_maps(choice, args.choice, options.maps, records.info, args.records)
    reverse = None if args.reverse is None else read_reverse(args, records, options, choice)
    keep_words = reverse is not None or choice is not None
    lines, skipped, words = extract_all(
        records,
        options,
        LineStyle(args.confidences, args.min_confidence),
        reverse,
        keep_words,
        args.level,
        args.lexicon or 0,
    )
    write_lines(args.output, (lines.get(id_, "") for id_ in range(records.info.size)))
    warn_skipped(skipped, records.info.size, "their lines are blank")
    if not records.info.forced:
        warn_on_stderr(
            f"{records.directory} holds maps of the model's own translations: these links are of their words, "
            f"and cannot be scored against gold of the references (record with --score-reference for that)"
        )
    if choice is not None:
        for warning in choice_warnings(choice, args.choice, records, words):
            warn_on_stderr(warning)
    print(
        signature(
            records=records.info.signature_hash,
            **options.fields(),
            **({"layer_by": MAX_NORM} if args.layer == MAX_NORM else {}),
            **({} if reverse is None else reverse.fields()),
            **({"lexicon": args.lexicon} if args.lexicon else {}),
            **({} if args.level == "word" else {"level": args.level}),
            **({} if args.min_confidence is None else {"min_confidence": args.min_confidence}),
            **({} if choice is None else choice.fields()),
        ),
        file=sys.stderr,
    )


def check_usage(args: argparse.Namespace) -> None:
    """Check which options stand together.

    Raises:
        UsageError: one is missing, or one too many.
    """
    given = given_map_options(args)
    missing = [f"--{name}" for name in ("kind", "setting", "rule") if f"--{name}" not in given]
    if args.choice is None and missing:
        raise UsageError(f"{', '.join(missing)} missing: expected --kind, --setting and --rule, or --choice")
    if args.choice is None and ("--layer" in given) == ("--heads" in given):
        raise UsageError("maps are named by --layer (and --head) or by --heads: expected one of the two")
    if (args.reverse is None) != (args.join is None):
        raise UsageError("only one of --reverse and --join is given: expected both or neither")
    if args.reverse is None and args.reverse_heads is not None:
        raise UsageError("--reverse-heads without --reverse: expected the records of the other direction too")
    check_lexicon_passes(args)
    if args.min_confidence is not None and not 0 <= args.min_confidence <= 1:
        raise UsageError(f"--min-confidence {args.min_confidence:g}: expected a share of a row, from 0 to 1")


def read_reverse(
    args: argparse.Namespace, records: Records, options: ExtractionOptions, choice: Choice | None
) -> Reverse:
    """Read the records of the other direction of ``records``.

    Raises:
        InputError: an error of the records, of :func:`extraction.extract.extract` or of the choice's maps.
    """
    back = open_reverse(args.reverse, records)
    if args.reverse_heads is not None:
        options = options.with_maps(parse_maps(args.reverse_heads))
    elif choice is not None:
        options = choice.reverse_extraction
        check_maps(choice, args.choice, options.maps, back.info, args.reverse)
    links: dict[int, WordLinks] = {}
    words: dict[int, Words] = {}
    skipped: dict[int, str] = {}
    try:
        for sentence in best_of_each(back, options, args.level):
            if sentence.ok:
                links[sentence.id], words[sentence.id] = word_links(sentence, options), words_of(sentence)
            else:
                skipped[sentence.id] = f"{sentence.status} in the other direction"
    except InputError as error:
        raise InputError(f"{args.reverse}: {error}") from error
    return Reverse(back, options, args.join, links, words, skipped)


def extract_all(
    records: Records,
    options: ExtractionOptions,
    style: LineStyle,
    reverse: Reverse | None,
    keep_words: bool,
    level: str,
    lexicon: int,
) -> tuple[dict[int, str], dict[int, str], dict[int, Words]]:
    """By id: the line of each sentence that has maps, the status of each that has none, and the words of the former.

    Words are gathered only with ``keep_words``; ``lexicon`` is the number of passes over the text's lexicon
    (:mod:`alignment_eval.extraction.lexicon`), 0 for none.

    Raises:
        InputError: a sentence has no best hypothesis, the other direction is of other sentences, or an error of
            :func:`alignment_eval.extraction.extract.extract` or of the records.
    """
    done: dict[int, str] = {}
    words: dict[int, Words] = {}
    skipped: dict[int, str] = {}
    maps: dict[int, tuple[SentenceMaps, Words, NDArray[np.float64]]] = {}
    for sentence in best_of_each(records, options, level):
        status = sentence.status if reverse is None or not sentence.ok else reverse.skipped.get(sentence.id, "ok")
        if status != "ok":
            skipped[sentence.id] = status
            continue
        found = word_links(sentence, options)
        if reverse is not None:
            found = join(reverse.join, sentence, options, found, reverse.links[sentence.id])
        if keep_words:
            words[sentence.id] = words_of(sentence)
        if not lexicon:
            done[sentence.id] = style.line(found)
        else:
            maps[sentence.id] = without_maps(sentence), words_of(sentence), found.shares
    if reverse is not None:
        check_same_text((words[id_], reverse.words[id_]) for id_ in words)
    if lexicon:
        done = {id_: style.line(found) for id_, found in with_lexicon(maps, options, lexicon)}
    return done, skipped, words


def best_of_each(records: Records, options: ExtractionOptions, level: str) -> Iterator[SentenceMaps]:
    """The best hypothesis of every sentence; with level ``token`` its tokens pass for words.

    Raises:
        InputError: a sentence has none, or the records lack a layer that is to be read.
    """
    seen = set()
    for sentence in records.best():
        for name in options.maps:
            sentence.layer_index(name.layer)  # an unknown layer is an error even if all sentences were skipped
        seen.add(sentence.id)
        if level == "token":
            sentence = replace(sentence, source=sentence.source.by_tokens(), target=sentence.target.by_tokens())
        yield sentence
    for id_ in range(records.info.size):
        if id_ not in seen:
            raise InputError(
                f"{records.directory}: sentence {id_} has no hypothesis of rank 0: expected one a sentence; "
                f"run again with --norm-records-overwrite"
            )


def choice_warnings(choice: Choice, name: str, records: Records, words: Mapping[int, Words]) -> Iterator[str]:
    """What a reader of figures of these links must know of the choice."""
    if warning := model_warning(choice, name, records.info, records.directory):
        yield warning
    if choice.gold is not None and same_sentences(choice, records.info, text_hash(words.items())):
        yield (
            f"{name}: THESE ARE THE SENTENCES THE CHOICE WAS MADE ON: an AER of these links is an optimistic figure, "
            f"not a result; report one on other sentences"
        )
