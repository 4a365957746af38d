"""Links between subwords that stand for links between words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product

from alignment_eval.links.sets import GoldSentence, Link, Links
from alignment_eval.maps.subwords import word_indices

#: For each word of a sentence, the positions of its subwords.
Pieces = Sequence[Sequence[int]]


def word_pieces(tokens: Sequence[str], mark: str) -> list[list[int]]:
    """The positions of the subwords of each word, for a sentence in subwords, none of them special.

    Raises:
        InputError: ``mark`` is not one of :data:`alignment_eval.maps.subwords.MARKS`.
    """
    pieces: list[list[int]] = []
    for position, word in enumerate(word_indices(tokens, mark).tolist()):
        if word == len(pieces):
            pieces.append([])
        pieces[word].append(position)
    return pieces


def subword_links(links: GoldSentence, source: Pieces, target: Pieces) -> GoldSentence:
    """The links between subwords: each subword of a word has all links of the word.

    Args:
        links: links between the words of a sentence; the links made of one have its confidence.
        source: the subwords of the source words.
        target: the subwords of the target words.
    """
    confidence = links.confidence
    return GoldSentence(
        _pairs(links.sure, source, target),
        _pairs(links.possible, source, target),
        confidence and {cell: p for link, p in confidence.items() for cell in _pairs([link], source, target)},
    )


def _pairs(links: Iterable[Link], source: Pieces, target: Pieces) -> Links:
    return frozenset(pair for i, j in links for pair in product(source[i], target[j]))
