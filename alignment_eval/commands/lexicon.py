"""``align-eval lexicon``: a bilingual lexicon of the links of a text."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator

from alignment_eval.cli import Input, add_output, positive_integer
from alignment_eval.errors import say
from alignment_eval.files import check_new, file_hash, token_lines, write_lines
from alignment_eval.links.read import read_hypothesis, read_texts
from alignment_eval.options import add_base, add_swap, add_text_arguments, read_options, reading_fields
from alignment_eval.progress import progress_bar
from alignment_eval.signature import signature
from alignment_eval.transfer.lexicon import Entry, bilingual_lexicon

EPILOG = """\
Example:
  align-eval lexicon data/demo/demo.talp --links-base 1 --source data/demo/demo.de --target data/demo/demo.en \\
      --min-count 9 -o out/frequent.tsv

Columns: source and target word; count, their links; p(t|s), count / links of the source word; p(s|t), count / links of
the target word; dice, 2 count / (links of both).  Sorted by count, largest first, then by source and target word.  The
signature goes to stderr.
"""
_HEADER = "source\ttarget\tcount\tp(t|s)\tp(s|t)\tdice"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``lexicon``."""
    group = parser.add_argument_group("links")
    group.add_argument("links", type=Input, metavar="LINKS", help="word alignments (-: standard input)")
    add_base(group, "links", "0")
    add_swap(group, "links")
    add_text_arguments(parser, required=True)
    group = parser.add_argument_group("output")
    group.add_argument(
        "--min-count",
        type=positive_integer,
        default=1,
        metavar="N",
        help="leave out words with fewer than N links (default: 1)",
    )
    add_output(group, "the lexicon, tab-separated", standard=True)


def run(args: argparse.Namespace) -> None:
    """Write the lexicon."""
    check_new(args.output, args.overwrite)
    texts = read_texts(args.source, args.target)
    links = read_hypothesis(args.links, read_options(args, "links", allow_possible=True), texts)
    pairs = zip(_words(args.source), _words(args.target), links.each_links())
    entries = bilingual_lexicon(progress_bar(pairs, len(links), "sentences"), args.min_count)
    write_lines(args.output, _lines(entries))
    say(
        signature(
            **reading_fields("links", links),
            source=file_hash(args.source),
            target=file_hash(args.target),
            min_count=args.min_count,
            entries=len(entries),
        )
    )


def _words(path: str) -> Iterator[list[str]]:
    return ([token.decode() for token in line] for line in token_lines(path))


def _lines(entries: Iterable[Entry]) -> Iterator[str]:
    yield _HEADER
    for entry in entries:
        figures = (f"{figure:.4f}" for figure in entry[3:])
        yield "\t".join((entry.source, entry.target, str(entry.links), *figures))
