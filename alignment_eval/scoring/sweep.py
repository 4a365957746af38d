"""Scores every layer and head of recorded maps with every kind, setting and rule, in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval.extraction.method import ExtractionOptions, MapNames
from alignment_eval.extraction.rules import rule_of
from alignment_eval.links.formats import GoldSentence
from alignment_eval.links.read import Texts
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.scoring.aer import Counts, aer, precision, recall
from alignment_eval.scoring.gold_corpus import GoldCorpus, linked_maps

#: The columns of a sweep's table; head <NA> is the whole layer.
COLUMNS = (
    *("kind", "level", "layer", "head", "setting", "rule", "null"),
    *("aer", "precision", "recall", "links", "sure", "links_sure", "links_possible"),
)


@dataclass(frozen=True)
class SweepResult:
    """The table of a sweep, and the sentences without maps (id -> status), which count as empty hypotheses."""

    table: pd.DataFrame
    skipped: Mapping[int, str]


def configurations(
    kinds: Sequence[str], settings: Sequence[str], rules: Sequence[str], final_punctuation: bool = False
) -> list[ExtractionOptions]:
    """All combinations, with every treatment of null that each rule supports; their layer is a placeholder."""
    return [
        ExtractionOptions(kind, MapNames("0"), "mean", setting, rule, null, final_punctuation)
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
    """Score every layer and head of ``sentences`` with each of ``options``.

    Args:
        sentences: the best hypothesis of each sentence, in any order; id k belongs to ``gold[k]``.
        gold: the gold, one entry per sentence.
        options: from :func:`configurations`.
        texts: the lengths of the texts; if given, every sentence must have the same number of words as its text.

    Returns:
        One row per map (the heads of a layer, then the layer itself) and configuration, with :data:`COLUMNS`: AER,
        precision (missing where there are no links) and recall are fractions.
    """
    hits = [np.zeros((1, 1, 3), dtype=np.int64) for _ in options]  # [L, H + 1, 3] each, summed over sentences
    corpus = GoldCorpus(sentences, gold, texts)
    layers: tuple[int, ...] = ()
    for sentence, matrix in corpus:
        layers = sentence.layers
        hits = [summed + matrix.hits(linked) for summed, linked in zip(hits, linked_maps(sentence, options))]
    sure = sum(len(sentence.sure) for sentence in gold)  # of sentences that cannot be aligned, too
    blocks = [_block(option, hit, layers, sure) for option, hit in zip(options, hits)]
    return SweepResult(pd.concat(blocks, ignore_index=True), corpus.skipped)


def _block(option: ExtractionOptions, hits: NDArray[np.int64], layers: Sequence[int], sure: int) -> pd.DataFrame:
    """The rows of one configuration, from its counts [L, H + 1, 3]."""
    heads = hits.shape[1] - 1
    counts = Counts(hits[..., 0].ravel(), np.full(hits[..., 0].size, sure), hits[..., 1].ravel(), hits[..., 2].ravel())
    return pd.DataFrame(
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
