"""Choosing a whole method by AER on a development gold: maps of both directions, rule, join and lexicon.

The greedy search (:mod:`alignment_eval.selection.search`) finds sets of maps of each direction alone.  Rules, joins and
a lexicon are tried on top of the best few sets of each.  Every figure is that of the links which
:func:`alignment_eval.extraction.corpus.align_corpus` draws, so ``extract`` and ``norm-align`` reach it exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import product

import numpy as np

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.bidirectional import check_same_text, words_of
from alignment_eval.extraction.corpus import DirectedLinks, align_corpus, read_direction
from alignment_eval.extraction.defaults import FEWEST_PAIRS
from alignment_eval.extraction.method import JOINS, AlignmentMethod, BidirectionalOptions
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.formats.checks import Texts
from alignment_eval.links.table import GoldSentence, transpose
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.progress import Progress, no_progress
from alignment_eval.scoring.gold_corpus import GoldCorpus, aer_of, confirmed
from alignment_eval.selection.search import Selection, SelectionOptions, select


@dataclass(frozen=True)
class ScoredMethod:
    """A method, its AER on the development gold (a fraction), and of how many methods it is the best."""

    method: AlignmentMethod
    aer: float
    candidates: int = 1


@dataclass(frozen=True)
class GoldChoice:
    """What was chosen for each use.

    Attributes:
        forward: the search among the maps of the source-target model.
        streamed: the best method without a lexicon, for single pairs: the choice of ``forward``.
        alone: the best method with a lexicon or without, for texts.
        reverse: the search among the maps of the target-source model; None without one.
        both: the best method of the two models; None without a second one.
    """

    forward: Selection
    streamed: ScoredMethod
    alone: ScoredMethod
    reverse: Selection | None = None
    both: ScoredMethod | None = None


def choose_by_gold(
    sentences: Sequence[SentenceMaps],
    gold: Sequence[GoldSentence],
    options: SelectionOptions,
    texts: Texts | None = None,
    reverse: Sequence[SentenceMaps] = (),
    passes: int = 0,
    progress: Progress = no_progress,
) -> GoldChoice:
    """Choose the methods of a profile by AER on a development gold.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: the development gold, one entry a sentence.
        options: what the greedy search of each direction chooses among.
        texts: the lengths of the texts; with them every sentence must have the same number of words.
        reverse: the same sentences of a model of the other direction, if there is one.
        passes: passes over a lexicon of these sentences; 0: none is tried.
        progress: goes through what is tried.

    Raises:
        UsageError: ``passes`` is negative, or no rule fits two directions.
        InputError: as :func:`alignment_eval.selection.search.select` and :class:`MethodScorer`, or there are too few
            sentences for a lexicon.
    """
    check_lexicon_pairs(passes, len(gold))
    forward = select(sentences, gold, options, texts, progress)
    streamed = ScoredMethod(AlignmentMethod(forward.choice.extraction), forward.choice.figure, forward.candidates)
    found = GoldChoice(forward, streamed, streamed)
    if not (passes or reverse):
        return found
    scorer = MethodScorer(sentences, gold, texts, reverse, progress)
    maps = [candidate.extraction for candidate in forward.finalists]
    if passes:
        found = replace(found, alone=scorer.best(one_direction_methods(maps, options.configurations, passes), streamed))
    if not reverse:
        return found
    exchanged = [GoldSentence(transpose(one.sure), transpose(one.possible)) for one in gold]
    back = select(reverse, exchanged, options, None if texts is None else texts.exchanged, progress)
    others = [candidate.extraction for candidate in back.finalists]
    both = scorer.best(two_direction_methods(maps, others, options.configurations, passes))
    return replace(found, reverse=back, both=both)


class MethodScorer:
    """The AER of methods on a development gold.  What one direction says under one extraction is read once.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: the development gold, one entry a sentence.
        texts: the lengths of the texts; with them every sentence must have the same number of words.
        reverse: the same sentences of a model of the other direction, if there is one.
        progress: goes through the methods that are compared.

    Raises:
        InputError: as :class:`alignment_eval.scoring.gold_corpus.GoldCorpus`; a sentence is missing in the other
            direction, or the two directions are of other texts.
    """

    def __init__(
        self,
        sentences: Iterable[SentenceMaps],
        gold: Sequence[GoldSentence],
        texts: Texts | None = None,
        reverse: Iterable[SentenceMaps] = (),
        progress: Progress = no_progress,
    ) -> None:
        self._progress = progress
        corpus = GoldCorpus(sentences, gold, texts)
        beside = list(corpus)
        self._gold = {sentence.id: matrix for sentence, matrix in beside}
        self._sure = corpus.sure
        exchanged = None if texts is None else texts.exchanged
        back = [back if exchanged is None else confirmed(back, exchanged) for back in reverse if back.id in self._gold]
        self._sides = [sentence for sentence, _ in beside], back
        self._read = cache(self._read_side)
        if self._sides[1]:
            self._check_reverse()

    def aer(self, method: AlignmentMethod) -> float:
        """The AER of the links of a method; a sentence without maps in a direction counts as an empty hypothesis.

        Raises:
            InputError: as :func:`alignment_eval.extraction.corpus.align_corpus`.
        """
        forward = self._read(0, method.forward)
        back = {} if method.reverse is None else self._read(1, method.reverse)
        pairs = ((links, back.get(id_)) for id_, links in forward.items())
        hits = [
            self._gold[pair.id].hits(pair.links.linked)
            for pair in align_corpus(pairs, method)
            if pair.links is not None
        ]
        return float(aer_of(reduce(np.add, hits, np.zeros(3, dtype=np.int64)), self._sure))

    def best(self, methods: Iterable[AlignmentMethod], first: ScoredMethod | None = None) -> ScoredMethod:
        """The method of the lowest AER; of equal ones that of fewer maps, then the first.

        Args:
            methods: the methods to compare.
            first: a method whose figure is known, to compare with.

        Raises:
            UsageError: there is none.
        """
        compared = list(methods)
        each = self._progress(compared, len(compared), "methods")
        scored = [*([] if first is None else [first]), *(ScoredMethod(method, self.aer(method)) for method in each)]
        if not scored:
            raise UsageError("no rule fits any join of two directions: expected a rule of words, such as two-way=0.4")
        least = min(scored, key=lambda candidate: (candidate.aer, _size(candidate.method)))
        return replace(least, candidates=sum(candidate.candidates for candidate in scored))

    def _read_side(self, side: int, options: ExtractionOptions) -> dict[int, DirectedLinks]:
        return {sentence.id: read_direction(sentence, options) for sentence in self._sides[side]}

    def _check_reverse(self) -> None:
        forward, back = ({sentence.id: sentence for sentence in side} for side in self._sides)
        if lacking := sorted(forward.keys() - back.keys()):
            raise InputError(
                f"sentence {lacking[0]} has no counterpart in the other direction: expected records of the same "
                f"sentence pairs, source and target exchanged"
            )
        both = [(sentence, back[id_]) for id_, sentence in forward.items() if back[id_].ok]
        check_same_text((words_of(sentence), words_of(other)) for sentence, other in both)


def _size(method: AlignmentMethod) -> int:
    return len(method.forward.maps) + (0 if method.reverse is None else len(method.reverse.maps))


def check_lexicon_pairs(passes: int, pairs: int) -> None:
    """Check that a lexicon of the development text may be part of a choice.

    Raises:
        UsageError: ``passes`` is negative.
        InputError: the text has so few pairs that a profile's lexicon is not counted on such texts.
    """
    if passes < 0:
        raise UsageError(f"--lexicon {passes}: expected a number of passes, 1 or more, or 0 for no lexicon")
    if passes and pairs < FEWEST_PAIRS:
        raise InputError(
            f"a lexicon of {pairs} sentence pairs: a text of fewer than {FEWEST_PAIRS} pairs is aligned without one, "
            f"so it cannot be chosen on so few: expected more pairs, or no --lexicon"
        )


def one_direction_methods(
    maps: Sequence[ExtractionOptions], rules: Sequence[ExtractionOptions], passes: int
) -> Iterator[AlignmentMethod]:
    """Each of ``maps`` with each rule that can read a map which a lexicon has reweighted, and such a lexicon."""
    for one, rule in product(maps, _different(rules)):
        with suppress(UsageError):  # a rule that reads no word maps
            yield AlignmentMethod(_with_rule(one, rule), lexicon_passes=passes)


def two_direction_methods(
    forward: Sequence[ExtractionOptions],
    reverse: Sequence[ExtractionOptions],
    rules: Sequence[ExtractionOptions],
    passes: int,
) -> Iterator[AlignmentMethod]:
    """Each pair of maps with each rule and join that go together; without a lexicon and, if there is one, with it.

    Args:
        forward: sets of maps of the source-target model.
        reverse: those of the target-source model.
        rules: rules, each with its null and its final punctuation; their maps are not read.
        passes: passes over a lexicon; 0: none is tried.
    """
    for one, other, rule, join, lexicon in product(forward, reverse, _different(rules), JOINS, sorted({0, passes})):
        with suppress(UsageError):  # a rule that does not fit the join or the lexicon
            both = BidirectionalOptions(join=join)
            yield AlignmentMethod(_with_rule(one, rule), _with_rule(other, rule), both, lexicon)


def _with_rule(maps: ExtractionOptions, rule: ExtractionOptions) -> ExtractionOptions:
    return replace(maps, rule=rule.rule, null=rule.null, final_punctuation=rule.final_punctuation)


def _different(rules: Sequence[ExtractionOptions]) -> list[ExtractionOptions]:
    """One extraction of each rule."""
    return list({(option.rule, option.null, option.final_punctuation): option for option in rules}.values())
