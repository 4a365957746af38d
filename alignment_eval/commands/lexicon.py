"""``align-eval lexicon``: a bilingual lexicon of the links of a text."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import takewhile
from sys import intern
from typing import NamedTuple

from alignment_eval.command_line import add_output, positive_integer
from alignment_eval.errors import progress_bar, say
from alignment_eval.files import check_new, signature, write_lines
from alignment_eval.links.files import read_hypothesis, read_texts
from alignment_eval.links.formats import Link, check_inside
from alignment_eval.maps.sentence import Span
from alignment_eval.options import add_links_arguments, add_text_arguments, read_options, reading_fields
from alignment_eval.reading import file_hash, token_lines

EPILOG = """\
Example:
  align-eval lexicon data/demo/both.pharaoh --source data/demo/demo.de --target data/demo/demo.en \\
      --min-count 9 -o out/frequent.tsv

Columns: source and target word; count, their links; p(t|s), count / links of the source word; p(s|t), count / links of
the target word; dice, 2 count / (links of both).  Sorted by count, largest first, then by source and target word.  With
--max-words, phrases stand for words, and phrase pairs for links.  The signature goes to stderr.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_links_arguments(parser.add_argument_group("links"), "links", "links", metavar="LINKS")
    add_text_arguments(parser, required=True)
    group = parser.add_argument_group("output")
    help_ = "leave out words with fewer than N links (default: 1)"
    group.add_argument("--min-count", type=positive_integer, default=1, metavar="N", help=help_)
    help_ = "entries of up to N words: the phrase pairs that are consistent with the links (default: 1, linked words)"
    group.add_argument("--max-words", type=positive_integer, default=1, metavar="N", help=help_)
    group.add_argument("--lowercase", action="store_true", help="words in lower case: one entry for The and the")
    add_output(group, "the lexicon, tab-separated", standard=True)


def run(args: argparse.Namespace) -> None:
    check_new(args.output, args.overwrite)
    texts = read_texts(args.source, args.target)
    links = read_hypothesis(args.links, read_options(args, "links"), texts)
    pairs = zip(token_lines(args.source), token_lines(args.target), links.each_links())
    shown = progress_bar(pairs, len(links), "sentences")
    entries = bilingual_lexicon(shown, args.min_count, args.max_words, args.lowercase)
    rows = (map(str, (*entry[:3], *(f"{share:.4f}" for share in entry[3:]))) for entry in entries)
    write_lines(args.output, ["source\ttarget\tcount\tp(t|s)\tp(s|t)\tdice", *map("\t".join, rows)])
    say(
        signature(
            **reading_fields("links", links),
            source=file_hash(args.source),
            target=file_hash(args.target),
            min_count=args.min_count,
            **({"max_words": args.max_words} if args.max_words > 1 else {}),
            **({"lowercase": True} if args.lowercase else {}),
            entries=len(entries),
        )
    )


class Entry(NamedTuple):
    """A pair of words that are linked, or of phrases.

    Attributes:
        source, target: the words.
        links: how many they have; of phrases, how often they are a pair.
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
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Collection[Link]]],
    min_count: int = 1,
    max_words: int = 1,
    lowercase: bool = False,
) -> list[Entry]:
    """The linked words of a text.

    Args:
        pairs: source words, target words and links (from 0) of each sentence pair; only counts are kept.
        min_count: leave out pairs of words with fewer links; they count in the probabilities of the others.
        max_words: 2 or more: the entries are the consistent phrase pairs of up to so many words on each side
            (:func:`phrase_pairs`), with one word or more.
        lowercase: words are in lower case.

    Returns:
        The entries, those with most links first; of equal ones by source, then target word, in code point order.

    Raises:
        InputError: a link is outside its sentence pair.
    """
    counts = Counter[tuple[str, str]]()
    for source_words, target_words, links in pairs:
        check_inside(links, (len(source_words), len(target_words)))
        if lowercase:
            source_words, target_words = ([word.lower() for word in side] for side in (source_words, target_words))
        if max_words == 1:
            spans: Iterable[tuple[Span, Span]] = (((i, i + 1), (j, j + 1)) for i, j in links)
        else:
            spans = phrase_pairs(links, (len(source_words), len(target_words)), max_words)
        for of_source, of_target in spans:
            pair = intern(" ".join(source_words[slice(*of_source)])), intern(" ".join(target_words[slice(*of_target)]))
            counts[pair] += 1  # each word is in memory once
    source_counts, target_counts = Counter[str](), Counter[str]()
    for (source, target), count in counts.items():
        source_counts[source] += count
        target_counts[target] += count
    entries = []
    for (source, target), count in counts.items():
        if count >= min_count:
            s, t = source_counts[source], target_counts[target]
            entries.append(Entry(source, target, count, count / s, count / t, 2 * count / (s + t)))
    return sorted(entries, key=lambda entry: (-entry.links, entry.source, entry.target))


def phrase_pairs(links: Collection[Link], sizes: tuple[int, int], longest: int) -> Iterator[tuple[Span, Span]]:
    """The phrase pairs of a sentence pair that are consistent with its links (Och et al. 1999, Koehn et al. 2003).

    These are runs of source words and of target words with a link between them, and none from one of them to a word
    outside.  At its borders a phrase may have words without links.

    Args:
        links: inside the sentence pair, from 0.
        sizes: the numbers of source and target words.
        longest: how many words a phrase has at most.
    """
    linked = [set[int]() for _ in range(sizes[0])], [set[int]() for _ in range(sizes[1])]
    for i, j in links:
        linked[0][i].add(j)
        linked[1][j].add(i)
    for start in range(sizes[0]):
        inside = set[int]()  # target words that are linked to the phrase
        for end in range(start + 1, min(start + longest, sizes[0]) + 1):
            inside |= linked[0][end - 1]
            if not inside:
                continue
            low, high = min(inside), max(inside) + 1
            if high - low > longest:
                break
            if any(not start <= i < end for j in range(low, high) for i in linked[1][j]):
                continue
            before = takewhile(lambda j: not linked[1][j], range(low - 1, max(high - longest, 0) - 1, -1))
            for first in (low, *before):
                behind = takewhile(lambda j: not linked[1][j], range(high, min(low + longest, sizes[1])))
                for last in (high, *(j + 1 for j in behind)):
                    if last - first <= longest:
                        yield (start, end), (first, last)
