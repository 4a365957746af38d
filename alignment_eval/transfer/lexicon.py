"""A bilingual lexicon: which words are linked, how often, and how exclusively."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from sys import intern
from typing import NamedTuple

from alignment_eval.errors import InputError


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
    pairs: Iterable[tuple[Sequence[str], Sequence[str], Collection[tuple[int, int]]]], min_count: int = 1
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
        for i, j in links:
            if not (0 <= i < len(source_words) and 0 <= j < len(target_words)):
                raise InputError(
                    f"link {i}-{j} is outside its sentence pair, which has {len(source_words)} and {len(target_words)} "
                    f"words; give the text that was aligned"
                )
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
