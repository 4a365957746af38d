"""``align-eval lexicon``: a bilingual lexicon of the links of a text."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from sys import intern
from typing import NamedTuple

from alignment_eval.command_line import add_output, positive_integer
from alignment_eval.errors import progress_bar, say
from alignment_eval.files import check_new, write_lines
from alignment_eval.links.files import read_hypothesis, read_texts
from alignment_eval.links.formats import Link
from alignment_eval.options import add_links_arguments, add_text_arguments, read_options, reading_fields
from alignment_eval.reading import file_hash, token_lines
from alignment_eval.signature import signature
from alignment_eval.transfer.units import check_inside

EPILOG = """\
Example:
  align-eval lexicon data/demo/demo.talp --links-base 1 --source data/demo/demo.de --target data/demo/demo.en \\
      --min-count 9 -o out/frequent.tsv

Columns: source and target word; count, their links; p(t|s), count / links of the source word; p(s|t), count / links of
the target word; dice, 2 count / (links of both).  Sorted by count, largest first, then by source and target word.  The
signature goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``lexicon``."""
    add_links_arguments(parser.add_argument_group("links"), "links", "links", metavar="LINKS")
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
    pairs = zip(token_lines(args.source), token_lines(args.target), links.each_links())
    entries = bilingual_lexicon(progress_bar(pairs, len(links), "sentences"), args.min_count)
    rows = (map(str, (*entry[:3], *(f"{share:.4f}" for share in entry[3:]))) for entry in entries)
    write_lines(args.output, ["source\ttarget\tcount\tp(t|s)\tp(s|t)\tdice", *map("\t".join, rows)])
    say(
        signature(
            **reading_fields("links", links),
            source=file_hash(args.source),
            target=file_hash(args.target),
            min_count=args.min_count,
            entries=len(entries),
        )
    )


class Entry(NamedTuple):
    """A pair of words that are linked.

    Attributes:
        source, target: the words.
        links: how many they have.
        p_target: p(t|s), the share of the source word's links.
        p_source: p(s|t), the share of the target word's links.
        dice: 2 · links / (all links of the source word + all links of the target word).
    """

    source: str
    target: str
    links: int
    p_target: float
    p_source: float
    dice: float


def bilingual_lexicon(
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Collection[Link]]], min_count: int = 1
) -> list[Entry]:
    """The linked words of a text.

    Args:
        pairs: source words, target words and links (from 0) of each sentence pair; only counts are kept.
        min_count: leave out pairs of words with fewer links; they count in the probabilities of the others.

    Returns:
        The entries, those with most links first; of equal ones by source, then target word, in code point order.

    Raises:
        InputError: a link is outside its sentence pair.
    """
    counts = Counter[tuple[str, str]]()
    for source_words, target_words, links in pairs:
        check_inside(links, (len(source_words), len(target_words)))
        for i, j in links:
            counts[intern(source_words[i]), intern(target_words[j])] += 1  # each word is in memory once
    of_source, of_target = Counter[str](), Counter[str]()
    for (source, target), count in counts.items():
        of_source[source] += count
        of_target[target] += count
    entries = []
    for (source, target), count in counts.items():
        if count >= min_count:
            s, t = of_source[source], of_target[target]
            entries.append(Entry(source, target, count, count / s, count / t, 2 * count / (s + t)))
    return sorted(entries, key=lambda entry: (-entry.links, entry.source, entry.target))
