"""AER and mixing ratios of a validation: counts from the criterion's own forward passes, and metrics from their sums.

A batch adds plain counts to fairseq's logging output, so that sums over batches and processes are exact.  fairseq does
not print keys that begin with ``_``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from fairseq.logging import metrics
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import METRICS, Counts
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, real_positions
from fairseq_norm_plugin.hooks.monitoring.gold import GOLD_KEY, NUMBERED, GoldPair, log_number
from fairseq_norm_plugin.hooks.monitoring.options import MonitorOptions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import mixing_ratio

Tally = dict[str, float]

_QUANTITIES = ("head_attn_w", "layer_attn_n")
#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}
#: The three counts of a map's links that AER needs; |S| is the same for all maps.
LINKS = ("links", "links_sure", "links_possible")
#: Keys of the other counts of a batch: sure links, scored sentences, failed sentences, sentences of the gold, batches.
SURE, SENTENCES, FAILED = "_aer_sure", "_aer_scored", "_aer_not_scored"
GOLD, BATCHES = "_aer_gold_size", "_aer_batches"
#: Key of the number of sentences that count as having no links, because their words are not certain.
UNALIGNED = "_aer_without_words"


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

    def choosable(self) -> list[str]:
        """The names of the metrics that can choose the best checkpoint."""
        every = [name for setting in SETTINGS for row in self.names(setting) for name in row]
        return ["aer", "aer_precision", "aer_recall", *sorted(every)]

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
        metrics.log_derived("aer_sentences_gold", partial(_same, key=GOLD))
        metrics.log_derived("aer_unaligned", lambda meters: _sum(meters, UNALIGNED))
        for name in NUMBERED:
            metrics.log_derived(name, partial(_same, key=f"_{name}"))
        method = log_number(self.extraction.fields())
        metrics.log_derived("aer_method", lambda meters: method)


class Monitor:
    """Counts validation batches that have gold, and derives the metrics from the counts.

    Args:
        options: what is monitored.
        blocks: the block types whose mixing ratios are logged, with their numbers of layers.
        pads: the padding symbols of source and target.
    """

    def __init__(self, options: MonitorOptions, blocks: dict[str, int], pads: tuple[int, int]) -> None:
        self.options = options
        self._pads = pads
        self._layers = tuple(range(options.layers))
        self._recorded = RecordedMaps(self._layers, _QUANTITIES)
        self._extractions = {setting: replace(options.extraction, setting=setting) for setting in SETTINGS}
        self.figures = Figures(options.extraction, self._layers, options.mixing, blocks)

    @contextmanager
    def listening(self, criterion: Any) -> Iterator[list[Callable[[], Tally]]]:
        """Record the passes that ``criterion`` makes in the block; gives a function for each that counts its maps."""
        tallies: list[Callable[[], Tally]] = []
        forward = criterion.forward

        def recorded(model: nn.Module, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
            first_pass = any(getattr(module, "full_context_alignment", False) for module in model.modules())
            recorder = Recorder(model, self._recorded, sample, first_pass)
            mixing = self._mixing_captures(sample, first_pass)
            with capturing(norm_attentions(model), *recorder.captures, *mixing):
                result = forward(model, sample, *args, **kwargs)

            def tally() -> Tally:
                sums = {key: value for capture in mixing for taken in capture.take() for key, value in taken.items()}
                return {**self.count(sample, recorder.take()), **sums}

            tallies.append(tally)
            return result

        criterion.forward = recorded
        try:
            yield tallies
        finally:
            del criterion.forward

    def count(self, sample: dict[str, Any], quantities: Sequence[dict[str, Tensor]]) -> Tally:
        """The counts of a batch with gold, from its recorded quantities, one dictionary per layer."""
        pairs: list[GoldPair] = sample[GOLD_KEY]
        maps = BatchMaps()
        maps.add(quantities)
        tokens = (sample["net_input"]["src_tokens"], sample["target"])
        slices = [real_positions(ids, pad) for ids, pad in zip(tokens, self._pads)]
        hits = dict.fromkeys(SETTINGS, self._no_hits)
        for pair, arrays in zip(pairs, maps.sentences(*slices)):
            if pair.gold is None:
                continue
            sentence = replace(pair.sentence, layers=self._layers, arrays=arrays)
            stacked = np.stack([sentence.layer_maps(kind) for kind in KIND_LETTERS], axis=1)  # [L, kinds, T, S]
            if not np.isfinite(stacked).all():
                raise InputError(f"sentence {sentence.id}: the maps hold NaN or infinite values")
            for setting, extraction in self._extractions.items():
                linked = choose(stacked, sentence, extraction)
                hits[setting] = hits[setting] + pair.gold.hits(linked)
        return {**self._totals(pairs, scored=True), **self._by_name(hits)}

    def failed(self, sample: dict[str, Any]) -> Tally:
        """The counts of a batch whose maps could not be computed."""
        nothing = self._by_name(dict.fromkeys(SETTINGS, self._no_hits))
        mixing = dict.fromkeys(self.figures.mixing_keys(), 0)
        return {**self._totals(sample[GOLD_KEY], scored=False), **nothing, **mixing}

    @property
    def _no_hits(self) -> NDArray[np.int64]:
        return np.zeros((len(self._layers), len(KIND_LETTERS), len(LINKS)), dtype=np.int64)

    def _totals(self, pairs: Sequence[GoldPair], scored: bool) -> Tally:
        return {
            SURE: sum(pair.sure for pair in pairs),
            SENTENCES: len(pairs) if scored else 0,
            FAILED: 0 if scored else len(pairs),
            GOLD: pairs[0].gold_size,
            BATCHES: 1,
            UNALIGNED: sum(pair.gold is None for pair in pairs),
            **{f"_{name}": pairs[0].numbers.get(name, 0) for name in NUMBERED},
        }

    def _by_name(self, hits: dict[str, NDArray[np.int64]]) -> Tally:
        return {
            f"_{name}_{count}": int(value)
            for setting in SETTINGS
            for row, values in zip(self.figures.names(setting), hits[setting])
            for name, counts in zip(row, values)
            for count, value in zip(LINKS, counts)
        }

    def _mixing_captures(self, sample: dict[str, Any], first_pass: bool) -> list[MapCapture[Tally]]:
        source = sample["net_input"]["src_tokens"].ne(self._pads[0])
        target = sample["target"].ne(self._pads[1])
        captures = []
        for type_, layer in self.figures.mixing_blocks():
            positions = mixing_positions(type_, source if type_ == ENCODER_SELF else target)
            sums = partial(self._mixing_of, layer=layer, type_=type_, positions=positions)
            captures.append(MapCapture(type_, [layer], sums, first_pass=first_pass))
        return captures

    def _mixing_of(self, block: Block, layer: int, type_: str, positions: Tensor) -> Tally:
        sums = {}
        for kind in self.options.mixing:
            ratios = mixing_ratio(block, kind).double()[positions]
            sums[f"_{mixing_name(type_, layer, kind)}"] = float(ratios.sum())
        return {**sums, positions_key(type_, layer): int(positions.sum())}


def monitored_layers(model: nn.Module) -> dict[str, int]:
    """Block type -> number of layers, for the blocks of ``model`` that have maps."""
    counts = dict.fromkeys(BLOCK_TYPES, 0)
    for attention in norm_attentions(model):
        attention.site.weights()
        counts[attention.site.block] += 1
    return {type_: count for type_, count in counts.items() if count}


def _sum(meters: Any, key: str) -> int:
    # Processes exchange counts as float64, which is exact up to 2 to the power of 53.
    return round(float(meters[key].sum))


def _same(meters: Any, key: str) -> int:
    """A number that is the same in all batches."""
    return _sum(meters, key) // _sum(meters, BATCHES)


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
