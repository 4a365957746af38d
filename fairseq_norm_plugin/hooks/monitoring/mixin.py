"""The mixin that adds monitoring to a norm task in training and validation.

A monitor that fails does not end a long training run.  The batch is validated again without it, the first error of each
validation is logged, and the AER of that validation is ``inf``, which is never the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairseq import checkpoint_utils
from torch import nn

from alignment_eval.errors import UsageError
from alignment_eval.records.manifest import differing
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.hooks.monitoring.counts import Monitor, Tally, monitored_layers
from fairseq_norm_plugin.hooks.monitoring.gold import GOLD_KEY, GoldDataset, logger, with_gold
from fairseq_norm_plugin.hooks.monitoring.options import best_metric, check_best_metric, resolve_monitor
from fairseq_norm_plugin.hooks.options import other_option
from fairseq_norm_plugin.text.tokens import SUSPICIOUS, Vocabulary, side_readers


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
    built: nn.Module | None  #: the model, until the criterion is built
    _monitor: Monitor | None = None
    _errors = 0

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """fairseq's criterion; this checks the options of monitoring before training starts."""
        criterion = super().build_criterion(*args, **kwargs)  # type: ignore[misc]
        if self.cfg.aer_gold is not None and self.built is not None:
            options = resolve_monitor(self.cfg, *layers_and_heads([self.built]))
            pads = self.source_dictionary.pad(), self.target_dictionary.pad()
            blocks = monitored_layers(self.built) if options.mixing else {}
            self._monitor = Monitor(options, blocks, pads)
            check_best_metric(self.cfg, self._monitor.figures.choosable())
            extraction = options.extraction
            logger.info(
                "aer: %s of decoder layer %s (counted from 0), %s, rule %s, null %s",
                *(extraction.kind, extraction.heads, extraction.setting, extraction.rule, extraction.null),
            )
        self.built = None
        return criterion

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> Any:
        """Load fairseq's data set, with gold if the subset has any."""
        if self._monitor is not None and kwargs.get("combine") and split != self.cfg.train_subset:
            raise UsageError(
                "--aer-gold does not work with --combine-valid-subsets, which changes the ids of sentences; omit "
                "--combine-valid-subsets"
            )
        result = super().load_dataset(split, *args, **kwargs)  # type: ignore[misc]
        if self._monitor is not None and split in self._monitor.options.gold:
            options, dataset = self._monitor.options, self.datasets[split]
            texts, cut = options.texts[split], bool(self.cfg.truncate_source)
            readers = side_readers(dataset, len(dataset), self.vocabularies, texts, cut)
            self.datasets[split] = with_gold(dataset, split, options.gold[split], options.reading, readers)
        return result

    def begin_epoch(self, epoch: int, model: nn.Module) -> None:
        """Begin an epoch of fairseq-train; without gold no AER can choose its checkpoints."""
        if self._monitor is None:
            check_best_metric(self.cfg, ())
        super().begin_epoch(epoch, model)  # type: ignore[misc]

    def begin_valid_epoch(self, epoch: int, model: nn.Module) -> None:
        """Begin fairseq's validation, and reset the number of errors."""
        super().begin_valid_epoch(epoch, model)  # type: ignore[misc]
        self._errors = 0

    def valid_step(self, sample: dict[str, Any], model: nn.Module, criterion: Any, **kwargs: Any) -> Any:
        """fairseq's step; adds the counts of the batch to its logging output."""
        monitor = self._monitor
        if monitor is None or GOLD_KEY not in sample:
            return super().valid_step(sample, model, criterion, **kwargs)  # type: ignore[misc]
        try:
            with monitor.listening(criterion) as tallies:
                loss, sample_size, logging_output = super().valid_step(sample, model, criterion, **kwargs)  # type: ignore[misc]
        except Exception as error:
            self._note(error, sample)
            # If the model itself caused the error, this raises it again.
            loss, sample_size, logging_output = super().valid_step(sample, model, criterion, **kwargs)  # type: ignore[misc]
            return loss, sample_size, {**logging_output, **monitor.failed(sample)}
        return loss, sample_size, {**logging_output, **self._counted(tallies, monitor, sample)}

    def _counted(self, tallies: list[Callable[[], Tally]], monitor: Monitor, sample: dict[str, Any]) -> Tally:
        try:
            if not tallies:
                raise RuntimeError(f"the task {type(self).__name__} did not call its criterion in a validation step")
            return tallies[-1]()
        except Exception as error:
            self._note(error, sample)
            return monitor.failed(sample)

    def _note(self, error: Exception, sample: dict[str, Any]) -> None:
        if not self._errors:
            logger.error(
                "monitoring failed in this validation, so its AER is inf; first error, in sentences %s: %s: %s",
                *(sample["id"].tolist(), type(error).__name__, error),
                exc_info=error,
            )
        self._errors += 1

    def reduce_metrics(self, logging_outputs: Any, criterion: Any) -> None:
        """Reduce fairseq's metrics, and log the monitor's metrics."""
        super().reduce_metrics(logging_outputs, criterion)  # type: ignore[misc]
        if self._monitor is not None:
            self._monitor.figures.log(logging_outputs)

    def post_validate(self, model: nn.Module, stats: dict[str, Any], agg: Any) -> None:
        """Hook that fairseq calls after the validation of a subset, with the metrics that it will print."""
        if hasattr(super(), "post_validate"):
            super().post_validate(model, stats, agg)  # type: ignore[misc]
        if self._monitor is None:
            return
        if self._errors:
            logger.error("monitoring failed in %d batches of this process", self._errors)
            self._errors = 0
        scored, size = stats.get("aer_sentences"), stats.get("aer_sentences_gold")
        if scored != size:
            logger.warning("AER covers %s of the gold's %s sentences; the others were skipped or failed", scored, size)
        if size and stats["aer_unaligned"] > SUSPICIOUS * size:
            logger.warning(
                "%d of %d sentences of the gold count as having no links, because their words are not certain; give "
                "the texts that were binarised: --norm-source-text SUBSET=FILE, --norm-target-text SUBSET=FILE",
                *(stats["aer_unaligned"], size),
            )
        metric = best_metric(self.cfg)
        if metric.startswith("aer"):
            # fairseq-train reads the metric in every subset; the first subset counts, the others may not have it.
            stats.setdefault(metric, None)

    def get_checkpoint_dict(self) -> dict[str, Any]:
        """Saved with the best figure of a training: the metric, gold, texts and maps of this figure."""
        best = self._best_figure()
        return {} if best is None else {type(self).__name__: best}

    def set_checkpoint_dict(self, saved: dict[str, Any]) -> None:
        """Forget the best figure of a checkpoint if it is an AER of another gold, text or map.

        fairseq calls this after it has restored that figure.  Without it, ``checkpoint_best.pt`` would be chosen by a
        comparison of figures that cannot be compared.
        """
        best = self._best_figure()
        if best is not None and (changed := differing(saved, best)):
            logger.warning(
                "the best %s of the checkpoint cannot be compared, because these differ: %s; it is forgotten, and "
                "checkpoint_best.pt is chosen from the validations that follow",
                *(saved.get("metric"), changed),
            )
            vars(checkpoint_utils.save_checkpoint).pop("best", None)

    def _best_figure(self) -> dict[str, Any] | None:
        """The metric that chooses the best checkpoint, and what it is of; None if it is not an AER."""
        dataset = self.datasets.get(str(other_option(self.cfg, "dataset", "valid_subset")).split(",")[0])
        metric = best_metric(self.cfg)
        if self._monitor is None or not metric.startswith("aer") or not isinstance(dataset, GoldDataset):
            return None
        return {"metric": metric, **dataset.identity, **self._monitor.options.extraction.fields()}
