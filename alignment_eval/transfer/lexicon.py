"""A bilingual lexicon: which words are linked, how often, and how exclusively."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from alignment_eval.errors import InputError

_BITS = 32


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
    source, target = _Numbers(), _Numbers()
    counts = defaultdict[int, int](int)  # number of the source word, shifted, and of the target word
    for source_words, target_words, links in pairs:
        numbers = [source[word] for word in source_words], [target[word] for word in target_words]
        for i, j in links:
            if not (0 <= i < len(source_words) and 0 <= j < len(target_words)):
                raise InputError(
                    f"link {i}-{j} is outside its sentence pair, which has {len(source_words)} and {len(target_words)} "
                    f"words; give the text that was aligned"
                )
            counts[numbers[0][i] << _BITS | numbers[1][j]] += 1
    totals = [0] * len(source), [0] * len(target)
    for key, count in counts.items():
        totals[0][key >> _BITS] += count
        totals[1][key & (1 << _BITS) - 1] += count
    words = list(source), list(target)
    entries = []
    for key, count in counts.items():
        if count >= min_count:
            s, t = key >> _BITS, key & (1 << _BITS) - 1
            of_source, of_target = totals[0][s], totals[1][t]
            dice = 2 * count / (of_source + of_target)
            entries.append(Entry(words[0][s], words[1][t], count, count / of_source, count / of_target, dice))
    return sorted(entries, key=lambda entry: (-entry.links, entry.source, entry.target))


class _Numbers(dict[str, int]):
    """Word -> its number, in the order of their first occurrence."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number
