"""From word maps to alignments: two directions combined, a lexical table, and the rule; sentences joined to lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Union

import numpy as np

from alignment_eval.alignment import Alignment
from alignment_eval.extraction.extract import (
    ReadMaps,
    WordMap,
    WordMaps,
    combined_map,
    linked_pair,
    sharp_map,
    unordered_weights,
)
from alignment_eval.extraction.lexical_table import (
    EMPTY,
    SAMPLE,
    LexicalTable,
    check_match,
    count_lexical_table,
)
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.pair_scores import join_scores, score_pair
from alignment_eval.extraction.sharpen import Reweighted, Sharpening, sharp_shares
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, Span, SpannedLine, words_of

#: Pairs that are aligned together: the order of the words of several costs little more than that of one.
TOGETHER = 16
#: A pair, its combined map, and that as a lexical table has reweighted it; None: it has none, or is not sharpened.
_Weighed = tuple[WordMaps, WordMap, Union[Reweighted, None]]


def align_pairs(
    pairs: Iterable[WordMaps | None], method: AlignmentMethod, table: LexicalTable | None = None, check: bool = True
) -> Iterator[Alignment]:
    """Align the sentence pairs of a text in the order in which they arrive, one at a time.

    If ``method`` counts a lexical table, it is counted on the first ``table_pairs`` pairs that arrive; sentences of one
    line have one id and count as one pair.  These must be the first of the text, in any order, and are held back until
    then.  The pairs after them are reweighted by it.  Pairs are aligned :data:`TOGETHER`; None among them stands for a
    pause, before which all pairs so far are aligned.

    ``table`` is a lexical table of another text, to which the counts of these pairs are added.  ``check``: check that
    it matches the text of the first pairs, which are held back for that.
    """
    pairs = iter(pairs)
    if table is not None and check:
        held = list(islice(pairs, SAMPLE))
        check_match(table, (words_of(pair[0].sentence) for pair in held if pair and pair[0].scores is not None))
        pairs = chain(held, pairs)
    weighed = _weigh(pairs, method, table or EMPTY)
    group: list[_Weighed] = []
    for own in chain(weighed, [None]):
        if own is not None:
            group.append(own)
        if own is None or len(group) == TOGETHER:
            for each, whole in zip(group, _sharp_maps(group, method.sharpening)):
                yield _alignment(*each, whole, method)
            group = []


def _weigh(pairs: Iterator[WordMaps | None], method: AlignmentMethod, table: LexicalTable) -> Iterator[_Weighed | None]:
    """The combined map of each pair, reweighted by the table, which is counted before if the method says so."""
    if method.table_pairs and method.sharpening is not None:
        counted, ids = [], set()
        for pair in filter(None, pairs):
            ids.add(pair[0].sentence.id)
            if len(ids) > method.table_pairs:
                pairs = chain([pair], pairs)
                break
            counted.append((pair, combined_map(pair, method)))
        maps = [combined.counted for _, combined in counted if combined.scores is not None]
        table, reweighted = count_lexical_table(maps, method.sharpening, table)
        for pair, combined in counted:
            yield pair, combined, None if combined.scores is None else next(reweighted)
    for one in pairs:
        if one is None:
            yield None
            continue
        combined, weighed = combined_map(one, method), None
        if method.sharpening is not None and combined.scores is not None:
            weighed = table.reweight(*combined.counted, method.sharpening)
        yield one, combined, weighed


def _sharp_maps(group: Sequence[_Weighed], sharpening: Sharpening | None) -> Iterator[WordMap]:
    """The map of each pair that the rule reads."""
    sharp = [(weighed.cells, combined.fertility) for _, combined, weighed in group if weighed is not None]
    shares = iter([] if sharpening is None else sharp_shares(sharp, sharpening.of_order))
    for _, combined, weighed in group:
        yield combined if weighed is None else sharp_map(combined, *next(shares))


def _alignment(
    pair: WordMaps, combined: WordMap, weighed: Reweighted | None, whole: WordMap, method: AlignmentMethod
) -> Alignment:
    """The alignment of a pair by the ``whole`` map, which the rule reads."""
    sentence = whole.sentence
    (source, source_spans), (target, target_spans) = map(_spanned, (sentence.source, sentence.target))
    text = source, target, source_spans, target_spans
    if whole.scores is None:
        return Alignment(*text, [], status=sentence.status, id=sentence.id)
    linked, sure = linked_pair(whole, pair, method)
    sources, targets = np.nonzero(linked)
    links: list[Link] = list(zip(sources.tolist(), targets.tolist()))  # in ascending order
    confidences = {} if sure is None else dict(zip(links, sure[targets, sources].tolist()))
    weights = {}
    if whole.unordered is not None:
        weights = dict(zip(links, unordered_weights(whole.unordered[targets, sources]).tolist()))
    scores = None if pair[0].sentence.log_probs is None else score_pair(pair, linked, sure)
    maps = None if pair[0].maps is None else ReadMaps(method, pair, combined, weighed, whole)
    return Alignment(*text, links, confidences, scores=scores, weights=weights, id=sentence.id, maps=maps)


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
