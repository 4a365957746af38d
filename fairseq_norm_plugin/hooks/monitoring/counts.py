"""Counts for AER and mixing ratios of a validation batch, from the criterion's own forward pass.

A batch adds plain counts to fairseq's logging output, so that sums over batches and processes are exact.  fairseq does
not print keys that begin with ``_``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose
from alignment_eval.maps.words import SETTINGS
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, real_positions
from fairseq_norm_plugin.hooks.monitoring.gold import GOLD_KEY, GoldPair
from fairseq_norm_plugin.hooks.monitoring.metrics import (
    BATCHES,
    FAILED,
    GOLD,
    KIND_LETTERS,
    LINKS,
    SENTENCES,
    SURE,
    Figures,
    mixing_name,
    positions_key,
)
from fairseq_norm_plugin.hooks.monitoring.options import MonitorOptions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import mixing_ratio

logger = logging.getLogger(__name__)

Tally = dict[str, float]

_QUANTITIES = ("head_attn_w", "layer_attn_n")


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
        return {**self._frame(pairs, scored=True), **self._by_name(hits)}

    def failed(self, sample: dict[str, Any]) -> Tally:
        """The counts of a batch whose maps could not be computed."""
        nothing = self._by_name(dict.fromkeys(SETTINGS, self._no_hits))
        mixing = dict.fromkeys(self.figures.mixing_keys(), 0)
        return {**self._frame(sample[GOLD_KEY], scored=False), **nothing, **mixing}

    @property
    def _no_hits(self) -> NDArray[np.int64]:
        return np.zeros((len(self._layers), len(KIND_LETTERS), len(LINKS)), dtype=np.int64)

    def _frame(self, pairs: Sequence[GoldPair], scored: bool) -> Tally:
        return {
            SURE: sum(pair.sure for pair in pairs),
            SENTENCES: len(pairs) if scored else 0,
            FAILED: 0 if scored else len(pairs),
            GOLD: pairs[0].gold_size,
            BATCHES: 1,
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
