"""``align-eval project``: labels of the source words onto the words of the translation."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

import numpy as np

from alignment_eval.command_line import add_output, file_name, positive_integer
from alignment_eval.errors import InputError, UsageError, progress_bar, say, shown, warn_user
from alignment_eval.files import check_new, signature, write_lines
from alignment_eval.links.files import Texts, read_hypothesis
from alignment_eval.maps.sentence import Span
from alignment_eval.options import add_links_arguments, read_options, reading_fields
from alignment_eval.reading import file_hash
from alignment_eval.transfer.label_files import (
    CHARACTERS,
    WORDS,
    Cut,
    LabelledText,
    format_json,
    read_aligned_lines,
    read_labels,
)
from alignment_eval.transfer.labels import WeightedLinks, labels_of, project_spans

EPILOG = """\
Example:
  align-eval project --labels data/demo/demo.de.conll --links data/demo/both.pharaoh --target-text data/demo/demo.en

A span, such as B-TYPE I-TYPE, becomes one span of target words or none;
how many have none goes to stderr, and so does the signature.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("input")
    group.add_argument(
        "--labels",
        required=True,
        type=file_name,
        metavar="FILE",
        help="source words and their labels (BIO, IOB1, BIOES or BILOU) in columns, a blank line between sentences; or "
        'JSON lines {"text": TEXT, "spans": [[START, END, LABEL], …]}, counted in characters, or as SQuAD has them',
    )
    group.add_argument(
        "--column",
        type=positive_integer,
        metavar="N",
        help="column of the labels, from 1; words are in the first (default: 2, the last)",
    )
    add_links_arguments(group, "--links", "links", required=True, metavar="FILE")
    group.add_argument(
        "--target-text",
        required=True,
        type=file_name,
        metavar="FILE",
        help="target words, separated by whitespace, one sentence a line",
    )
    group.add_argument(
        "--words",
        choices=tuple(WORDS),
        help="what the links count, as norm-align --words has it: what whitespace separates, or each character where a "
        "script has no spaces (default: whitespace; with --links FILE.jsonl of norm-align, the words of that file)",
    )
    add_output(parser.add_argument_group("output"), "target words and their labels", standard=True)


def run(args: argparse.Namespace) -> None:
    check_new(args.output, args.overwrite)
    rows = read_aligned_lines(args.links)
    if rows is not None and args.words:
        raise UsageError(f"--words with {args.links}, which has the words: leave it out")
    cut = Cut(args.words or "whitespace", rows)
    scheme, sentences = read_labels(args.labels, args.column, cut)
    if rows is not None and len(rows) != len(sentences):
        raise InputError(f"{args.links}: {len(rows)} sentences, but {args.labels} has {len(sentences)}")
    for sentence, row in zip(sentences, rows or ()):
        if sentence.words != (words := [row.texts[0][start:end] for start, end in row.spans[0]]):
            raise InputError(
                f"{args.labels}:{sentence.line}: {shown(' '.join(sentence.words))}, but the links are of "
                f"{shown(' '.join(words))}: expected the words that were aligned"
            )
    source = np.array([len(sentence.words) for sentence in sentences])
    target = np.array([len(spans) for _, spans in cut.lines(args.target_text)])
    if scheme != CHARACTERS and not target.all():
        raise InputError(
            f"{args.target_text}:{int(np.argmin(target)) + 1}: a blank line: expected words, as CoNLL files have no "
            f"sentence without words; remove the pair from all files"
        )
    if len(sentences) != len(target):
        raise InputError(f"{args.labels}: {len(sentences)} sentences, but {args.target_text} has {len(target)} lines")
    links: Iterable[WeightedLinks]
    if rows is None:
        texts = Texts(args.labels, source, args.target_text, target)
        file = read_hypothesis(args.links, read_options(args, "links"), texts)
        links = (each.possible if each.confidence is None else each.confidence for each in file)
        fields, places = reading_fields("links", file), [file.where(n) for n in range(len(file))]
    else:
        links = (row.links for row in rows)
        fields = {"links": file_hash(args.links), "links_format": "jsonl"}
        places = [f"{args.links}:{number}" for number in range(1, len(rows) + 1)]
    pairs = zip(sentences, links, cut.lines(args.target_text), places)
    lost: list[int] = []
    write_lines(args.output, _projected(scheme, progress_bar(pairs, len(sentences), "sentences"), lost))
    spans = sum(len(group) for sentence in sentences for group in sentence.groups)
    if parts := [sentence.line for sentence in sentences for _ in range(sentence.parts)]:
        warn_user(
            f"{len(parts)} of {spans} spans are a part of a word, the first at {args.labels}:{parts[0]}; the "
            f"whole word is taken for them"
        )
    if lost:
        warn_user(
            f"{len(lost)} of {spans} spans have no counterpart, the first in the sentence at {args.labels}:{lost[0]}; "
            f"their labels are left out"
        )
    say(
        signature(
            labels=file_hash(args.labels),
            scheme=scheme,
            **fields,
            text=file_hash(args.target_text),
            spans=spans,
            projected=spans - len(lost),
        )
    )


def _projected(
    scheme: str, pairs: Iterable[tuple[LabelledText, WeightedLinks, tuple[str, list[Span]], str]], lost: list[int]
) -> Iterator[str]:
    """The lines of the target side; ``lost`` gets, for each span without a counterpart, the line of its sentence."""
    for source, links, (text, places), where in pairs:
        words = [text[start:end] for start, end in places]
        sides, sizes = (source.words, words), (len(source.words), len(words))
        try:
            found = [span for spans in source.groups for span in project_spans(spans, links, sizes, sides)]
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        lost += [source.line] * found.count(None)
        if source.row is None:
            yield from map("\t".join, zip(words, labels_of(found, len(words), scheme)))
            yield ""
        else:
            yield format_json(text, places, found, source.row, source.quoted)
