"""From word maps to alignments: two directions combined, a lexical table, and the rule; sentences joined to lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from alignment_eval.alignment import Alignment
from alignment_eval.extraction.extract import ReadMaps, WordMap, WordMaps, combined_map, linked_pair
from alignment_eval.extraction.lexical_table import (
    EMPTY,
    SAMPLE,
    LexicalTable,
    check_match,
    count_lexical_table,
    supported,
)
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.pair_scores import join_scores, score_pair
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.formats import Link
from alignment_eval.maps.sentence import SentenceSide, Span, SpannedLine, words_of


def align_pairs(
    pairs: Iterable[WordMaps], method: AlignmentMethod, table: LexicalTable | None = None, check: bool = True
) -> Iterator[Alignment]:
    """Align the sentence pairs of a text in the order in which they arrive, one at a time.

    If ``method`` counts a lexical table, it is counted on the first ``table_pairs`` pairs that arrive; sentences of one
    line have one id and count as one pair.  These must be the first of the text, in any order, and are held back until
    then.  The pairs after them are reweighted by it.

    ``table`` is a lexical table of another text, to which the counts of these pairs are added.  ``check``: check that
    it matches the text of the first pairs, which are held back for that.
    """
    pairs, shares = iter(pairs), rule_of(method.forward.rule).shares
    if table is not None and check:
        held = list(islice(pairs, SAMPLE))
        check_match(table, (words_of(forward.sentence) for forward, _ in held if forward.scores is not None))
        pairs = chain(held, pairs)
    if method.table_pairs:
        counted, ids = [], set()
        for pair in pairs:
            ids.add(pair[0].sentence.id)
            if len(ids) > method.table_pairs:
                pairs = chain([pair], pairs)
                break
            counted.append((pair, combined_map(pair, method)))
        maps = [combined.counted for _, combined in counted if combined.scores is not None]
        table, reweighted = count_lexical_table(maps, shares, table or EMPTY, method.table_weight)
        for pair, combined in counted:
            yield _alignment(pair, combined, None if combined.scores is None else next(reweighted), method)
    for pair in pairs:
        combined, weighed = combined_map(pair, method), None
        if method.sharpened and combined.scores is not None:
            weighed = (table or EMPTY).reweight(*combined.counted, shares, method.table_weight)
        yield _alignment(pair, combined, weighed, method)


def _alignment(
    pair: WordMaps, combined: WordMap, weighed: NDArray[np.float64] | None, method: AlignmentMethod
) -> Alignment:
    """The alignment of a pair by its ``combined`` map, or by that as a lexical table has ``weighed`` it."""
    whole = combined
    if weighed is not None:
        sharp = supported(weighed, rule_of(method.forward.rule).shares)
        whole = replace(combined, scores=np.pad(sharp, ((0, 0), (0, 1))))
    sentence = whole.sentence
    (source, source_spans), (target, target_spans) = map(_spanned, (sentence.source, sentence.target))
    text = source, target, source_spans, target_spans
    if whole.scores is None:
        return Alignment(*text, [], status=sentence.status, id=sentence.id)
    linked, sure = linked_pair(whole, pair, method)
    sources, targets = np.nonzero(linked)
    links: list[Link] = list(zip(sources.tolist(), targets.tolist()))  # in ascending order
    confidences = {} if sure is None else dict(zip(links, sure[targets, sources].tolist()))
    scores = None if pair[0].sentence.log_probs is None else score_pair(pair, linked, sure)
    maps = None if pair[0].maps is None else ReadMaps(method, pair, combined, weighed, whole)
    return Alignment(*text, links, confidences, scores=scores, id=sentence.id, maps=maps)


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
        )
    if refused := next((sentence.status for sentence in sentences if not sentence.ok), None):
        return replace(whole, links=[], confidences={}, status=refused)
    scores = [sentence.scores for sentence in sentences if sentence.scores is not None]
    words = whole.source_words, whole.target_words
    joined = join_scores(scores, tokens, words, whole.links, whole.confidences) if scores else None
    return replace(whole, scores=joined)
