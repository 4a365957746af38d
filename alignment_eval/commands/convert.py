"""``align-eval convert``: an alignment file in another format; every loss is reported."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from alignment_eval.command_line import add_output
from alignment_eval.errors import InputError, UsageError, progress_bar, warn_user
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.files import AlignmentFile, read_hypothesis
from alignment_eval.links.formats import FORMATS, GoldSentence, Link, Links
from alignment_eval.maps.sentence import MARKS, detect_mark, word_indices
from alignment_eval.options import add_links_arguments, add_text_arguments, read_options, texts_of
from alignment_eval.reading import token_lines

EPILOG = """\
Examples, the last after make demo:
  align-eval convert data/demo/demo.talp --from-base 1 --to naacl
  align-eval convert data/demo/demo.talp --from-base 1 --to pharaoh --possible drop -o out/sure.pharaoh
  align-eval convert data/demo/demo.talp --from-base 1 --to talp --source out/demo/text/test.de \\
      --target out/demo/text/test.en --subwords auto

What the new format cannot hold is an error that asks for a decision (--possible) or a warning (confidences).
"""
_WRITTEN = {name: format for name, format in FORMATS.items() if format.write is not None}
#: For each unit of a side as it is read, the units as it is written.
Units = Sequence[Sequence[int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    group.add_argument("--to", required=True, choices=_WRITTEN, metavar="FORMAT", help=", ".join(_WRITTEN))
    add_output(group, "the file in the new format", metavar="OUT", standard=True)
    group.add_argument("--to-base", choices=("0", "1"), help="number of the first word (default: 0, but 1 for naacl)")
    group.add_argument(
        "--possible", choices=("keep", "drop"), help="possible links: keep (as plain ones if OUT has no others) or drop"
    )
    group = parser.add_argument_group("input")
    add_links_arguments(group, "input", "from", metavar="IN")
    help_ = "keep only links with this score or more (default: all links)"
    group.add_argument("--min-confidence", type=float, metavar="P", help=help_)
    add_text_arguments(parser)
    group = parser.add_argument_group(
        "subwords", f"the texts are in subwords; MARK says how they are marked: {', '.join(MARKS)}, or auto"
    )
    either = group.add_mutually_exclusive_group()
    help_ = "the links are between subwords: write links between words"
    either.add_argument("--from-subwords", choices=("auto", *MARKS), metavar="MARK", help=help_)
    help_ = "the links are between words: write links between subwords"
    either.add_argument("--subwords", choices=("auto", *MARKS), metavar="MARK", help=help_)


def run(args: argparse.Namespace) -> None:
    check_new(args.output, args.overwrite)
    bases = FORMATS[args.to].bases or (0, 1)
    base = bases[0] if args.to_base is None else int(args.to_base)
    if base not in bases:
        raise UsageError(f"--to {args.to} with --to-base {base}: expected base {bases[0]}, from which {args.to} counts")
    if args.min_confidence is not None and not math.isfinite(args.min_confidence):
        raise UsageError(f"--min-confidence {args.min_confidence}: expected a finite number")
    texts, mark, to_words = texts_of(args), args.from_subwords or args.subwords, args.subwords is None
    sides: list[tuple[str, str]] = []
    if mark is not None:
        option = "--from-subwords" if to_words else "--subwords"
        if texts is None:
            raise UsageError(f"{option} without --source and --target: expected both texts in subwords")
        sides = [(path, _found(path, option) if mark == "auto" else mark) for path in (args.source, args.target)]
        if mark == "auto" and all(found == "none" for _, found in sides):
            raise InputError(
                f"{args.source}, {args.target}: found no marks of subwords: expected one of {', '.join(MARKS)}"
            )
        if not to_words:
            source, target = (np.fromiter(map(len, _units(*side, to_words)), np.int64) for side in sides)
            texts = replace(texts, source=source, target=target)
    read = read_hypothesis(args.input, read_options(args, "from", allow_possible=True), texts)
    _check_losses(read, args)
    sentences = (_kept(sentence, args.possible == "drop", args.min_confidence) for sentence in read)
    if sides:
        units = (_units(*side, to_words) for side in sides)
        sentences = (mapped_links(*parts) for parts in zip(sentences, *units))
    write = FORMATS[args.to].write
    assert write is not None  # of the choices
    shown = progress_bar(sentences, len(read), "sentences")
    write_lines(args.output, (line for n, sentence in enumerate(shown) for line in write(n, sentence, base)))


def _found(path: str, option: str) -> str:
    """The mark of a text in subwords; none marks words."""
    try:
        return detect_mark({token for line in token_lines(path) for token in line})
    except InputError as error:
        raise InputError(f"{path}: {error}: {option}") from error


def _units(path: str, mark: str, to_words: bool) -> Iterator[list[list[int]]]:
    """For each line of a text in subwords: of each subword its word, or of each word its subwords."""
    for tokens in token_lines(path):
        yield [[word] for word in word_indices(tokens, mark).tolist()] if to_words else word_subwords(tokens, mark)


def word_subwords(tokens: Sequence[str], mark: str) -> list[list[int]]:
    """The positions of the subwords of each word, for a sentence in subwords, none of them special."""
    words: list[list[int]] = []
    for position, word in enumerate(word_indices(tokens, mark).tolist()):
        if word == len(words):
            words.append([])
        words[word].append(position)
    return words


def mapped_links(links: GoldSentence, source: Units, target: Units) -> GoldSentence:
    """The links between other units: each unit that one becomes has all its links, with the largest confidence."""

    def cells(found: Iterable[Link]) -> Links:
        return frozenset(cell for i, j in found for cell in product(source[i], target[j]))

    if links.confidence is None:
        return GoldSentence(cells(links.sure), cells(links.possible))
    confidence: dict[Link, float] = {}
    for link, p in links.confidence.items():
        for cell in cells([link]):
            confidence[cell] = max(p, confidence.get(cell, p))
    return GoldSentence(cells(links.sure), cells(links.possible), confidence)


def _kept(sentence: GoldSentence, only_sure: bool, least: float | None) -> GoldSentence:
    """The links to be written: only sure ones, only those with a confidence of ``least`` or more."""
    sure, possible, confidence = sentence.sure, sentence.sure if only_sure else sentence.possible, sentence.confidence
    if least is not None and confidence is not None:
        sure, possible = (frozenset(link for link in links if confidence[link] >= least) for links in (sure, possible))
    return GoldSentence(sure, possible, confidence and {link: confidence[link] for link in possible})


def _check_losses(read: AlignmentFile, args: argparse.Namespace) -> None:
    """Warn of what is not in the new file; refuse what needs a decision."""
    name, to = read.name, args.to
    more = read.possible - read.sure
    if more and args.possible is None and not FORMATS[to].holds_possible:
        raise InputError(
            f"{name}: {more} possible links, which {to} cannot hold: give --possible keep or --possible drop"
        )
    if not read.scored and (args.min_confidence is not None or to == "scored"):
        option = "--to scored" if args.min_confidence is None else "--min-confidence"
        raise InputError(f"{name}: the links have no scores, which {option} needs; give a file of links i-j:p")
    warnings = {
        FORMATS[read.format].unread: FORMATS[read.format].unread != "",
        f"the scores of its links are dropped: {to} cannot hold them": read.scored
        and not FORMATS[to].holds_confidences,
    }
    if FORMATS[to].is_open:
        kept = (_kept(sentence, args.possible == "drop", args.min_confidence).possible for sentence in read)
        if not (last := max((n for n, links in enumerate(kept, 1) if links), default=0)):
            raise InputError(f"{name}: no links: a {to.upper()} file without any has no line; choose another format")
        hidden = f"its last {len(read) - last} sentences have no links, so the {to.upper()} file does not show them"
        warnings[f"{hidden}: read it with --source and --target"] = last < len(read)
    for warning, holds in warnings.items():
        if holds:
            warn_user(f"{name}: {warning}")
