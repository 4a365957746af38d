"""Monitoring in training and validation: AER and mixing ratios of batches with gold, added to a norm task.

Maps come from the criterion's own forward passes.  A batch adds plain counts to fairseq's logging output, so that sums
over batches and processes are exact.  fairseq does not print keys that begin with ``_``.

A monitor that fails does not end a long training run.  A pass that failed is made again without it, the first error of
each validation is logged, and the AER of that validation is ``inf``, which is never the best.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq import checkpoint_utils
from fairseq.logging import metrics, progress_bar
from numpy.typing import NDArray
from torch import Tensor, is_tensor, nn, zeros_like

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import linked_cells
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.figures.maps import Picture, draw, panel_of, sides_of
from alignment_eval.figures.style import kind_name, place_name, save_figure
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS, SentenceMaps
from alignment_eval.maps.words import SETTINGS
from alignment_eval.parts import differing
from alignment_eval.scoring.aer import METRICS, Counts
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, ENCODER_SELF, mixing_positions
from fairseq_norm_plugin.capture.recorder import BatchMaps, RecordedMaps, Recorder, layers_and_heads, real_positions
from fairseq_norm_plugin.formulas.block import Block
from fairseq_norm_plugin.formulas.kinds import mixing_ratio
from fairseq_norm_plugin.hooks.datasets import (
    GOLD_KEY,
    SAME,
    BinarisedText,
    GoldBatch,
    GoldDataset,
    GoldPair,
    log_number,
    with_gold,
)
from fairseq_norm_plugin.hooks.datasets import train_logger as logger
from fairseq_norm_plugin.hooks.options import (
    AER_GOLD,
    FOLDER,
    MONITORED_MIXING,
    TEXTS,
    best_metric,
    check_best_metric,
    files_of_gold,
    named_maps,
    other_option,
    parse_kinds,
)
from fairseq_norm_plugin.text.tokens import SUSPICIOUS, Vocabulary

Tally = dict[str, float]

#: The name of the pictures in TensorBoard and W&B.
TAG = "aer_picture"
#: Metrics that are sums over batches: sentences that were scored, and those of them that count as having no links,
#: because their words are not certain.
SUMS = ("aer_sentences", "aer_unaligned")
#: Keys of the other counts of a batch: sure links, failed sentences, batches.
SURE, FAILED, BATCHES = "_aer_sure", "_aer_failed", "_aer_batches"
_OWN = ("_aer_", "_mixing_")
#: The three counts of a map's links that AER needs; |S| is the same for all maps.
LINKS = ("links", "links_sure", "links_possible")
#: Kind of map -> its letter in the names of metrics.
KIND_LETTERS = {"attn_w": "w", "attn_n": "n"}


def metric_name(layer: int, kind: str, setting: str) -> str:
    """The name of the AER of a layer's map, such as ``aer_l1_n_awo``."""
    return f"aer_l{layer}_{KIND_LETTERS[kind]}_{setting}"


def mixing_name(block: str, layer: int, kind: str) -> str:
    """The name of a block's mean mixing ratio, such as ``mixing_decoder_cross_l1_attnres_n``."""
    return f"mixing_{block.replace('.', '_')}_l{layer}_{kind}"


def _mixing_sums(block: Block, kinds: Sequence[str], positions: Tensor) -> list[float]:
    ratios = (mixing_ratio(block, kind).double()[positions] for kind in kinds)
    return [*(float(of_kind.sum()) for of_kind in ratios), int(positions.sum())]


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
        self.extraction, self._blocks, self._pads = extraction, blocks, pads
        #: The kinds by block type; without the residual, the ratio of encoder-decoder attention is constantly 1.
        own = [kind for kind in mixing if KINDS[kind].residual]
        self._mixing = {block: own if block == DECODER_CROSS else mixing for block in blocks}
        self._recorded = RecordedMaps(tuple(range(layers)), ("head_attn_w", "layer_attn_n"))
        #: Metric of a layer -> the map that it scores, by the axes [setting, layer, kind] of the counts.
        self.maps = {
            metric_name(layer, kind, setting): replace(
                extraction, kind=kind, setting=setting, heads=MapNames((MapName(layer),))
            )
            for setting, layer, kind in itertools.product(SETTINGS, range(layers), KIND_LETTERS)
        }
        self._no_hits = np.zeros((len(SETTINGS), layers, len(KIND_LETTERS), len(LINKS)), dtype=np.int64)
        places = [((block, layer), kinds) for block, kinds in self._mixing.items() for layer in range(blocks[block])]
        #: Mixing ratio -> the key of the number of positions that it is averaged over.
        self._positions = {
            mixing_name(*at, kind): f"_{mixing_name(*at, 'positions')}" for at, kinds in places for kind in kinds
        }
        #: What is summed, by the axes [block, layer, kind].
        self._mixing_keys = [f"_{mixing_name(*at, kind)}" for at, kinds in places for kind in (*kinds, "positions")]
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
        for pair, arrays in zip(sample[GOLD_KEY].pairs, maps.sentences(*slices)):
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
        gold: GoldBatch = sample[GOLD_KEY]
        pairs, failed = gold.pairs, hits is None
        tally: Tally = {
            SURE: sum(len(pair.links.sure) for pair in pairs),
            FAILED: len(pairs) if failed else 0,
            BATCHES: 1,
            "_aer_sentences": 0 if failed else len(pairs),
            "_aer_unaligned": sum(pair.gold is None for pair in pairs),
            **{f"_{name}": number for name, number in gold.numbers.items()},
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
            sums = partial(_mixing_sums, kinds=self._mixing[type_], positions=positions)
            captures.append(MapCapture(type_, range(layers), sums, first_pass=first_pass))
        return captures

    def log(self, logging_outputs: Sequence[dict[str, Any]]) -> None:
        """Add the counts of ``logging_outputs`` to fairseq's metrics, and the metrics derived from them.

        If monitoring has failed, AER is ``inf``, and precision, recall and mixing ratios are NaN.
        """
        outputs = [output for output in logging_outputs if BATCHES in output]
        if not outputs:  # a training batch, or a batch of a subset without gold
            return
        keys = [key for key in outputs[0] if key.startswith(_OWN)]
        sums = {key: sum(float(output[key]) for output in outputs) for key in keys}
        for key, value in sums.items():
            metrics.log_scalar_sum(key, value)
        for name in self._figures(sums):
            metrics.log_derived(name, partial(self._figure, name=name))

    def _figure(self, meters: Any, name: str) -> float:
        return self._figures({key: float(meter.sum) for key, meter in meters.items() if key.startswith(_OWN)})[name]

    def _figures(self, sums: Mapping[str, float]) -> dict[str, float]:
        """The metrics of the sums of all counts, which processes exchange as float64: exact up to 2**53."""
        failed = sums[FAILED] > 0

        def score(name: str, metric: str) -> float:
            if failed:
                return math.inf if metric == "aer" else math.nan
            links, links_sure, links_possible = (np.int64(sums[f"_{name}_{count}"]) for count in LINKS)
            counts = Counts(links, np.int64(sums[SURE]), links_sure, links_possible)  # type: ignore[arg-type]
            return round(float(METRICS[metric](counts)), 6)

        (map_,) = self.extraction.heads
        main = metric_name(map_.layer, self.extraction.kind, self.extraction.setting)
        means = {
            name: math.nan if failed or not sums[count] else round(sums[f"_{name}"] / sums[count], 6)
            for name, count in self._positions.items()
        }
        return {
            "aer": score(main, "aer"),
            "aer_precision": score(main, "precision"),
            "aer_recall": score(main, "recall"),
            **{name: score(name, "aer") for name in self.maps},
            **{name: round(sums[f"_{name}"]) for name in SUMS},
            **{name: round(sums[f"_{name}"] / sums[BATCHES]) for name in SAME},
            **means,
            "aer_method": log_number(self.extraction.fields()),
        }


class MonitorMixin:
    """Adds AER to the validation of subsets that have gold; list it before the norm task's mixin.

    This relies on the following: fairseq-train and fairseq-validate build the model, then the criterion, then load the
    validation subsets; only ``valid_step`` sees a batch; ``reduce_metrics`` gets the sums over all processes;
    ``post_validate`` runs before fairseq-train reads the best-checkpoint metric, which it does in every subset.
    """

    cfg: Any
    datasets: dict[str, Any]
    source_dictionary: Any
    target_dictionary: Any
    vocabularies: tuple[Vocabulary, Vocabulary]  #: of source and target
    built: Optional[nn.Module]  #: the model, until the criterion is built
    _files: Mapping[str, Mapping[str, str]]  #: of :data:`AER_GOLD` and :data:`TEXTS`, by subset
    _monitor: Optional[Monitor] = None
    _errors = 0
    _lowest: Optional[str] = None  #: the metric of the lowest AER in the last validation

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """fairseq's criterion; this checks the options of monitoring before training starts."""
        criterion = super().build_criterion(*args, **kwargs)  # type: ignore[misc]
        cfg = self.cfg
        if cfg.aer_gold is not None and self.built is not None:
            self._files = files_of_gold(cfg)
            layers, heads = layers_and_heads([self.built])
            maps = named_maps(cfg, layers, heads)
            if maps.kind not in DEFAULT_KINDS:
                expected = f"monitoring reads {' or '.join(DEFAULT_KINDS)}, of whole layers"
                raise UsageError(f"--aer-gold does not work with --norm-map {maps.kind}: {expected}")
            mixing = () if cfg.aer_mixing is None else parse_kinds(cfg.aer_mixing, "--aer-mixing", MONITORED_MIXING)
            blocks = Counter(attention.site.block for attention in norm_attentions(self.built)) if mixing else {}
            pads = self.source_dictionary.pad(), self.target_dictionary.pad()
            self._monitor = Monitor(maps, layers, mixing, blocks, pads)
            logged = ["aer", "aer_precision", "aer_recall", *sorted(self._monitor.maps)]
            check_best_metric(cfg, logged, self._files[AER_GOLD])
            logger.info(
                "aer: %s of decoder layer %s (counted from 0), %s, rule %s, null %s",
                *(maps.kind, maps.heads, maps.setting, maps.rule, maps.null),
            )
        self.built = None
        return criterion

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> Any:
        """Load fairseq's data set, with gold if the subset has any."""
        if self._monitor is not None and kwargs.get("combine") and split != self.cfg.train_subset:
            raise UsageError(
                "--combine-valid-subsets changes the ids of sentences, which --aer-gold counts by: omit it"
            )
        result = super().load_dataset(split, *args, **kwargs)  # type: ignore[misc]
        if self._monitor is not None and split in self._files[AER_GOLD]:
            dataset, gold = self.datasets[split], self._files[AER_GOLD]
            cut = bool(self.cfg.truncate_source)
            if cut and dataset.src_sizes.max(initial=0) >= self.cfg.max_source_positions:
                raise UsageError(f"--truncate-source cuts sentences of {split}, whose gold is of whole ones: omit it")
            files = [self._files[name].get(split) for name in TEXTS]
            text = BinarisedText(dataset, len(dataset), self.vocabularies, files, cut)
            self.datasets[split] = dataset = with_gold(dataset, split, gold[split], self.cfg.aer_gold_base, text)
            if self.cfg.aer_picture is not None and split == next(iter(gold)):
                self._choose_picture(dataset.pairs, self.cfg.aer_picture, gold[split])
        return result

    def _choose_picture(self, pairs: list[GoldPair], number: int, gold: str) -> None:
        if not 0 <= number < len(pairs):
            raise UsageError(
                f"--aer-picture {number}: {gold} has no such sentence; choose one of 0 to {len(pairs) - 1}"
            )
        if pairs[number].gold is None:
            raise UsageError(
                f"--aer-picture {number}: the words of this sentence are not certain; choose another, or give its texts"
            )
        pairs[number] = replace(pairs[number], pictured=True)

    def begin_epoch(self, epoch: int, model: nn.Module) -> None:
        """Begin an epoch of fairseq-train; without gold no AER can choose its checkpoints."""
        if self._monitor is None:
            check_best_metric(self.cfg)
        super().begin_epoch(epoch, model)  # type: ignore[misc]

    def valid_step(self, sample: dict[str, Any], model: nn.Module, criterion: Any, **kwargs: Any) -> Any:
        """fairseq's step; adds the counts of the batch to its logging output."""
        monitor, step = self._monitor, super().valid_step  # type: ignore[misc]
        if monitor is None or GOLD_KEY not in sample:
            return step(sample, model, criterion, **kwargs)
        result = None
        try:
            with monitor.listening(criterion) as tallies:
                result = step(sample, model, criterion, **kwargs)
            tally = tallies[-1]()
        except Exception as error:
            if not self._errors:
                logger.error(
                    "monitoring failed in this validation, so its AER is inf; first error, in sentences %s: %s: %s",
                    *(sample["id"].tolist(), type(error).__name__, error),
                    exc_info=error,
                )
            self._errors += 1
            # A pass that was made is kept: other processes make one, too.  An error of the model itself is raised here.
            result = result or step(sample, model, criterion, **kwargs)
            tally = monitor.tally(sample)
        loss, sample_size, logging_output = result
        if sample[GOLD_KEY].lost:
            zeros = {name: zeros_like(value) if is_tensor(value) else 0 for name, value in logging_output.items()}
            sample_size, logging_output = sample_size * 0, zeros
        return loss, sample_size, {**logging_output, **tally}

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """Reduce fairseq's metrics, and log the monitor's metrics."""
        if any(float(output.get("sample_size", 1)) for output in logging_outputs):
            super().reduce_metrics(logging_outputs, criterion)  # type: ignore[misc]
        else:  # sentences for AER only; fairseq logs a loss of its own where there is none
            metrics.log_scalar("loss", 0, weight=0)
        if self._monitor is not None:
            self._monitor.log(logging_outputs)

    def post_validate(self, model: nn.Module, stats: dict[str, Any], agg: Any) -> None:
        """Hook that fairseq calls after the validation of a subset, with the metrics that it will print."""
        if self._monitor is None:
            return
        if self._errors:
            logger.error("monitoring failed in %d batches of this process", self._errors)
            self._errors = 0
        if "aer" in stats:
            aer, name = min((float(stats[name]), name) for name in self._monitor.maps)
            self._draw(self._monitor, stats, aer, name)
            if name != self._lowest and aer < float(stats["aer"]):
                logger.info(
                    "%s is lowest, %.4f (aer: %s); to follow it: --best-checkpoint-metric %s, or --norm-map, "
                    "--norm-layer and --norm-setting for aer",
                    *(name, aer, stats["aer"], name),
                )
            self._lowest = name
        scored, size = stats.get("aer_sentences"), stats.get("aer_sentences_gold")
        if scored != size:
            logger.warning("AER covers %s of the gold's %s sentences; the others were skipped or failed", scored, size)
        if size and stats["aer_unaligned"] > SUSPICIOUS * size:
            logger.warning(
                "%d of %d sentences of the gold count as having no links, because their words are not certain; give "
                "the binarised texts: --norm-source-text SUBSET=FILE, --norm-target-text SUBSET=FILE",
                *(stats["aer_unaligned"], size),
            )
        metric = best_metric(self.cfg)
        if metric.startswith("aer"):
            # fairseq-train reads the metric in every subset; the first subset counts, the others may not have it.
            stats.setdefault(metric, None)

    def _draw(self, monitor: Monitor, stats: Mapping[str, Any], aer: float, name: str) -> None:
        """Draw the sentence of ``--aer-picture`` in the map of the lowest AER; a failure does not end training."""
        if monitor.pictured is None:  # another subset, or another process has the sentence
            return
        (pair, sentence), monitor.pictured = monitor.pictured, None
        update, subset = int(stats["num_updates"]), next(iter(self._files[AER_GOLD]))
        path = Path(other_option(self.cfg, "checkpoint", "save_dir"), FOLDER, f"{update:06d}.png")
        tensorboard = other_option(self.cfg, "common", "tensorboard_logdir")
        try:
            map_ = monitor.maps[name]
            (place,) = map_.heads
            what = f"{kind_name(map_.kind)}, {map_.setting.upper()}, {place_name(place.layer)}"
            title = f"Update {update}: AER {100 * aer:.1f} % of all sentences"
            panels = [[panel_of(sentence, map_, "word", what)]]
            path.parent.mkdir(parents=True, exist_ok=True)
            save_figure(draw(Picture(title, *sides_of(sentence, "word"), panels, pair.links)), path)
            if tensorboard is not None and progress_bar.SummaryWriter is not None:
                from matplotlib.image import imread

                # a file of its own beside fairseq's, in the directory of the same subset
                with progress_bar.SummaryWriter(str(Path(tensorboard, subset))) as writer:
                    writer.add_image(TAG, imread(path)[..., :3], update, dataformats="HWC")
            if progress_bar.wandb is not None and progress_bar.wandb.run is not None:
                image = progress_bar.wandb.Image(str(path))
                progress_bar.wandb.log({f"{subset}/{TAG}": image}, step=update)
        except Exception as error:
            logger.error("no picture of this validation: %s: %s", type(error).__name__, error)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Saved with the best score of a training: the metric, gold, texts and maps of this score."""
        best = self._best_score()
        return {} if best is None else {type(self).__name__: best}

    def set_checkpoint_dict(self, saved: dict[str, Any]) -> None:
        """Reset the best score of a checkpoint if it is an AER of another gold, text or map.

        fairseq calls this after it has restored that score.  Without it, ``checkpoint_best.pt`` would be chosen by
        comparing scores that cannot be compared.
        """
        best = self._best_score()
        if best is not None and (changed := differing(saved, best)):
            logger.warning(
                "the best %s of the checkpoint cannot be compared, because these differ: %s; it is reset, and "
                "checkpoint_best.pt is chosen from the validations that follow",
                *(saved.get("metric"), changed),
            )
            vars(checkpoint_utils.save_checkpoint).pop("best", None)

    def _best_score(self) -> Optional[dict[str, Any]]:
        """The metric that chooses the best checkpoint, and what it is of; None if it is not an AER."""
        dataset = self.datasets.get(str(other_option(self.cfg, "dataset", "valid_subset")).split(",")[0])
        metric = best_metric(self.cfg)
        if self._monitor is None or not metric.startswith("aer") or not isinstance(dataset, GoldDataset):
            return None
        return {"metric": metric, **dataset.identity, **self._monitor.extraction.fields()}
