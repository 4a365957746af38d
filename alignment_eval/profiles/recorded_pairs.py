"""Recorded sentence pairs, read in one direction or in two, as :mod:`alignment_eval.extraction.corpus` takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from alignment_eval.errors import InputError
from alignment_eval.extraction.bidirectional import PairWords, words_of
from alignment_eval.extraction.corpus import read_direction
from alignment_eval.extraction.extract import PairMap
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.links.checks import Texts
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.store import Records
from alignment_eval.scoring.gold_corpus import confirmed


def directed_pairs(
    records: Records, reverse: Records | None, method: AlignmentMethod, level: str, texts: Texts | None
) -> Iterator[tuple[PairMap, PairMap | None]]:
    """What the maps of one run or of two say of each sentence pair.

    The pairs that a lexicon is counted on come first; if there are others, the records are read twice.  Otherwise the
    order is that of the first run.

    Raises:
        InputError: see :func:`best_of_each` and :func:`read_direction`; those of the second run name it.
    """
    back: dict[int, PairMap] = {}
    if reverse is not None and method.reverse is not None:
        try:
            exchanged = None if texts is None else texts.exchanged
            sentences = best_of_each(reverse, method.reverse, level, exchanged)
            back = {sentence.id: read_direction(sentence, method.reverse) for sentence in sentences}
        except InputError as error:
            raise InputError(f"{reverse.directory}: {error}") from error
    first = method.lexicon_pairs if method.lexicon_passes else records.info.size
    for ids in (range(first), range(first, records.info.size)):
        for sentence in best_of_each(records, method.forward, level, texts) if ids else ():
            if sentence.id in ids:
                yield read_direction(sentence, method.forward), back.get(sentence.id)


def best_of_each(
    records: Records, options: ExtractionOptions, level: str, texts: Texts | None
) -> Iterator[SentenceMaps]:
    """The best hypothesis of every sentence; with level ``token`` its tokens pass for words.

    Raises:
        InputError: a sentence has other words than its ``texts``, or the records lack a layer that is to be read.
    """
    for sentence in records.best():
        for name in options.maps:
            sentence.layer_index(name.layer)  # an unknown layer is an error even if all sentences were skipped
        checked = sentence if texts is None else confirmed(sentence, texts)
        yield checked.by_tokens() if level == "token" else checked


def with_words(
    pairs: Iterable[tuple[PairMap, PairMap | None]], words: dict[int, tuple[PairWords, PairWords | None]]
) -> Iterator[tuple[PairMap, PairMap | None]]:
    """The same pairs; the words of those that can be aligned are put into ``words`` as they pass."""
    for forward, reverse in pairs:
        if forward.scores is not None and (reverse is None or reverse.scores is not None):
            other = None if reverse is None else words_of(reverse.sentence)
            words[forward.sentence.id] = words_of(forward.sentence), other
        yield forward, reverse
