"""``align-eval convert``: an alignment file in another format; every loss is reported."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from alignment_eval.command_line import add_output
from alignment_eval.errors import InputError, UsageError, progress_bar, warn_on_stderr
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.files import AlignmentFile, Texts, read_hypothesis
from alignment_eval.links.formats import HYPOTHESIS_FORMATS, GoldSentence, Link, Links, format_lines
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
_WITH_POSSIBLE = ("talp", "naacl", "scored")
_WITH_CONFIDENCES = ("scored", "naacl")
#: For each word of a sentence, the positions of its subwords.
WordSubwords = Sequence[Sequence[int]]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``convert``."""
    group = parser.add_argument_group("input")
    add_links_arguments(group, "input", "from", metavar="IN")
    help_ = "keep only links with this score or more (default: all links)"
    group.add_argument("--min-confidence", type=float, metavar="P", help=help_)
    add_text_arguments(parser)
    parser.add_argument(
        "--subwords",
        choices=("auto", *MARKS),
        help="the texts are in subwords, marked so (auto: detected from both): write links between subwords",
    )
    group = parser.add_argument_group("output")
    add_output(group, "the file in the new format", metavar="OUT", standard=True)
    group.add_argument("--to", required=True, choices=HYPOTHESIS_FORMATS, help=f"of {', '.join(HYPOTHESIS_FORMATS)}")
    group.add_argument(
        "--to-base", choices=("0", "1"), help="index of the first word (default: 0; 1 for naacl; fairseq allows only 0)"
    )
    group.add_argument(
        "--possible",
        choices=("keep", "drop"),
        help="possible links: keep (as plain ones if OUT has no others) or drop",
    )


def run(args: argparse.Namespace) -> None:
    """Write the file; every loss was asked for or is warned of."""
    check_new(args.output, args.overwrite)
    base = args.to_base or ("1" if args.to == "naacl" else "0")
    if (args.to, base) == ("fairseq", "1"):
        raise UsageError("--to fairseq with --to-base 1: expected base 0, from which fairseq counts")
    if args.min_confidence is not None and not math.isfinite(args.min_confidence):
        raise UsageError(f"--min-confidence {args.min_confidence}: expected a finite number")
    mark, texts = marked_texts(args)
    read = read_hypothesis(args.input, read_options(args, "from", allow_possible=True), texts)
    _check_losses(read, args)
    sentences = (_kept(sentence, args.possible == "drop", args.min_confidence) for sentence in read)
    if mark is not None:
        sides = (word_lines(path, mark) for path in (args.source, args.target))
        sentences = (subword_links(*parts) for parts in zip(sentences, *sides))
    shown = progress_bar(sentences, len(read), "sentences")
    write_lines(args.output, format_lines(shown, args.to, int(base)))


def marked_texts(args: argparse.Namespace) -> tuple[str | None, Texts | None]:
    """The mark of the texts if they are in subwords, and their numbers of words, to check links against."""
    texts, mark = texts_of(args), args.subwords
    if mark is None:
        return None, texts
    if texts is None:
        raise UsageError("--subwords without --source and --target: expected both texts in subwords")
    paths = args.source, args.target
    if mark == "auto":
        try:
            mark = detect_mark({token for path in paths for line in token_lines(path) for token in line})
        except InputError as error:
            raise InputError(f"{paths[0]}, {paths[1]}: {error}: --subwords") from error
    source, target = (np.fromiter(map(len, word_lines(path, mark)), dtype=np.int64) for path in paths)
    return mark, replace(texts, source=source, target=target)


def word_lines(path: str, mark: str) -> Iterator[list[list[int]]]:
    """The subwords of each word of each sentence of a text in subwords."""
    return (word_subwords(tokens, mark) for tokens in token_lines(path))


def word_subwords(tokens: Sequence[str], mark: str) -> list[list[int]]:
    """The positions of the subwords of each word, for a sentence in subwords, none of them special."""
    words: list[list[int]] = []
    for position, word in enumerate(word_indices(tokens, mark).tolist()):
        if word == len(words):
            words.append([])
        words[word].append(position)
    return words


def subword_links(links: GoldSentence, source: WordSubwords, target: WordSubwords) -> GoldSentence:
    """The links between subwords: each subword of a word has all links of the word."""

    def cells(words: Iterable[Link]) -> Links:
        return frozenset(cell for i, j in words for cell in product(source[i], target[j]))

    confidence = links.confidence and {cell: p for link, p in links.confidence.items() for cell in cells([link])}
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
    if more and args.possible is None and to not in _WITH_POSSIBLE:
        raise InputError(
            f"{name}: {more} possible links, which {to} cannot hold: decide with "
            f"--possible keep (they become links like others) or --possible drop"
        )
    if not read.scored and (args.min_confidence is not None or to == "scored"):
        option = "--to scored" if args.min_confidence is None else "--min-confidence"
        raise InputError(f"{name}: the links have no scores, which {option} needs; give a file of links i-j:p")
    warnings = {
        "only the first A- line of each sentence is taken, no other line": read.format == "fairseq",
        "the scores of its sentences are dropped": read.format == "fast_align",
        f"the scores of its links are dropped: {to} cannot hold them": read.scored and to not in _WITH_CONFIDENCES,
    }
    if to == "naacl":
        kept = (_kept(sentence, args.possible == "drop", args.min_confidence).possible for sentence in read)
        if not (last := max((n for n, links in enumerate(kept, 1) if links), default=0)):
            raise InputError(f"{name}: no links: a NAACL file without any has no line; choose another format")
        hidden = (
            f"its last {len(read) - last} sentences have no links, so the NAACL file does not show that they are there"
        )
        warnings[f"{hidden}: read it with --source and --target"] = last < len(read)
    for warning, holds in warnings.items():
        if holds:
            warn_on_stderr(f"{name}: {warning}")
