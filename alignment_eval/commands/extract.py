"""``align-eval extract``: word alignments in Pharaoh format from recorded maps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from alignment_eval.arguments.maps import (
    MAX_NORM,
    add_lexicon_argument,
    add_line_arguments,
    add_map_arguments,
    check_lexicon_passes,
    given_map_options,
    line_style,
    reverse_options,
    stated_options,
)
from alignment_eval.arguments.records import open_reverse, warn_skipped
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import Words, check_same_text, words_of
from alignment_eval.extraction.corpus import DirectedLinks, align_corpus, read_direction
from alignment_eval.extraction.extract import max_norm_layer
from alignment_eval.extraction.method import JOINS, AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.files import check_new, write_lines
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
from alignment_eval.signature import signature

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
    add_line_arguments(group)
    group.add_argument("--output", default="-", metavar="FILE", help="Pharaoh file (default: -, the standard output)")
    group.add_argument("--overwrite", action="store_true", help="replace FILE")


def run(args: argparse.Namespace) -> None:
    """Write one line a sentence in corpus order; the signature goes to stderr."""
    check_usage(args)
    check_new(args.output, args.overwrite)
    style = line_style(args)
    choice = None if args.choice is None else read_choice(args.choice)
    method = method_of(args, choice)
    records = Records(args.records)
    if args.layer == MAX_NORM:
        method = method_of(args, choice, max_norm_layer(records.best(), method.forward.setting))
    reverse = None if args.reverse is None else open_reverse(args.reverse, records)
    if choice is not None:
        check_chosen_maps(choice, args, method, records, reverse)

    words: dict[int, tuple[Words, Words | None]] = {}
    pairs = directed_pairs(records, reverse, method, args.level)
    if choice is not None or reverse is not None:
        pairs = with_words(pairs, words)
    lines, skipped = {}, {}
    for pair in align_corpus(pairs, method):
        lines[pair.id] = style.line(pair.links)
        if pair.links is None:
            skipped[pair.id] = pair.status
    check_same_text((forward, back) for forward, back in words.values() if back is not None)
    write_lines(args.output, (lines[id_] for id_ in range(records.info.size)))

    warn_skipped(skipped, records.info.size, "their lines are blank")
    if not records.info.forced:
        warn_on_stderr(
            f"{records.directory} holds maps of the model's own translations: these links are of their words, "
            f"and cannot be scored against gold of the references (record with --score-reference for that)"
        )
    if choice is not None:
        for warning in choice_warnings(choice, args.choice, records, {id_: mine for id_, (mine, _) in words.items()}):
            warn_on_stderr(warning)
    print(
        signature(
            records=records.info.signature_hash,
            **({} if reverse is None else {"reverse": reverse.info.signature_hash}),
            **method.fields(),
            **({"layer_by": MAX_NORM} if args.layer == MAX_NORM else {}),
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


def method_of(args: argparse.Namespace, choice: Choice | None, max_norm: int = 0) -> AlignmentMethod:
    """The way to links that the options name; ``max_norm`` is the layer of ``--layer max-norm``.

    Raises:
        UsageError: the options do not go together.
    """
    forward = stated_options(args, max_norm) if choice is None else choice.extraction
    if args.reverse is None:
        return AlignmentMethod(forward, lexicon_passes=args.lexicon or 0)
    reverse = reverse_options(args, forward, choice)
    return AlignmentMethod(forward, reverse, BidirectionalOptions(args.join), args.lexicon or 0)


def check_chosen_maps(
    choice: Choice, args: argparse.Namespace, method: AlignmentMethod, records: Records, reverse: Records | None
) -> None:
    """Check that the records have the maps that were chosen.

    Raises:
        InputError: they have not.
    """
    check_maps(choice, args.choice, method.forward.maps, records.info, args.records)
    if reverse is not None and method.reverse is not None and args.reverse_heads is None:
        check_maps(choice, args.choice, method.reverse.maps, reverse.info, args.reverse)


def directed_pairs(
    records: Records, reverse: Records | None, method: AlignmentMethod, level: str
) -> Iterator[tuple[DirectedLinks, DirectedLinks | None]]:
    """What the maps of one run or of two say of each sentence pair, in the order of the first.

    Raises:
        InputError: see :func:`best_of_each` and :func:`read_direction`; those of the second run name it.
    """
    back: dict[int, DirectedLinks] = {}
    if reverse is not None and method.reverse is not None:
        try:
            back = {s.id: read_direction(s, method.reverse) for s in best_of_each(reverse, method.reverse, level)}
        except InputError as error:
            raise InputError(f"{reverse.directory}: {error}") from error
    for sentence in best_of_each(records, method.forward, level):
        yield read_direction(sentence, method.forward), back.get(sentence.id)


def with_words(
    pairs: Iterable[tuple[DirectedLinks, DirectedLinks | None]], words: dict[int, tuple[Words, Words | None]]
) -> Iterator[tuple[DirectedLinks, DirectedLinks | None]]:
    """The same pairs; the words of those that can be aligned are put into ``words`` as they pass."""
    for forward, reverse in pairs:
        if forward.links is not None and (reverse is None or reverse.links is not None):
            other = None if reverse is None else words_of(reverse.sentence)
            words[forward.sentence.id] = words_of(forward.sentence), other
        yield forward, reverse


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
