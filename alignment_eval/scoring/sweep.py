"""AER of every layer and head of recorded maps under every kind, setting and rule, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose_units, stacked_maps, unit_maps
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import rule_of
from alignment_eval.formats.checks import Texts
from alignment_eval.links.table import GoldSentence, Links
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.scoring.aer import Counts, aer, precision, recall

#: The columns of a sweep's table; a head of <NA> is the whole layer.
COLUMNS = (
    *("kind", "level", "layer", "head", "setting", "rule", "null"),
    *("aer", "precision", "recall", "links", "sure", "links_sure", "links_possible"),
)


@dataclass(frozen=True)
class SweepResult:
    """The table of a sweep, and why sentences had no maps (id -> status); those count as empty hypotheses."""

    table: pd.DataFrame
    skipped: Mapping[int, str]


def configurations(
    kinds: Sequence[str], settings: Sequence[str], rules: Sequence[str], final_punctuation: bool = False
) -> list[ExtractionOptions]:
    """All combinations, each rule with every treatment of null that it knows; their layer means nothing.

    Raises:
        UsageError: an unknown name.
    """
    return [
        ExtractionOptions(kind, 0, None, setting, rule, null, final_punctuation)
        for kind in kinds
        for setting in settings
        for rule in rules
        for null in rule_of(rule).nulls
    ]


def sweep(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    options: Sequence[ExtractionOptions],
    texts: Texts | None = None,
) -> SweepResult:
    """Score every layer and head of ``sentences`` under each of ``options``.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: the gold, one entry a sentence.
        options: from :func:`configurations`.
        texts: the lengths of the texts; with them every sentence must have as many words.

    Returns:
        One row a map (the heads of a layer, then the layer itself) and configuration, with :data:`COLUMNS`: AER,
        precision (missing where there are no links) and recall are fractions.

    Raises:
        InputError: ids are not those of the gold, a sentence has fewer words than the gold links or not those of
            the texts, no sentence has maps, or one of the errors of :func:`alignment_eval.extraction.extract.extract`.
    """
    hits = [np.zeros((1, 1, 3), dtype=np.int64) for _ in options]  # [L, H + 1, 3] each, summed over sentences
    skipped: dict[int, str] = {}
    layers: tuple[int, ...] = ()
    for sentence in scorable(sentences, gold, texts, skipped):
        layers = sentence.layers
        _count(sentence, gold[sentence.id], options, hits)
    sure = sum(len(sentence.sure) for sentence in gold)
    blocks = [_block(option, hit, layers, sure) for option, hit in zip(options, hits)]
    return SweepResult(pd.concat(blocks, ignore_index=True), skipped)


def scorable(
    sentences: Iterable[SentenceMaps], gold: Sequence[GoldSentence], texts: Texts | None, skipped: dict[int, str]
) -> Iterator[SentenceMaps]:
    """The sentences that have maps, once all is checked; the others go to ``skipped``, id -> status.

    Raises:
        InputError: ids are not those of the gold, a sentence has fewer words than the gold links or not those of
            the texts, or no sentence has maps.
    """
    seen: set[int] = set()
    for sentence in sentences:
        check_id(sentence.id, seen, gold)
        if sentence.ok:
            check_words(sentence, gold[sentence.id], texts)
            yield sentence
        else:
            skipped[sentence.id] = sentence.status
    if len(seen) != len(gold):
        raise InputError(f"{len(seen)} sentences in the records, {len(gold)} in the gold: expected as many of each")
    if len(skipped) == len(seen):
        raise InputError("no sentence has maps: expected some to score; see the reasons in the records' status column")


def check_words(sentence: SentenceMaps, gold: GoldSentence, texts: Texts | None = None) -> None:
    """Check that the words of ``sentence`` cover its gold and, if given, are as many as in its texts.

    Raises:
        InputError: the gold links a word that is not there, or a text has more or fewer words.
    """
    where = f"sentence {sentence.id} (line {sentence.id + 1})"
    advice = "was the BPE mark right (--norm-subword-mark)? is this the same text, the direction swapped?"
    for axis, side in enumerate(("source", "target")):
        found = getattr(sentence, side).word_count
        largest = max((link[axis] for link in gold.possible), default=-1)
        if largest >= found:
            raise InputError(
                f"{where}: {found} {side} words in the records, but the gold links {side} word {largest} "
                f"(counted from 0): expected at least {largest + 1}; {advice}"
            )
        if texts is not None and found != (words := texts.sides(swap=False)[axis][sentence.id]):
            name = (texts.source_name, texts.target_name)[axis]
            raise InputError(
                f"{where}: {found} {side} words in the records, {words} in {name}: expected as many; {advice}"
            )


@dataclass(frozen=True, eq=False)
class GoldMatrix:
    """The gold of one sentence as matrices [source words, target words]."""

    sure: NDArray[np.bool_]
    possible: NDArray[np.bool_]

    @classmethod
    def of(cls, gold: GoldSentence, sentence: SentenceMaps) -> GoldMatrix:
        """The gold of ``sentence``."""
        shape = sentence.source.word_count, sentence.target.word_count
        return cls(_matrix(gold.sure, shape), _matrix(gold.possible, shape))

    def hits(self, linked: NDArray[np.bool_]) -> NDArray[np.int64]:
        """|A|, |A∩S| and |A∩P|, [..., 3], of hypotheses [..., source words, target words]."""
        flat = linked.reshape(*linked.shape[:-2], -1)
        return np.stack(
            [
                flat.sum(axis=-1),
                flat[..., self.sure.ravel()].sum(axis=-1),
                flat[..., self.possible.ravel()].sum(axis=-1),
            ],
            axis=-1,
        )


def aer_of(hits: NDArray[np.int64], sure: int) -> NDArray[np.float64]:
    """AER [...] of hits [..., 3] summed over a corpus with so many sure links."""
    return aer(Counts(hits[..., 0], np.full(hits.shape[:-1], sure), hits[..., 1], hits[..., 2]))


def _count(
    sentence: SentenceMaps, gold: GoldSentence, options: Sequence[ExtractionOptions], hits: list[NDArray[np.int64]]
) -> None:
    matrix = GoldMatrix.of(gold, sentence)
    maps = cache(partial(stacked_maps, sentence))
    units = cache(lambda kind, setting, units: unit_maps(maps(kind), sentence, setting, units))
    for k, option in enumerate(options):
        read = units(option.kind, option.setting, rule_of(option.rule).units)
        hits[k] = hits[k] + matrix.hits(choose_units(read, sentence, option).linked(*matrix.sure.shape))


def _matrix(links: Links, shape: tuple[int, int]) -> NDArray[np.bool_]:
    matrix = np.zeros(shape, dtype=np.bool_)
    for i, j in links:
        matrix[i, j] = True
    return matrix


def check_id(id_: int, seen: set[int], gold: Sequence[GoldSentence]) -> None:
    """Check that sentence ``id_`` has gold and is none of ``seen``, and add it to them.

    Raises:
        InputError: it has none, or is there twice.
    """
    if id_ in seen or not 0 <= id_ < len(gold):
        what = "is there twice" if id_ in seen else f"has no gold, which has {len(gold)} sentences"
        raise InputError(f"sentence {id_} {what}: expected each id from 0 to {len(gold) - 1} once")
    seen.add(id_)


def _block(option: ExtractionOptions, hits: NDArray[np.int64], layers: Sequence[int], sure: int) -> pd.DataFrame:
    """The rows of one configuration, from its counts [L, H + 1, 3]."""
    heads = hits.shape[1] - 1
    counts = Counts(hits[..., 0].ravel(), np.full(hits[..., 0].size, sure), hits[..., 1].ravel(), hits[..., 2].ravel())
    block = pd.DataFrame(
        {
            "kind": option.kind,
            "level": (["head"] * heads + ["layer"]) * len(layers),
            "layer": np.repeat(layers, heads + 1),
            "head": pd.array([*range(heads), pd.NA] * len(layers), dtype="Int64"),
            "setting": option.setting,
            "rule": option.rule,
            "null": option.null,
            "aer": aer(counts),
            "precision": precision(counts),
            "recall": recall(counts),
            "links": counts.hypothesis,
            "sure": counts.sure,
            "links_sure": counts.hypothesis_sure,
            "links_possible": counts.hypothesis_possible,
        }
    )
    return block[list(COLUMNS)]
