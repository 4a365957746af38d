"""The metrics of a validation: their names, the counts they come from, and how fairseq logs them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from fairseq.logging import metrics

from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import METRICS, Counts

#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}
#: The three counts of a map's links that AER needs; |S| is the same for all maps.
LINKS = ("links", "links_sure", "links_possible")
#: Keys of the other counts of a batch: sure links, scored sentences, failed sentences, sentences of the gold, batches.
SURE, SENTENCES, FAILED = "_aer_sure", "_aer_scored", "_aer_not_scored"
GOLD, BATCHES = "_aer_gold_size", "_aer_batches"


def metric_name(layer: int, kind: str, setting: str) -> str:
    """The name of the AER of a layer's map, such as ``aer_l1_n_awo``."""
    return f"aer_l{layer}_{KIND_LETTERS[kind]}_{setting}"


def mixing_name(block: str, layer: int, kind: str) -> str:
    """The name of a block's mean mixing ratio, ``mixing_decoder_cross_l1_attnres_n``; its sum has a ``_`` before it."""
    return f"mixing_{block.replace('.', '_')}_l{layer}_{kind}"


def positions_key(block: str, layer: int) -> str:
    """The key of the number of positions that a block's mixing ratios are averaged over."""
    return f"_mixing_{block}_{layer}_positions"


@dataclass(frozen=True)
class Figures:
    """The metrics that are logged.

    Attributes:
        extraction: kind, layer and setting of ``aer``.
        layers: decoder layers whose AER is logged.
        mixing: kinds of mixing ratios.
        blocks: the block types whose mixing ratios are logged -> number of layers.
    """

    extraction: ExtractionOptions
    layers: tuple[int, ...]
    mixing: tuple[str, ...]
    blocks: Mapping[str, int]

    @property
    def main(self) -> str:
        """The name of the layer metric that equals ``aer``."""
        (map_,) = self.extraction.heads
        return metric_name(map_.layer, self.extraction.kind, self.extraction.setting)

    def names(self, setting: str) -> list[list[str]]:
        """Names of the AER metrics of a setting, by the axes [layer, kind] of the counts."""
        return [[metric_name(layer, kind, setting) for kind in KIND_LETTERS] for layer in self.layers]

    def mixing_blocks(self) -> Iterator[tuple[str, int]]:
        """Block type and layer of each block whose mixing ratios are logged."""
        for block, count in self.blocks.items() if self.mixing else ():
            yield from ((block, layer) for layer in range(count))

    def mixing_keys(self) -> list[str]:
        """The keys of all counts of mixing ratios."""
        keys = []
        for block, layer in self.mixing_blocks():
            keys += [f"_{mixing_name(block, layer, kind)}" for kind in self.mixing]
            keys.append(positions_key(block, layer))
        return keys

    def log(self, logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Add the counts of ``logging_outputs`` to fairseq's metrics, and the metrics derived from them.

        If monitoring has failed, AER is ``inf``, and other metrics are NaN.
        """
        outputs = [output for output in logging_outputs if BATCHES in output]
        if not outputs:  # a training batch, or a batch of a subset without gold
            return
        for key in outputs[0]:
            if key.startswith(("_aer_", "_mixing_")):
                metrics.log_scalar_sum(key, sum(float(output[key]) for output in outputs))
        metrics.log_derived("aer", partial(_figure, name=self.main, metric="aer"))
        for metric in ("precision", "recall"):
            metrics.log_derived(f"aer_{metric}", partial(_figure, name=self.main, metric=metric))
        for name in (name for setting in SETTINGS for row in self.names(setting) for name in row):
            metrics.log_derived(name, partial(_figure, name=name, metric="aer"))
        for block, layer in self.mixing_blocks():
            for name in (mixing_name(block, layer, kind) for kind in self.mixing):
                metrics.log_derived(name, partial(_mean, total=f"_{name}", count=positions_key(block, layer)))
        metrics.log_derived("aer_sentences", lambda meters: _sum(meters, SENTENCES))
        metrics.log_derived("aer_sentences_gold", lambda meters: _sum(meters, GOLD) // _sum(meters, BATCHES))


def _sum(meters: Any, key: str) -> int:
    # Processes exchange counts as float64, which is exact up to 2 to the power of 53.
    return round(float(meters[key].sum))


def _figure(meters: Any, name: str, metric: str) -> float:
    if _sum(meters, FAILED):
        return math.inf if metric == "aer" else math.nan
    links, links_sure, links_possible = (np.int64(_sum(meters, f"_{name}_{count}")) for count in LINKS)
    counts = Counts(links, np.int64(_sum(meters, SURE)), links_sure, links_possible)  # type: ignore[arg-type]
    return round(float(METRICS[metric](counts)), 6)


def _mean(meters: Any, total: str, count: str) -> float:
    positions = _sum(meters, count)
    if _sum(meters, FAILED) or not positions:
        return math.nan
    return round(float(meters[total].sum) / positions, 6)
