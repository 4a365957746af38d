"""From word maps to alignments: two directions combined, a lexical table, and the rule; sentences joined to lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TypeVar

import numpy as np

from alignment_eval.alignment import Alignment
from alignment_eval.extraction.explain import ReadMaps
from alignment_eval.extraction.extract import WordMaps, combined_map, linked_pair, sharp_map, unordered_weights
from alignment_eval.extraction.lexical_table import EMPTY, CountedPair, LexicalTable, count_lexical_table
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.pair_scores import join_scores, score_pair
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, Span, SpannedLine
from alignment_eval.maps.words import Reweighted, sharp_shares

#: Pairs that are aligned together: the order of the words of several costs little more than that of one.
TOGETHER = 16
#: Reweights the word map of a pair by a lexical table.
Reweight = Callable[[CountedPair], Reweighted]
#: What a pair carries, such as its number.
Key = TypeVar("Key")


def align_pairs(pairs: Iterable[WordMaps], method: AlignmentMethod, table: LexicalTable = EMPTY) -> Iterator[Alignment]:
    """Align the sentence pairs of a text in the order in which they arrive.

    If ``method`` counts a lexical table, it is counted on the first ``table_pairs`` pairs that arrive, which must be
    the first of the text, in any order, and are held back until then.  ``table`` is that of another text, to which the
    counts of these pairs are added.
    """
    arriving = iter(pairs)
    counted = list(islice(arriving, method.table_pairs))
    table, of_counted = count_table(counted, method, table)
    for some, reweight in ((counted, of_counted), (arriving, by_table(table, method))):
        for _, alignment in link_pairs(((None, pair) for pair in some), method, reweight):
            yield alignment


def count_table(
    pairs: Iterable[WordMaps], method: AlignmentMethod, table: LexicalTable
) -> tuple[LexicalTable, Reweight]:
    """Count the lexical table of pairs, added to ``table``; with what reweights the maps of these pairs themselves."""
    combined = (combined_map(pair, method) for pair in pairs)
    maps = [one.counted for one in combined if one.scores is not None]
    if not maps or method.sharpening is None:
        return table, by_table(table, method)
    return count_lexical_table(maps, method.sharpening, table)


def by_table(table: LexicalTable, method: AlignmentMethod) -> Reweight:
    """What reweights the maps of pairs that the table was not counted on."""
    return lambda pair: table.reweight(*pair, method.sharpening)  # type: ignore[arg-type]  # not called without


def link_pairs(
    pairs: Iterable[tuple[Key, WordMaps]], method: AlignmentMethod, reweight: Reweight
) -> Iterator[tuple[Key, Alignment]]:
    """Align pairs in their order, :data:`TOGETHER`, each with what it carries."""
    arriving = iter(pairs)
    while group := list(islice(arriving, TOGETHER)):
        combined = [combined_map(pair, method) for _, pair in group]
        weighed = [reweight(one.counted) if method.sharpening and one.scores is not None else None for one in combined]
        cells = [(each.cells, one.fertility) for one, each in zip(combined, weighed) if each is not None]
        sharp = iter(sharp_shares(cells, method.sharpening.of_order) if method.sharpening else ())
        for (key, pair), one, each in zip(group, combined, weighed):
            whole = one if each is None else sharp_map(one, *next(sharp))
            yield key, _alignment(ReadMaps(method, pair, one, each, whole))


def _alignment(maps: ReadMaps) -> Alignment:
    """The alignment of a pair by the map that the rule reads."""
    whole, sentence = maps.whole, maps.whole.sentence
    (source, source_spans), (target, target_spans) = map(_spanned, (sentence.source, sentence.target))
    text = source, target, source_spans, target_spans
    if whole.scores is None:
        return Alignment(*text, [], status=sentence.status, id=sentence.id)
    linked, sure = linked_pair(whole, maps.pair, maps.method)
    sources, targets = np.nonzero(linked)
    links: list[Link] = list(zip(sources.tolist(), targets.tolist()))  # in ascending order
    confidences = {} if sure is None else dict(zip(links, sure[targets, sources].tolist()))
    weights = {}
    if whole.unordered is not None:
        weights = dict(zip(links, unordered_weights(whole.unordered[targets, sources]).tolist()))
    forward = maps.pair[0]
    scores = None if forward.sentence.log_probs is None else score_pair(maps.pair, linked, sure)
    kept = None if forward.maps is None else maps
    return Alignment(*text, links, confidences, scores=scores, weights=weights, id=sentence.id, maps=kept)


def _spanned(side: SentenceSide) -> SpannedLine:
    """The line of a side, with the spans of its words; its words with blanks between if the line is not known."""
    if side.line is not None:
        return side.line
    spans: list[Span] = []
    start = 0
    for word in (words := side.word_strings()):
        spans.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), tuple(spans)


def join_sentences(sentences: Sequence[Alignment], id: int, tokens: Sequence[Sequence[int]]) -> Alignment:
    """The alignment of a pair of lines, of the alignments of its sentences, whose texts join to the lines.

    ``tokens`` of each sentence are the numbers of its target tokens and, if a reverse model scored it, source tokens.
    """
    if len(sentences) == 1:
        return replace(sentences[0], id=id)
    whole = Alignment("", "", (), (), [], id=id)
    for one in sentences:
        at, to = len(whole.source), len(whole.target)
        first, first_target = len(whole.source_spans), len(whole.target_spans)
        shifted = {(i, j): (first + i, first_target + j) for i, j in one.links}
        whole = replace(
            whole,
            source=whole.source + one.source,
            target=whole.target + one.target,
            source_spans=(*whole.source_spans, *((start + at, end + at) for start, end in one.source_spans)),
            target_spans=(*whole.target_spans, *((start + to, end + to) for start, end in one.target_spans)),
            links=[*whole.links, *shifted.values()],
            confidences={**whole.confidences, **{shifted[link]: share for link, share in one.confidences.items()}},
            weights={**whole.weights, **{shifted[link]: share for link, share in one.weights.items()}},
        )
    if refused := next((sentence.status for sentence in sentences if not sentence.ok), None):
        return replace(whole, links=[], confidences={}, weights={}, status=refused)
    scores = [sentence.scores for sentence in sentences if sentence.scores is not None]
    words = whole.source_words, whole.target_words
    joined = join_scores(scores, tokens, words, whole.links, whole.confidences) if scores else None
    return replace(whole, scores=joined)
