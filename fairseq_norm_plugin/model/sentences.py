"""Lines that are cut into sentences: these are aligned as pairs of their own, and joined again."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from alignment_eval.alignment import Alignment, join_sentences
from alignment_eval.extraction.extract import WordMaps
from fairseq_norm_plugin.text.tokenise import SentencePair

#: Pairs with the numbers of their lines.
Numbered = Iterable[tuple[int, SentencePair]]


@dataclass
class _Cut:
    """A line, and for each of its sentences the alignment and the lengths of its sides, once it has them."""

    id: int
    pair: SentencePair
    alignments: list[Alignment | None]
    tokens: list[Sequence[int]]


def align_lines(
    windows: Iterable[Numbered],
    read: Callable[[Numbered], Iterator[tuple[int, WordMaps]]],
    link: Callable[[Iterator[WordMaps]], Iterator[Alignment]],
    progress: Callable[[int], object],
) -> Iterator[tuple[SentencePair, Alignment]]:
    """Align the lines of each window, sentence by sentence where they are cut, in the order in which they are done.

    Args:
        windows: the lines that are read together.
        read: gives the word maps of pairs, and the place of each (MapReader.read).
        link: aligns them, in their order.
        progress: takes 1 for each line, when its first sentence is read.
    """
    arrived: deque[tuple[_Cut, int]] = deque()
    read_so_far: list[tuple[_Cut, int]] = []

    def sentences(window: Numbered) -> Numbered:
        read_so_far.clear()
        for id_, pair in window:  # each is encoded before the next is read: tokenizers know their last lines
            cut = _Cut(id_, pair, [None] * len(pair.sentences), [()] * len(pair.sentences))
            for place, sentence in enumerate(pair.sentences):
                read_so_far.append((cut, place))
                yield id_, sentence

    def word_maps() -> Iterator[WordMaps]:
        for window in windows:
            for number, maps in read(sentences(window)):
                cut, place = read_so_far[number]
                cut.tokens[place] = [len(one.sentence.target.tokens) for one in maps if one is not None]
                progress(int(place == 0))
                arrived.append((cut, place))
                yield maps

    for alignment in link(word_maps()):
        cut, place = arrived.popleft()
        cut.alignments[place] = alignment
        if all(cut.alignments):
            yield cut.pair, join_sentences(list(filter(None, cut.alignments)), cut.id, cut.tokens)
