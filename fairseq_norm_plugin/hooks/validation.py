"""A validation with gold alignments: they are part of its batches; counts of its maps give AER and mixing ratios.

Maps come from the criterion's own forward passes.  A batch adds plain counts to fairseq's logging output, so that sums
over batches and processes are exact.  fairseq does not print keys that begin with ``_``.
"""

from __future__ import annotations

import itertools
import json
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
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
from alignment_eval.links.files import ReadOptions, read_gold
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, status_of
from alignment_eval.maps.words import SETTINGS
from alignment_eval.reading import content_hash, json_hash
from alignment_eval.scoring.aer import METRICS, Counts
from alignment_eval.scoring.gold_corpus import GoldMatrix, check_links
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, real_positions
from fairseq_norm_plugin.formulas.block import Block
from fairseq_norm_plugin.formulas.kinds import mixing_ratio
from fairseq_norm_plugin.hooks.session import all_batches
from fairseq_norm_plugin.text.tokens import SideReader, UnknownTokens

#: A child of the logger of fairseq-train, so that ``--log-file`` has the messages too.
logger = logging.getLogger("fairseq_cli.train.monitoring")

Tally = dict[str, float]

#: The keys of a batch for its list of :class:`GoldPair`, in the order of ``batch["id"]``; for
#: :attr:`GoldDataset.numbers`; and for whether fairseq alone would lose it, so that it counts for AER only.
GOLD_KEY, NUMBERS_KEY, LOST_KEY = "gold", "gold_numbers", "gold_lost"
#: Metrics that are the same in all batches: the size of the gold, to check whether a validation saw all of it; and the
#: numbers that tell golds and texts apart, so that no curve joins AERs of two.
SAME = ("aer_sentences_gold", "aer_gold", "aer_texts")
#: Metrics that are sums over batches: sentences that were scored, and those of them that count as having no links,
#: because their words are not certain.
SUMS = ("aer_sentences", "aer_unaligned")
#: Keys of the other counts of a batch: sure links, failed sentences, batches.
SURE, FAILED, BATCHES = "_aer_sure", "_aer_failed", "_aer_batches"
#: The three counts of a map's links that AER needs; |S| is the same for all maps.
LINKS = ("links", "links_sure", "links_possible")
#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}


@dataclass(frozen=True, eq=False)
class GoldPair:
    """One sentence pair: its tokens and words (no maps yet), and its gold."""

    sentence: SentenceMaps  #: its status is ``ok`` if its words are certain
    gold: GoldMatrix | None  #: None if they are not; the sentence then counts as a hypothesis without links
    links: GoldSentence  #: the same as links, whether the words are certain or not
    pictured: bool = False  #: whether each validation draws it


class GoldDataset(BaseWrapperDataset):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's data set of sentence pairs, whose batches hold the gold of their sentences.

    ``pairs`` are by id; ``identity`` has the hashes of gold and texts, and how the gold was read.
    """

    def __init__(self, dataset: Any, pairs: list[GoldPair], identity: Mapping[str, Any]) -> None:
        super().__init__(dataset)
        self.pairs, self.identity = pairs, identity
        file = {name: value for name, value in identity.items() if name != "texts"}
        #: The values of the metrics :data:`SAME`.
        self.numbers = dict(zip(SAME, (len(pairs), log_number(file), log_number(identity["texts"]))))
        self._lost: frozenset[int] = frozenset()

    def batch_by_size(self, indices: Any, *args: Any, **sizes: Any) -> list[Any]:
        """fairseq's batches; then those of the sentences that it loses.

        If it loses all, there is no loss of fairseq's, and they count for the loss, too.
        """
        batches, lost = all_batches(super().batch_by_size, indices, *args, **sizes)
        self._lost = frozenset(int(id_) for batch in lost for id_ in batch) if batches else frozenset()
        return batches + lost

    def collater(self, samples: Any, **kwargs: Any) -> Any:
        """fairseq's batch, with its gold."""
        batch = self.dataset.collater(samples, **kwargs)
        if batch:
            batch[GOLD_KEY] = [self.pairs[id_] for id_ in batch["id"].tolist()]
            batch[NUMBERS_KEY] = self.numbers
            batch[LOST_KEY] = int(batch["id"][0]) in self._lost
        return batch


def with_gold(
    dataset: Any, subset: str, path: str | Path, base: str, readers: tuple[SideReader, SideReader]
) -> GoldDataset:
    """Add the gold of the file ``path``, whose line k belongs to sentence k, to fairseq's data set of a subset."""
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file, but --aer-gold names it for subset {subset}; check the path")
    alignments = read_gold(path, ReadOptions(base=base, advise="{} --aer-gold-{}".format, warn=logger.warning))
    gold = list(alignments)
    if len(gold) != len(dataset):
        raise InputError(
            f"{path}: the gold has {len(gold)} sentences, but subset {subset} has {len(dataset)}; binarise the text of "
            f"the gold"
        )
    if not alignments.possible:
        raise InputError(f"{path}: the gold of subset {subset} has no links, so every AER would be 1; check the file")
    unknown, texts, pairs = UnknownTokens(), [], []
    for id_, links in enumerate(gold):
        source, target = (reader.spell(id_, ids[id_]) for reader, ids in zip(readers, (dataset.src, dataset.tgt)))
        unknown.add_pair(source, target)
        texts.append(json.dumps([(s.side.tokens, s.side.words.tolist()) for s in (source, target)]).encode())
        status = status_of(source.certain, target.certain)
        sentence = SentenceMaps(id_, source.side, target.side, layers=(), status=status)
        if sentence.ok:
            check_links(links.possible, sentence, f"{path}, subset {subset}")
        pairs.append(GoldPair(sentence, GoldMatrix.of(links, sentence) if sentence.ok else None, links))
    sure, possible = (sum(len(getattr(s, name)) for s in gold) for name in ("sure", "possible"))
    logger.info(
        "gold of subset %s: %s, base %d, %d sentences, %d sure links, %d possible only",
        *(subset, path, alignments.base, len(gold), sure, possible - sure),
    )
    for warning in filter(None, (unknown.warning(), unknown.uncertain_warning())):
        logger.warning(warning)
    read = {"gold": alignments.hash, "format": alignments.format, "base": alignments.base, "swap": alignments.swap}
    return GoldDataset(dataset, pairs, {**read, "texts": content_hash(texts)})


def log_number(value: Any) -> int:
    """A number of at most six digits, which is all that fairseq logs, that tells values apart."""
    return int(json_hash(value), 16) % 1_000_000


def metric_name(layer: int, kind: str, setting: str) -> str:
    """The name of the AER of a layer's map, such as ``aer_l1_n_awo``."""
    return f"aer_l{layer}_{KIND_LETTERS[kind]}_{setting}"


def mixing_name(block: str, layer: int, kind: str) -> str:
    """The name of a block's mean mixing ratio, such as ``mixing_decoder_cross_l1_attnres_n``."""
    return f"mixing_{block.replace('.', '_')}_l{layer}_{kind}"


class Monitor:
    """Counts validation batches that have gold, and derives the metrics from the counts.

    ``extraction`` has kind, layer and setting of ``aer``, and the rule of all metrics; ``layers`` is the number of
    decoder layers.  Mixing ratios of the kinds ``mixing`` are logged for ``blocks``, block type -> number of layers.
    """

    def __init__(
        self,
        extraction: ExtractionOptions,
        layers: int,
        mixing: Sequence[str],
        blocks: Mapping[str, int],
        pads: tuple[int, int],
    ) -> None:
        self.extraction, self._mixing, self._blocks, self._pads = extraction, mixing, blocks, pads
        self._recorded = RecordedMaps(tuple(range(layers)), ("head_attn_w", "layer_attn_n"))
        #: Metric of a layer -> the map that it scores, by the axes [setting, layer, kind] of the counts.
        self.maps = {
            metric_name(layer, kind, setting): replace(
                extraction, kind=kind, setting=setting, heads=MapNames((MapName(layer),))
            )
            for setting, layer, kind in itertools.product(SETTINGS, range(layers), KIND_LETTERS)
        }
        self._no_hits = np.zeros((len(SETTINGS), layers, len(KIND_LETTERS), len(LINKS)), dtype=np.int64)
        places = [(block, layer) for block, number in blocks.items() for layer in range(number)]
        #: Mixing ratio -> the key of the number of positions that it is averaged over.
        self._positions = {
            mixing_name(*place, kind): f"_{mixing_name(*place, 'positions')}" for place in places for kind in mixing
        }
        #: What is summed, by the axes [block, layer, kind].
        self._mixing_keys = [f"_{mixing_name(*place, kind)}" for place in places for kind in (*mixing, "positions")]
        #: The pair that is drawn, and its maps in the last validation.
        self.pictured: tuple[GoldPair, SentenceMaps] | None = None

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
                sums = [value for capture in mixing for of_layer in capture.take() for value in of_layer]
                return self.tally(sample, self.hits(sample, recorder.take()), sums)

            tallies.append(tally)
            return result

        criterion.forward = recorded
        try:
            yield tallies
        finally:
            del criterion.forward

    def hits(self, sample: dict[str, Any], quantities: Sequence[dict[str, Tensor]]) -> NDArray[np.int64]:
        """The counts :data:`LINKS` of each map, from the recorded quantities of each layer."""
        maps = BatchMaps()
        maps.add(quantities)
        tokens = (sample["net_input"]["src_tokens"], sample["target"])
        slices = [real_positions(ids, pad) for ids, pad in zip(tokens, self._pads)]
        hits = np.zeros_like(self._no_hits)
        for pair, arrays in zip(sample[GOLD_KEY], maps.sentences(*slices)):
            if pair.gold is None:
                continue
            sentence = replace(pair.sentence, layers=self._recorded.layers, arrays=arrays)
            if pair.pictured:
                self.pictured = pair, sentence
            stacked = np.stack([sentence.layer_maps(kind) for kind in KIND_LETTERS], axis=1)  # [L, kinds, T, S]
            if not np.isfinite(stacked).all():
                raise InputError(f"sentence {sentence.id}: the maps hold NaN or infinite values")
            for of_setting, setting in zip(hits, SETTINGS):
                options = replace(self.extraction, setting=setting)
                of_setting += pair.gold.hits(linked_cells(stacked, sentence, options))
        return hits

    def tally(
        self, sample: dict[str, Any], hits: NDArray[np.int64] | None = None, mixing: Sequence[float] = ()
    ) -> Tally:
        """The counts of a batch with gold; without ``hits``, of one that failed.  Processes sum them by position."""
        pairs, failed = sample[GOLD_KEY], hits is None
        tally: Tally = {
            SURE: sum(len(pair.links.sure) for pair in pairs),
            FAILED: len(pairs) if failed else 0,
            BATCHES: 1,
            "_aer_sentences": 0 if failed else len(pairs),
            "_aer_unaligned": sum(pair.gold is None for pair in pairs),
            **{f"_{name}": number for name, number in sample[NUMBERS_KEY].items()},
            **dict(zip(self._mixing_keys, mixing or itertools.repeat(0))),
        }
        links = (self._no_hits if hits is None else hits).reshape(-1, len(LINKS))
        for name, counts in zip(self.maps, links.tolist()):
            tally.update((f"_{name}_{count}", value) for count, value in zip(LINKS, counts))
        return tally

    def _mixing_captures(self, sample: dict[str, Any], first_pass: bool) -> list[MapCapture[list[float]]]:
        """Captures of :attr:`_mixing_keys`, in their order."""
        source, target = sample["net_input"]["src_tokens"].ne(self._pads[0]), sample["target"].ne(self._pads[1])
        captures = []
        for type_, layers in self._blocks.items():
            positions = mixing_positions(type_, source if type_ == ENCODER_SELF else target)
            sums = partial(self._mixing_sums, positions=positions)
            captures.append(MapCapture(type_, range(layers), sums, first_pass=first_pass))
        return captures

    def _mixing_sums(self, block: Block, positions: Tensor) -> list[float]:
        ratios = (mixing_ratio(block, kind).double()[positions] for kind in self._mixing)
        return [*(float(of_kind.sum()) for of_kind in ratios), int(positions.sum())]

    def log(self, logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Add the counts of ``logging_outputs`` to fairseq's metrics, and the metrics derived from them.

        If monitoring has failed, AER is ``inf``, and precision, recall and mixing ratios are NaN.
        """
        outputs = [output for output in logging_outputs if BATCHES in output]
        if not outputs:  # a training batch, or a batch of a subset without gold
            return
        for key in outputs[0]:
            if key.startswith(("_aer_", "_mixing_")):
                metrics.log_scalar_sum(key, sum(float(output[key]) for output in outputs))
        (map_,) = self.extraction.heads
        main = metric_name(map_.layer, self.extraction.kind, self.extraction.setting)
        method = log_number(self.extraction.fields())
        derived: dict[str, Callable[[Any], float]] = {
            "aer": partial(_score, name=main, metric="aer"),
            "aer_precision": partial(_score, name=main, metric="precision"),
            "aer_recall": partial(_score, name=main, metric="recall"),
            **{name: partial(_score, name=name, metric="aer") for name in self.maps},
            **{name: partial(_sum, key=f"_{name}") for name in SUMS},
            **{name: partial(_same, key=f"_{name}") for name in SAME},
            **{name: partial(_mean, total=f"_{name}", count=key) for name, key in self._positions.items()},
            "aer_method": lambda meters: method,
        }
        for name, function in derived.items():
            metrics.log_derived(name, function)


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
