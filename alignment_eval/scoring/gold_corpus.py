"""Pairs recorded sentences with their gold, for sweep and report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import in_units, links_by_rule, stacked_maps
from alignment_eval.extraction.method import ExtractionOptions, rule_of
from alignment_eval.links.files import Texts
from alignment_eval.links.formats import GoldSentence, Links, check_inside
from alignment_eval.maps.sentence import SentenceMaps


@dataclass(frozen=True, eq=False)
class GoldMatrix:
    """The gold of one sentence as matrices [source words, target words]."""

    sure: NDArray[np.bool_]
    possible: NDArray[np.bool_]

    @classmethod
    def of(cls, gold: GoldSentence, sentence: SentenceMaps) -> GoldMatrix:
        """The gold of ``sentence``."""
        sure, possible = np.zeros((2, sentence.source.word_count, sentence.target.word_count), dtype=np.bool_)
        for matrix, links in ((sure, gold.sure), (possible, gold.possible)):
            for link in links:
                matrix[link] = True
        return cls(sure, possible)

    def hits(self, linked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """|A|, |A∩S| and |A∩P|, [..., 3], for hypotheses [..., source words, target words]."""
        flat = linked.reshape(*linked.shape[:-2], -1)
        among = (flat, flat[..., self.sure.ravel()], flat[..., self.possible.ravel()])
        return np.stack([links.sum(axis=-1) for links in among], axis=-1)


def with_gold(
    sentences: Iterable[SentenceMaps], gold: Sequence[GoldSentence], texts: Texts | None = None
) -> Iterator[tuple[SentenceMaps, GoldMatrix | None]]:
    """Each sentence, checked, with its gold; None: it cannot be aligned.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: an entry per sentence.
        texts: the lengths of the texts; if given, every sentence must have the same number of words as its text.
    """
    seen: set[int] = set()
    size, aligned = len(gold), 0
    for unchecked in sentences:
        if (id_ := unchecked.id) in seen or not 0 <= id_ < size:
            what = "is a duplicate" if id_ in seen else f"has no gold (the gold has {size} sentences)"
            raise InputError(f"sentence {id_} {what}; the records must have each id from 0 to {size - 1} once")
        seen.add(id_)
        sentence = unchecked if texts is None else confirmed_by_texts(unchecked, texts)
        if not sentence.ok:
            yield sentence, None
            continue
        aligned += 1
        check_links(gold[id_].possible, sentence, "gold")
        yield sentence, GoldMatrix.of(gold[id_], sentence)
    if len(seen) != size:
        raise InputError(
            f"the records have {len(seen)} sentences, the gold has {size}; give records and gold of the same text"
        )
    if not aligned:
        raise InputError("no sentence has maps that could be scored; the records' column 'status' says why")


def confirmed_by_texts(sentence: SentenceMaps, texts: Texts) -> SentenceMaps:
    """Check a sentence against the lengths of its texts.

    A sentence whose words are not certain gets status ``ok`` if both texts have the same number of words as the
    sentence.  This is safe: an unknown subword that is counted wrongly can only add words (``@@``, ``##``) or only
    remove words (``▁``).
    """
    names = (texts.source_name, texts.target_name)
    expected = [int(side[sentence.id]) for side in (texts.source, texts.target)]
    found = [sentence.source.word_count, sentence.target.word_count]
    for axis, side in enumerate(("source", "target")):
        if sentence.ok and found[axis] != expected[axis]:
            has = f"has {found[axis]} {side} words in the records, but {expected[axis]} in {names[axis]}"
            advice = "check text, direction and subword marker (--norm-subword-mark)"
            raise InputError(f"sentence {sentence.id} (line {sentence.id + 1}) {has}; {advice}")
    return sentence.confirmed() if found == expected else sentence


def check_links(links: Links, sentence: SentenceMaps, where: str) -> None:
    """Check that ``links``, which were read at ``where``, are inside the sentence; raises InputError if not."""
    try:
        check_inside(links, (sentence.source.word_count, sentence.target.word_count))
    except InputError as error:
        place = f"{where}: sentence {sentence.id} (line {sentence.id + 1})"
        raise InputError(f"{place}: {error} (--norm-subword-mark)") from None


def linked_maps(sentence: SentenceMaps, options: Iterable[ExtractionOptions]) -> Iterator[NDArray[np.bool_]]:
    """The links of every map of a sentence under each of ``options``: [L, H + 1, source words, target words].

    The layer's own map is at the last head index.  Layers and heads of ``options`` are ignored.
    """
    maps = cache(partial(stacked_maps, sentence))
    scores = cache(lambda kind, setting, units: in_units(maps(kind), sentence, setting, units))
    for option in options:
        yield links_by_rule(scores(option.kind, option.setting, rule_of(option.rule).units), sentence, option)
