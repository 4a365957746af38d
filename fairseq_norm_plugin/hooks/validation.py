"""AER and mixing ratios of a validation: counts from the criterion's own forward passes, and metrics from their sums.

A batch adds plain counts to fairseq's logging output, so that sums over batches and processes are exact.  fairseq does
not print keys that begin with ``_``.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data import BaseWrapperDataset
from fairseq.logging import metrics
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import linked_cells
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.files import ContentHash, json_hash
from alignment_eval.links.read import ReadOptions, read_gold
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, status_of
from alignment_eval.maps.words import SETTINGS
from alignment_eval.scoring.aer import METRICS, Counts
from alignment_eval.scoring.gold_corpus import GoldMatrix, check_links
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, real_positions
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import mixing_ratio
from fairseq_norm_plugin.text.tokens import SideReader, UnknownTokens

#: A child of the logger of fairseq-train, so that ``--log-file`` has the messages too.
logger = logging.getLogger("fairseq_cli.train.monitoring")

#: The key of a batch for its list of :class:`GoldPair`, in the order of ``batch["id"]``.
GOLD_KEY = "gold"
#: The metrics that tell gold and texts apart, so that no curve joins AERs of two.
NUMBERED = ("aer_gold", "aer_texts")


@dataclass(frozen=True, eq=False)
class GoldPair:
    """One sentence pair: its tokens and words (no maps yet), and its gold."""

    sentence: SentenceMaps  #: its status is ``ok`` if its words are certain
    gold: GoldMatrix | None  #: None if they are not; the sentence then counts as a hypothesis without links
    links: GoldSentence  #: the same as links, whether the words are certain or not
    gold_size: int  #: number of sentences in the whole gold, to check whether a validation saw all of them
    #: The numbers of gold and texts in logs (:data:`NUMBERED`), the same for all pairs.
    numbers: Mapping[str, int] = field(default_factory=dict)
    pictured: bool = False  #: whether each validation draws it


class GoldDataset(BaseWrapperDataset):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's data set of sentence pairs, whose batches hold the gold of their sentences, ``pairs`` by id.

    ``identity`` has the hashes of gold and texts, and how the gold was read.
    """

    def __init__(self, dataset: Any, pairs: list[GoldPair], identity: Mapping[str, Any]) -> None:
        super().__init__(dataset)
        self.pairs = pairs
        self.identity = identity

    def collater(self, samples: Any, **kwargs: Any) -> Any:
        """fairseq's batch, with :data:`GOLD_KEY`."""
        batch = self.dataset.collater(samples, **kwargs)
        if batch:
            batch[GOLD_KEY] = [self.pairs[id_] for id_ in batch["id"].tolist()]
        return batch

    @property
    def src(self) -> Any:
        """The source side."""
        return self.dataset.src

    @property
    def tgt(self) -> Any:
        """The target side."""
        return self.dataset.tgt


def with_gold(
    dataset: Any,
    subset: str,
    path: str | Path,
    options: ReadOptions,
    readers: tuple[SideReader, SideReader],
) -> GoldDataset:
    """Add the gold of the file ``path``, whose line k belongs to sentence k, to fairseq's data set of a subset."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file, but --aer-gold names it for subset {subset}; check the path")
    alignments = read_gold(path, replace(options, advise="{} --aer-gold-{}".format), warn=logger.warning)
    gold = list(alignments)
    if len(gold) != len(dataset):
        raise InputError(
            f"{path}: the gold has {len(gold)} sentences, but subset {subset} has {len(dataset)}; binarise the subset "
            f"from the text of the gold (fairseq-preprocess --testpref)"
        )
    if not alignments.file.possible:
        raise InputError(f"{path}: the gold of subset {subset} has no links, so every AER would be 1; check the file")
    unknown = UnknownTokens()
    pairs = []
    numbers: dict[str, int] = {}  # not known before all pairs are read
    for id_, links in enumerate(gold):
        source, target = (reader.spell(id_, ids[id_]) for reader, ids in zip(readers, (dataset.src, dataset.tgt)))
        unknown.add_pair(source, target)
        certain = status_of(source.certain, target.certain)
        sentence = SentenceMaps(id_, source.side, target.side, layers=(), status=certain)
        if sentence.ok:
            check_links(links.possible, sentence, f"{path}, subset {subset}")
        matrix = GoldMatrix.of(links, sentence) if sentence.ok else None
        pairs.append(GoldPair(sentence, matrix, links, len(gold), numbers))
    sure, possible = (sum(len(getattr(s, name)) for s in gold) for name in ("sure", "possible"))
    logger.info(
        "gold of subset %s: %s, base %d, %d sentences, %d sure links, %d possible only",
        *(subset, path, alignments.base, len(gold), sure, possible - sure),
    )
    for warning in filter(None, (unknown.warning(), unknown.uncertain_warning())):
        logger.warning(warning)
    texts = ContentHash()
    for pair in pairs:
        sides = [(side.tokens, side.words.tolist()) for side in (pair.sentence.source, pair.sentence.target)]
        texts.update(json.dumps(sides).encode())
    of_file = alignments.file
    identity = {"gold": of_file.hash, "format": of_file.format, "base": alignments.base, "swap": alignments.swap}
    numbers.update(zip(NUMBERED, map(log_number, (identity, texts.short))))
    return GoldDataset(dataset, pairs, {**identity, "texts": texts.short})


def log_number(value: Any) -> int:
    """A number of at most six digits, which is all that fairseq logs, that tells values apart."""
    return int(json_hash(value), 16) % 1_000_000


Tally = dict[str, float]

_QUANTITIES = ("head_attn_w", "layer_attn_n")
#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}
#: The three counts of a map's links that AER needs; |S| is the same for all maps.
LINKS = ("links", "links_sure", "links_possible")
#: Keys of the other counts of a batch: sure links, scored sentences, failed sentences, sentences of the gold, batches,
#: and sentences that count as having no links, because their words are not certain.
SURE, SENTENCES, FAILED = "_aer_sure", "_aer_scored", "_aer_not_scored"
GOLD, BATCHES, UNALIGNED = "_aer_gold_size", "_aer_batches", "_aer_without_words"


def metric_name(layer: int, kind: str, setting: str) -> str:
    """The name of the AER of a layer's map, such as ``aer_l1_n_awo``."""
    return f"aer_l{layer}_{KIND_LETTERS[kind]}_{setting}"


def mixing_name(block: str, layer: int, kind: str) -> str:
    """The name of a block's mean mixing ratio, ``mixing_decoder_cross_l1_attnres_n``; its sum has a ``_`` before it."""
    return f"mixing_{block.replace('.', '_')}_l{layer}_{kind}"


def _positions_key(block: str, layer: int) -> str:
    """The key of the number of positions that a block's mixing ratios are averaged over."""
    return f"_mixing_{block}_{layer}_positions"


class Monitor:
    """Counts validation batches that have gold, and derives the metrics from the counts.

    Args:
        extraction: kind, layer and setting of ``aer``; its rule is used for all metrics.
        layers: the number of decoder layers.
        mixing: kinds of mixing ratios that are logged.
        blocks: the block types whose mixing ratios are logged, with their numbers of layers.
        pads: the padding symbols of source and target.
    """

    def __init__(
        self,
        extraction: ExtractionOptions,
        layers: int,
        mixing: Sequence[str],
        blocks: Mapping[str, int],
        pads: tuple[int, int],
    ) -> None:
        self._extraction, self._mixing, self._pads = extraction, mixing, pads
        self._layers = tuple(range(layers))
        #: Block type and layer of each block whose mixing ratios are logged.
        self._mixing_blocks = [(block, layer) for block, count in blocks.items() for layer in range(count)]
        self._recorded = RecordedMaps(self._layers, _QUANTITIES)
        #: The pair that is drawn, and its maps in the last validation.
        self.pictured: tuple[GoldPair, SentenceMaps] | None = None

    def _names(self, setting: str) -> list[list[str]]:
        """Names of the AER metrics of a setting, by the axes [layer, kind] of the counts."""
        return [[metric_name(layer, kind, setting) for kind in KIND_LETTERS] for layer in self._layers]

    def _layer_metrics(self) -> dict[str, ExtractionOptions]:
        """Metric -> the map that it scores."""
        return {
            name: replace(self._extraction, kind=kind, setting=setting, heads=MapNames((MapName(layer),)))
            for setting in SETTINGS
            for layer, row in zip(self._layers, self._names(setting))
            for kind, name in zip(KIND_LETTERS, row)
        }

    def best_map(self, stats: Mapping[str, Any]) -> tuple[float, ExtractionOptions]:
        """The lowest AER of a layer in the metrics of a validation, and its map."""
        aer, name = min((float(stats[name]), name) for name in self._layer_metrics())
        return aer, self._layer_metrics()[name]

    def choosable(self) -> list[str]:
        """The names of the metrics that can choose the best checkpoint."""
        return ["aer", "aer_precision", "aer_recall", *sorted(self._layer_metrics())]

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
        hits = self._no_hits()
        for pair, arrays in zip(pairs, maps.sentences(*slices)):
            if pair.gold is None:
                continue
            sentence = replace(pair.sentence, layers=self._layers, arrays=arrays)
            if pair.pictured:
                self.pictured = pair, sentence
            stacked = np.stack([sentence.layer_maps(kind) for kind in KIND_LETTERS], axis=1)  # [L, kinds, T, S]
            if not np.isfinite(stacked).all():
                raise InputError(f"sentence {sentence.id}: the maps hold NaN or infinite values")
            for setting in SETTINGS:
                hits[setting] += pair.gold.hits(
                    linked_cells(stacked, sentence, replace(self._extraction, setting=setting))
                )
        return self._tally(pairs, hits, scored=True)

    def failed(self, sample: dict[str, Any]) -> Tally:
        """The counts of a batch whose maps could not be computed."""
        mixing: Tally = {}
        for block, layer in self._mixing_blocks:
            mixing.update({f"_{mixing_name(block, layer, kind)}": 0 for kind in self._mixing})
            mixing[_positions_key(block, layer)] = 0
        return {**self._tally(sample[GOLD_KEY], self._no_hits(), scored=False), **mixing}

    def _no_hits(self) -> dict[str, NDArray[np.int64]]:
        shape = len(self._layers), len(KIND_LETTERS), len(LINKS)
        return {setting: np.zeros(shape, dtype=np.int64) for setting in SETTINGS}

    def _tally(self, pairs: Sequence[GoldPair], hits: Mapping[str, NDArray[np.int64]], scored: bool) -> Tally:
        return {
            SURE: sum(len(pair.links.sure) for pair in pairs),
            SENTENCES: len(pairs) if scored else 0,
            FAILED: 0 if scored else len(pairs),
            GOLD: pairs[0].gold_size,
            BATCHES: 1,
            UNALIGNED: sum(pair.gold is None for pair in pairs),
            **{f"_{name}": pairs[0].numbers.get(name, 0) for name in NUMBERED},
            **{
                f"_{name}_{count}": int(value)
                for setting in SETTINGS
                for row, values in zip(self._names(setting), hits[setting])
                for name, counts in zip(row, values)
                for count, value in zip(LINKS, counts)
            },
        }

    def _mixing_captures(self, sample: dict[str, Any], first_pass: bool) -> list[MapCapture[Tally]]:
        source = sample["net_input"]["src_tokens"].ne(self._pads[0])
        target = sample["target"].ne(self._pads[1])
        captures = []
        for type_, layer in self._mixing_blocks:
            positions = mixing_positions(type_, source if type_ == ENCODER_SELF else target)
            sums = partial(self._mixing_of, layer=layer, type_=type_, positions=positions)
            captures.append(MapCapture(type_, [layer], sums, first_pass=first_pass))
        return captures

    def _mixing_of(self, block: Block, layer: int, type_: str, positions: Tensor) -> Tally:
        sums = {}
        for kind in self._mixing:
            ratios = mixing_ratio(block, kind).double()[positions]
            sums[f"_{mixing_name(type_, layer, kind)}"] = float(ratios.sum())
        return {**sums, _positions_key(type_, layer): int(positions.sum())}

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
        (map_,) = self._extraction.heads
        main = metric_name(map_.layer, self._extraction.kind, self._extraction.setting)
        for name, metric in (("aer", "aer"), ("aer_precision", "precision"), ("aer_recall", "recall")):
            metrics.log_derived(name, partial(_score, name=main, metric=metric))
        for name in self._layer_metrics():
            metrics.log_derived(name, partial(_score, name=name, metric="aer"))
        for block, layer in self._mixing_blocks:
            for name in (mixing_name(block, layer, kind) for kind in self._mixing):
                metrics.log_derived(name, partial(_mean, total=f"_{name}", count=_positions_key(block, layer)))
        metrics.log_derived("aer_sentences", partial(_sum, key=SENTENCES))
        metrics.log_derived("aer_sentences_gold", partial(_same, key=GOLD))
        metrics.log_derived("aer_unaligned", partial(_sum, key=UNALIGNED))
        for name in NUMBERED:
            metrics.log_derived(name, partial(_same, key=f"_{name}"))
        method = log_number(self._extraction.fields())
        metrics.log_derived("aer_method", lambda meters: method)


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


def _score(meters: Any, name: str, metric: str) -> float:
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
