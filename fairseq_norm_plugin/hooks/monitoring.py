"""Monitoring in training and validation: its options, their checks, and the mixin that adds it to a norm task.

A monitor that fails does not end a long training run.  A pass that failed is made again without it, the first error of
each validation is logged, and the AER of that validation is ``inf``, which is never the best.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

from fairseq import checkpoint_utils
from fairseq.logging import metrics, progress_bar
from torch import is_tensor, nn, zeros_like

from alignment_eval.errors import UsageError
from alignment_eval.figures.maps import Picture, draw, panel_of, sides_of
from alignment_eval.figures.style import kind_name, place_name, save_figure
from alignment_eval.maps.sentence import DEFAULT_KINDS
from alignment_eval.parts import differing
from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.hooks.options import (
    AER_GOLD,
    FOLDER,
    MONITORED_MIXING,
    named_maps,
    other_option,
    parse_kinds,
)
from fairseq_norm_plugin.hooks.validation import GOLD_KEY, LOST_KEY, GoldDataset, GoldPair, Monitor, logger, with_gold
from fairseq_norm_plugin.text.tokens import SUSPICIOUS, Vocabulary, side_readers

#: The name of the pictures in TensorBoard and W&B.
TAG = "aer_picture"
#: What fairseq takes for pieces of the subset valid.
_PIECE = re.compile(r"valid\d+")
#: Options that, beside :data:`AER_GOLD`, name files of subsets: the texts of source and target.
TEXTS = ("--norm-source-text", "--norm-target-text")


def _files_of_subsets(cfg: Any, name: str) -> dict[str, str]:
    """Subset -> the file that the option ``name`` gives for it."""
    files: dict[str, str] = {}
    text = getattr(cfg, name[2:].replace("-", "_"))
    for part in [] if text is None else str(text).split(","):
        subset, _, path = part.partition("=")
        if not (subset and path) or subset in files:
            raise UsageError(f"{name} {text!r}: give SUBSET=FILE, several separated by commas, each subset once")
        files[subset] = path
    return files


def _check_files(cfg: Any, files: Mapping[str, Mapping[str, str]]) -> None:
    """Check the options of gold: validation covers its subsets, and the first subset can choose checkpoints."""
    gold = files[AER_GOLD]
    for name, of_subsets in files.items():
        for subset, file in of_subsets.items():
            if subset not in gold:
                raise UsageError(
                    f"{name} {subset}={file}: subset {subset!r} has no gold; choose one of {', '.join(gold)}"
                )
    if cfg.aer_gold_base not in ("0", "1"):
        found = "is missing" if cfg.aer_gold_base is None else f"is {cfg.aer_gold_base!r}"
        raise UsageError(
            f"--aer-gold-base {found}; give 0 or 1, the index base of the gold (a wrong base gives a wrong AER)"
        )
    stated = str(other_option(cfg, "dataset", "valid_subset"))
    subsets = stated.split(",")
    for subset in gold:
        if subset not in subsets:
            remedy = f"add it, such as --valid-subset {subset},valid"
            if _PIECE.fullmatch(subset):
                remedy = "fairseq takes it for a piece of valid: binarise the gold's text as test"
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: subset {subset!r} is not in --valid-subset {stated}; {remedy}"
            )
    if (steps := other_option(cfg, "dataset", "max_valid_steps")) is not None:
        raise UsageError(
            f"--aer-gold does not work with --max-valid-steps {steps}: the AER would cover a part of the gold"
        )
    metric = _best_metric(cfg)
    if not metric.startswith("aer"):
        return
    if subsets[0] not in gold:
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the first subset of --valid-subset {stated} has no gold; give "
            f"--valid-subset {','.join([*gold, *(s for s in subsets if s not in gold)])}"
        )
    lower = not metric.endswith(("precision", "recall"))
    if lower == bool(other_option(cfg, "checkpoint", "maximize_best_checkpoint_metric")):
        raise UsageError(
            f"--best-checkpoint-metric {metric}: {'smaller' if lower else 'larger'} is better; "
            f"{'omit' if lower else 'give'} --maximize-best-checkpoint-metric"
        )


def _best_metric(cfg: Any) -> str:
    """The metric that chooses the best checkpoint."""
    return str(other_option(cfg, "checkpoint", "best_checkpoint_metric"))


def _check_best_metric(cfg: Any, logged: Sequence[str]) -> None:
    """Check that an AER that chooses the best checkpoint is one of the ``logged`` metrics; none without gold."""
    metric = _best_metric(cfg)
    if not metric.startswith("aer") or metric in logged:
        return
    expected = f"choose one of {', '.join(logged)}" if logged else "give --aer-gold SUBSET=FILE too, or another metric"
    raise UsageError(f"--best-checkpoint-metric {metric}: no validation subset logs it; {expected}")


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
            self._files = {name: _files_of_subsets(cfg, name) for name in (AER_GOLD, *TEXTS)}
            _check_files(cfg, self._files)
            layers, heads = layers_and_heads([self.built])
            maps = named_maps(cfg, layers, heads)
            if maps.kind not in DEFAULT_KINDS or cfg.norm_heads is not None:
                raise UsageError(
                    f"--aer-gold does not work with --norm-map {maps.kind} and --norm-heads {cfg.norm_heads}: "
                    f"monitoring reads whole layers with map {' or '.join(DEFAULT_KINDS)}"
                )
            mixing = () if cfg.aer_mixing is None else parse_kinds(cfg.aer_mixing, "--aer-mixing", MONITORED_MIXING)
            blocks = Counter(attention.site.block for attention in norm_attentions(self.built)) if mixing else {}
            pads = self.source_dictionary.pad(), self.target_dictionary.pad()
            self._monitor = Monitor(maps, layers, mixing, blocks, pads)
            _check_best_metric(cfg, ["aer", "aer_precision", "aer_recall", *sorted(self._monitor.maps)])
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
            source, target = (self._files[name].get(split) for name in TEXTS)
            cut = bool(self.cfg.truncate_source)
            if cut and dataset.src_sizes.max(initial=0) >= self.cfg.max_source_positions:
                raise UsageError(f"--truncate-source cuts sentences of {split}, whose gold is of whole ones: omit it")
            readers = side_readers(dataset, len(dataset), self.vocabularies, (source, target), cut)
            self.datasets[split] = dataset = with_gold(dataset, split, gold[split], self.cfg.aer_gold_base, readers)
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
            _check_best_metric(self.cfg, ())
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
        if sample[LOST_KEY]:
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
        self._draw(self._monitor, stats)
        self._name_lowest(self._monitor, stats)
        scored, size = stats.get("aer_sentences"), stats.get("aer_sentences_gold")
        if scored != size:
            logger.warning("AER covers %s of the gold's %s sentences; the others were skipped or failed", scored, size)
        if size and stats["aer_unaligned"] > SUSPICIOUS * size:
            logger.warning(
                "%d of %d sentences of the gold count as having no links, because their words are not certain; give "
                "the binarised texts: --norm-source-text SUBSET=FILE, --norm-target-text SUBSET=FILE",
                *(stats["aer_unaligned"], size),
            )
        metric = _best_metric(self.cfg)
        if metric.startswith("aer"):
            # fairseq-train reads the metric in every subset; the first subset counts, the others may not have it.
            stats.setdefault(metric, None)

    def _name_lowest(self, monitor: Monitor, stats: Mapping[str, Any]) -> None:
        """Name the map of the lowest AER when it is another than before, unless it is that of ``aer``."""
        if "aer" not in stats:
            return
        aer, name = min((float(stats[name]), name) for name in monitor.maps)
        if name != self._lowest and aer < float(stats["aer"]):
            logger.info(
                "%s is lowest, %.4f (aer: %s); to follow it: --best-checkpoint-metric %s, or --norm-map, --norm-layer "
                "and --norm-setting for aer",
                *(name, aer, stats["aer"], name),
            )
        self._lowest = name

    def _draw(self, monitor: Monitor, stats: dict[str, Any]) -> None:
        """Draw the sentence of ``--aer-picture`` in the map of the lowest AER; a failure does not end training."""
        if monitor.pictured is None:  # another subset, or another process has the sentence
            return
        (pair, sentence), monitor.pictured = monitor.pictured, None
        update, subset = int(stats["num_updates"]), next(iter(self._files[AER_GOLD]))
        path = Path(other_option(self.cfg, "checkpoint", "save_dir"), FOLDER, f"{update:06d}.png")
        tensorboard = other_option(self.cfg, "common", "tensorboard_logdir")
        try:
            aer, name = min((float(stats[name]), name) for name in monitor.maps)
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
        metric = _best_metric(self.cfg)
        if self._monitor is None or not metric.startswith("aer") or not isinstance(dataset, GoldDataset):
            return None
        return {"metric": metric, **dataset.identity, **self._monitor.extraction.fields()}
