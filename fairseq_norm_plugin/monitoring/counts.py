"""AER and mixing ratios of a validation: counted a batch, from the criterion's own forward pass; summed; derived.

What a batch adds to fairseq's logging output are plain counts, so that their sums over batches and processes are
exact; keys that begin with ``_`` are not printed.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from fairseq.logging import metrics
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import choose
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import METRICS, Counts
from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.capturing import MapCapture, capturing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, real_positions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import mixing_ratio
from fairseq_norm_plugin.monitoring.gold import GOLD_KEY, GoldPair
from fairseq_norm_plugin.monitoring.options import MonitorOptions

logger = logging.getLogger(__name__)

Tally = dict[str, float]

#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}
_QUANTITIES = ("head_attn_w", "layer_attn_n")
#: The three counts of a map's links, as AER needs them; |S| is the same for all.
_LINKS = ("links", "links_sure", "links_possible")
_SURE, _SENTENCES, _FAILED = "_aer_sure", "_aer_scored", "_aer_not_scored"
_GOLD, _BATCHES = "_aer_gold_size", "_aer_batches"


def metric_name(layer: int, kind: str, setting: str) -> str:
    """The name of the AER of a layer's map: ``aer_l1_n_awo``."""
    return f"aer_l{layer}_{KIND_LETTERS[kind]}_{setting}"


class Listening:
    """A criterion that takes down what its forward pass shows; call it as the criterion itself.

    Args:
        criterion: fairseq's.
        monitor: what is to be taken down.
    """

    def __init__(self, criterion: Any, monitor: Monitor) -> None:
        self._criterion = criterion
        self._monitor = monitor
        self.tally: Callable[[], Tally] | None = None

    def __call__(self, model: nn.Module, sample: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """The criterion's loss; afterwards :attr:`tally` gives the counts."""
        result, self.tally = self._monitor.observe(self._criterion, model, sample, *args, **kwargs)
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._criterion, name)


class Monitor:
    """Counts of validation batches that hold gold, and the metrics that follow from them.

    Args:
        options: what is monitored.
        layers: number of layers of each block type that mixing ratios are logged of.
        pads: the padding symbols of source and target.
    """

    def __init__(self, options: MonitorOptions, layers: dict[str, int], pads: tuple[int, int]) -> None:
        self.options = options
        self._layers = layers
        self._pads = pads
        self._recorded = RecordedMaps(options.layers, _QUANTITIES)
        self._extractions = {setting: replace(options.extraction, setting=setting) for setting in SETTINGS}
        #: Names of the maps, in the order of axes [layer, kind] and of settings.
        self._names = {
            setting: [[metric_name(layer, kind, setting) for kind in KIND_LETTERS] for layer in options.layers]
            for setting in SETTINGS
        }

    @property
    def main_metric(self) -> str:
        """The name of the layer's metric that ``aer`` is the same as."""
        extraction = self.options.extraction
        assert extraction.layer is not None
        return metric_name(extraction.layer, extraction.kind, extraction.setting)

    # -- counts of a batch -------------------------------------------------------------------------------------

    def observe(
        self, criterion: Any, model: nn.Module, sample: dict[str, Any], *args: Any, **kwargs: Any
    ) -> tuple[Any, Callable[[], Tally]]:
        """Run the criterion; its result, and what counts the maps of that pass.

        Raises:
            InputError: the model lacks blocks that are asked for.
        """
        first_pass = any(getattr(module, "full_context_alignment", False) for module in model.modules())
        recorder = Recorder(model, self._recorded, sample, first_pass)
        mixing = self._mixing_captures(sample, first_pass)
        with ExitStack() as stack:
            stack.enter_context(capturing(norm_attentions(model), *recorder.captures, *mixing))
            result = criterion(model, sample, *args, **kwargs)
        return result, lambda: {**self.count(sample, recorder.take()), **_mixing_sums(mixing)}

    def count(self, sample: dict[str, Any], quantities: Sequence[dict[str, Tensor]]) -> Tally:
        """The counts of a batch.

        Args:
            sample: the batch, with gold.
            quantities: what was recorded of it, a dictionary a layer.

        Raises:
            InputError: a map holds NaN or infinite values, or is not of its sentence's size.
        """
        pairs: list[GoldPair] = sample[GOLD_KEY]
        maps = BatchMaps()
        maps.add(quantities)
        tokens = (sample["net_input"]["src_tokens"], sample["target"])
        slices = [real_positions(ids, pad) for ids, pad in zip(tokens, self._pads)]
        hits = {setting: np.zeros((), dtype=np.int64) for setting in SETTINGS}
        for pair, arrays in zip(pairs, maps.sentences(*slices)):
            sentence = replace(pair.sentence, layers=self.options.layers, arrays=arrays)
            stacked = np.stack([sentence.layer_maps(kind) for kind in KIND_LETTERS], axis=1)  # [L, kinds, T, S]
            if not np.isfinite(stacked).all():
                raise InputError(f"sentence {sentence.id}: its maps hold NaN or infinite values: expected finite ones")
            for setting, extraction in self._extractions.items():
                linked = choose(stacked, sentence, extraction).linked(*pair.gold.sure.shape)
                hits[setting] = hits[setting] + pair.gold.hits(linked)
        return {**self._frame(pairs, scored=True), **self._by_name(hits)}

    def failed(self, sample: dict[str, Any]) -> Tally:
        """The counts of a batch whose maps could not be had."""
        nothing = np.zeros((len(self.options.layers), len(KIND_LETTERS), len(_LINKS)), dtype=np.int64)
        tally = {**self._frame(sample[GOLD_KEY], scored=False), **self._by_name(dict.fromkeys(SETTINGS, nothing))}
        return {**tally, **dict.fromkeys(self._mixing_keys(), 0)}

    def _frame(self, pairs: Sequence[GoldPair], scored: bool) -> Tally:
        return {
            _SURE: sum(int(pair.gold.sure.sum()) for pair in pairs) if scored else 0,
            _SENTENCES: len(pairs) if scored else 0,
            _FAILED: 0 if scored else len(pairs),
            _GOLD: pairs[0].gold_size,
            _BATCHES: 1,
        }

    def _by_name(self, hits: dict[str, NDArray[np.int64]]) -> Tally:
        return {
            f"_{name}_{count}": int(value)
            for setting, names in self._names.items()
            for row, values in zip(names, hits[setting])
            for name, counts in zip(row, values)
            for count, value in zip(_LINKS, counts)
        }

    def _mixing_captures(self, sample: dict[str, Any], first_pass: bool) -> list[MapCapture[Tally]]:
        if not self.options.mixing:
            return []
        source = sample["net_input"]["src_tokens"].ne(self._pads[0])
        target = sample["target"].ne(self._pads[1])
        captures = []
        for type_, count in self._layers.items():
            positions = mixing_positions(type_, source if type_ == ENCODER_SELF else target)
            for layer in range(count):
                sums = partial(self._mixing_of, layer=layer, type_=type_, positions=positions)
                captures.append(MapCapture(type_, [layer], sums, first_pass=first_pass))
        return captures

    def _mixing_of(self, block: Block, layer: int, type_: str, positions: Tensor) -> Tally:
        sums = {}
        for kind in self.options.mixing:
            ratios = mixing_ratio(block, kind).double()[positions]
            sums[f"_{_mixing_name(type_, layer, kind)}"] = float(ratios.sum())
        return {**sums, f"_mixing_{type_}_{layer}_positions": int(positions.sum())}

    def _mixing_keys(self) -> list[str]:
        keys = []
        for type_, count in self._layers.items() if self.options.mixing else ():
            for layer in range(count):
                keys += [f"_{_mixing_name(type_, layer, kind)}" for kind in self.options.mixing]
                keys.append(f"_mixing_{type_}_{layer}_positions")
        return keys

    # -- metrics of a validation -------------------------------------------------------------------------------

    def log(self, logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Add the counts of ``logging_outputs`` to fairseq's metrics, and the figures that follow from them.

        ``inf`` stands for an AER, and NaN for a share or a mean, that monitoring failed to get.
        """
        outputs = [output for output in logging_outputs if _BATCHES in output]
        if not outputs:  # a batch of training, or of a subset without gold
            return
        for key in outputs[0]:
            if key.startswith(("_aer_", "_mixing_")):
                metrics.log_scalar_sum(key, sum(float(output[key]) for output in outputs))
        main = self.main_metric
        metrics.log_derived("aer", partial(_figure, name=main, metric="aer"))
        for metric in ("precision", "recall"):
            metrics.log_derived(f"aer_{metric}", partial(_figure, name=main, metric=metric))
        for names in self._names.values():
            for name in (name for row in names for name in row):
                metrics.log_derived(name, partial(_figure, name=name, metric="aer"))
        for type_, count in self._layers.items() if self.options.mixing else ():
            for layer in range(count):
                for kind in self.options.mixing:
                    name = _mixing_name(type_, layer, kind)
                    positions = f"_mixing_{type_}_{layer}_positions"
                    metrics.log_derived(name, partial(_mean, total=f"_{name}", count=positions))
        metrics.log_derived("aer_sentences", lambda meters: _sum(meters, _SENTENCES))
        metrics.log_derived("aer_sentences_gold", lambda meters: _sum(meters, _GOLD) // _sum(meters, _BATCHES))


def _mixing_name(type_: str, layer: int, kind: str) -> str:
    return f"mixing_{type_.replace('.', '_')}_l{layer}_{kind}"


def _mixing_sums(captures: Sequence[MapCapture[Tally]]) -> Tally:
    return {key: value for capture in captures for sums in capture.take() for key, value in sums.items()}


def _sum(meters: Any, key: str) -> int:
    # Counts travel between processes as float64, exact up to 2 to the power of 53.
    return round(float(meters[key].sum))


def _figure(meters: Any, name: str, metric: str) -> float:
    if _sum(meters, _FAILED):
        return math.inf if metric == "aer" else math.nan
    links, links_sure, links_possible = (np.int64(_sum(meters, f"_{name}_{count}")) for count in _LINKS)
    counts = Counts(links, np.int64(_sum(meters, _SURE)), links_sure, links_possible)  # type: ignore[arg-type]
    return round(float(METRICS[metric](counts)), 6)


def _mean(meters: Any, total: str, count: str) -> float:
    positions = _sum(meters, count)
    if _sum(meters, _FAILED) or not positions:
        return math.nan
    return round(float(meters[total].sum) / positions, 6)


def monitored_layers(model: nn.Module) -> dict[str, int]:
    """Block type -> number of layers, of the blocks of ``model`` that maps can be computed of."""
    counts = dict.fromkeys(BLOCK_TYPES, 0)
    for attention in norm_attentions(model):
        counts[attention.site.block] += 1
    assert counts[DECODER_CROSS]
    return {type_: count for type_, count in counts.items() if count}
