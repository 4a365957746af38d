"""``align-eval project``: labels of the source words onto the words of the translation."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

import numpy as np

from alignment_eval.errors import InputError, say, warn_on_stderr
from alignment_eval.files import check_new, file_hash, write_lines
from alignment_eval.links.checks import Texts
from alignment_eval.links.read import AlignmentFile, ReadOptions, read_hypothesis
from alignment_eval.links.sets import GoldSentence
from alignment_eval.links.text import TextFile, token_counts, token_lines
from alignment_eval.options.alignments import add_base, add_swap, reading_fields
from alignment_eval.options.common import Input, add_output, file_name
from alignment_eval.progress import progress_bar
from alignment_eval.signature import signature
from alignment_eval.transfer.conll import LabelledSentence, format_conll, parse_conll
from alignment_eval.transfer.labels import WeightedLinks, labels_of, project_spans, spans_of

EPILOG = """\
Example, after make demo:
  align-eval project --labels data/demo/demo.de.conll --links out/demo/both.pharaoh --target-text data/demo/demo.en

A span, B-TYPE I-TYPE, becomes one span of target words or none; how many have none goes to stderr, and so does the
signature.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``project``."""
    group = parser.add_argument_group("input")
    group.add_argument(
        "--labels",
        required=True,
        type=file_name,
        metavar="FILE",
        help="source words and their BIO labels (CoNLL 2002: word, tab, label; a blank line between sentences)",
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
    texts = _sizes(args.labels, args.target_text)
    options = ReadOptions(base=args.links_base, swap=args.links_swap, allow_possible=True)
    links = read_hypothesis(args.links, options, texts, role="links")
    pairs = zip(_labelled(args.labels), links, token_lines(args.target_text))
    shown = progress_bar(pairs, len(links), "sentences")
    counts: list[tuple[int, int, int]] = []
    write_lines(args.output, _projected(links, shown, counts))
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
            **reading_fields("links", links),
            text=file_hash(args.target_text),
            spans=spans,
            projected=spans - lost,
        )
    )


def _projected(
    links: AlignmentFile,
    pairs: Iterable[tuple[LabelledSentence, GoldSentence, list[bytes]]],
    counts: list[tuple[int, int, int]],
) -> Iterator[str]:
    """The lines of the target side; ``links`` name the place of a bad confidence.

    ``counts`` gets of each sentence its line, the number of its spans, and of those that have no counterpart.
    """
    for n, (labelled, sentence, tokens) in enumerate(pairs):
        words = [token.decode() for token in tokens]
        weighted: WeightedLinks = sentence.possible if sentence.confidence is None else sentence.confidence
        spans, sizes = spans_of(labelled.labels), (len(labelled.words), len(words))
        try:
            found = project_spans(spans, weighted, sizes, (labelled.words, words))
        except InputError as error:
            raise InputError(f"{links.file.where(n)}: {error}") from None
        counts.append((labelled.line, len(spans), found.count(None)))
        yield from format_conll(words, labels_of(found, len(words)))


def _labelled(path: str) -> Iterator[LabelledSentence]:
    """The sentences of a file of labels."""
    file = TextFile(path, expected="lines with a word, a tab and a label")
    return parse_conll(file.lines(), file.name)


def _sizes(labels: str, text: str) -> Texts:
    """The numbers of words of both sides."""
    source = np.fromiter((len(sentence.words) for sentence in _labelled(labels)), dtype=np.int64)
    target = token_counts(text)
    if not target.all():
        raise InputError(
            f"{text}:{int(np.argmin(target)) + 1}: a blank line: expected words, as CoNLL files have no sentence "
            f"without words; remove the pair from all files"
        )
    if len(source) != len(target):
        raise InputError(
            f"{labels}: {len(source)} sentences, but {text} has {len(target)} lines: expected one line a sentence; "
            f"separate sentences by blank lines"
        )
    return Texts(labels, source, text, target)
