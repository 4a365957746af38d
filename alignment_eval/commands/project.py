"""``align-eval project``: labels of the source words onto the words of the translation."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence

import numpy as np

from alignment_eval.cli import Input, add_output, file_name, positive_integer
from alignment_eval.errors import InputError, say, warn_on_stderr
from alignment_eval.files import TextFile, check_new, file_hash, write_lines
from alignment_eval.links.read import AlignmentFile, Texts, read_hypothesis, token_counts
from alignment_eval.options import add_base, add_swap, read_options, reading_fields
from alignment_eval.progress import progress_bar
from alignment_eval.signature import signature
from alignment_eval.transfer.conll import LabelledText, format_conll, format_json, parse_conll, parse_json, scheme_of
from alignment_eval.transfer.labels import Span, WeightedLinks, project_spans, spans_of

EPILOG = """\
Example, after make demo:
  align-eval project --labels data/demo/demo.de.conll --links out/demo/both.pharaoh --target-text data/demo/demo.en

A span, such as B-TYPE I-TYPE, becomes one span of target words or none;
how many have none goes to stderr, and so does the signature.
"""

#: The scheme of labels of JSON lines.
_CHARACTERS = "characters"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``project``."""
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
    group.add_argument("--links", required=True, type=Input, metavar="FILE", help="word alignments (-: standard input)")
    add_base(group, "links", "0")
    add_swap(group, "links")
    group.add_argument(
        "--target-text",
        required=True,
        type=file_name,
        metavar="FILE",
        help="target words, separated by whitespace, one sentence a line",
    )
    add_output(parser.add_argument_group("output"), "target words and their labels", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write the labelled target words."""
    check_new(args.output, args.overwrite)
    labels = _Labels(args.labels, args.column)
    texts = _sizes(labels, args.target_text)
    links = read_hypothesis(args.links, read_options(args, "links", allow_possible=True), texts)
    counts: list[tuple[int, int, int]] = []
    write_lines(args.output, _projected(labels, links, args.target_text, counts))
    spans, lost = (sum(count[k] for count in counts) for k in (1, 2))
    if lost:
        first = next(line for line, _, missing in counts if missing)
        warn_on_stderr(
            f"{lost} of {spans} spans have no counterpart, the first in the sentence at {args.labels}:{first}; their "
            f"labels are left out"
        )
    say(
        signature(
            labels=file_hash(args.labels),
            scheme=labels.scheme,
            **reading_fields("links", links),
            text=file_hash(args.target_text),
            spans=spans,
            projected=spans - lost,
        )
    )


class _Labels:
    """The sentences of a file of labels; each iteration reads them again.

    Attributes:
        path: the file.
        scheme: of the labels; :data:`_CHARACTERS`: JSON lines.
    """

    def __init__(self, path: str, column: int | None) -> None:
        self.path = path
        self._column = column
        self._file = TextFile(path, expected="lines with a word and a label, or JSON lines with text and spans")
        is_json = re.match(rb'\s*\{\s*"', next(iter(self._file)))
        self.scheme = _CHARACTERS if is_json else scheme_of(parse_conll(self._file.lines(), path, column), path)

    def __iter__(self) -> Iterator[LabelledText]:
        if self.scheme == _CHARACTERS:
            return parse_json(self._file.lines(), self.path)
        sentences = parse_conll(self._file.lines(), self.path, self._column)
        return (LabelledText(words, [spans_of(labels, self.scheme)], line) for words, labels, line in sentences)

    def written(self, source: LabelledText, target: bytes, spans: Sequence[Span | None]) -> Iterator[str]:
        """The lines of the target of a sentence, in the format of the source."""
        if source.row is None:
            return format_conll([word.decode() for word in target.split()], spans, self.scheme)
        return iter([format_json(target.decode(), spans, source.row, source.quoted)])


def _projected(labels: _Labels, links: AlignmentFile, text: str, counts: list[tuple[int, int, int]]) -> Iterator[str]:
    """The lines of the target side.

    ``counts`` gets of each sentence its line, the number of its spans, and of those that have no counterpart.
    """
    sentences = zip(labels, links, TextFile(text).lines())
    for n, (labelled, sentence, (_, line)) in enumerate(progress_bar(sentences, len(links), "sentences")):
        words = [token.decode() for token in line.split()]
        weighted: WeightedLinks = sentence.possible if sentence.confidence is None else sentence.confidence
        sizes = len(labelled.words), len(words)
        try:
            found = [
                span
                for spans in labelled.groups
                for span in project_spans(spans, weighted, sizes, (labelled.words, words))
            ]
        except InputError as error:
            raise InputError(f"{links.file.where(n)}: {error}") from None
        counts.append((labelled.line, len(found), found.count(None)))
        yield from labels.written(labelled, line, found)


def _sizes(labels: _Labels, text: str) -> Texts:
    """The numbers of words of both sides."""
    source = np.fromiter((len(sentence.words) for sentence in labels), dtype=np.int64)
    target = token_counts(text)
    if labels.scheme != _CHARACTERS and not target.all():
        raise InputError(
            f"{text}:{int(np.argmin(target)) + 1}: a blank line: expected words, as CoNLL files have no sentence "
            f"without words; remove the pair from all files"
        )
    if len(source) != len(target):
        raise InputError(
            f"{labels.path}: {len(source)} sentences, but {text} has {len(target)} lines: expected one line a "
            f"sentence; separate sentences by blank lines"
        )
    return Texts(labels.path, source, text, target)
