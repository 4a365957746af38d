"""Monitoring in training and validation: its options, their checks, and the mixin that adds it to a norm task.

A monitor that fails does not end a long training run.  The batch is validated again without it, the first error of each
validation is logged, and the AER of that validation is ``inf``, which is never the best.
"""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Optional

from fairseq import checkpoint_utils
from fairseq.dataclass import FairseqDataclass
from fairseq.logging import progress_bar
from torch import nn

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.figures.maps import Picture, draw, panel_of, sides_of
from alignment_eval.figures.names import kind_name, place_name
from alignment_eval.figures.style import save_figure
from alignment_eval.links.read import ReadOptions
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.kinds import DEFAULT_KINDS, KINDS, mixing_kinds
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.manifest import differing
from fairseq_norm_plugin.capture.recorder import layers_and_heads
from fairseq_norm_plugin.hooks.options import extraction_options, other_option, parse_kinds, resolve
from fairseq_norm_plugin.hooks.validation import (
    GOLD_KEY,
    GoldDataset,
    GoldPair,
    Monitor,
    Tally,
    logger,
    monitored_layers,
    with_gold,
)
from fairseq_norm_plugin.text.tokens import SUSPICIOUS, Vocabulary, side_readers

#: The folder of the pictures in fairseq's ``--save-dir``, and their name in TensorBoard and W&B.
FOLDER, TAG = "aer-picture", "aer_picture"


@dataclass(frozen=True)
class Pictures:
    """Where the pictures of a training run go.

    Attributes:
        subset: the validation subset of the sentence.
        save_dir: the directory of the checkpoints.
        tensorboard: the directory of TensorBoard's logs; None: there are none.
    """

    subset: str
    save_dir: str
    tensorboard: str | None

    def add(self, sentence: SentenceMaps, gold: GoldSentence, map_: ExtractionOptions, aer: float, update: int) -> None:
        """Draw a map of the sentence with the links of the gold and those of the map's rule."""
        (place,) = map_.heads
        what = f"{kind_name(map_.kind)}, {map_.setting.upper()}, {place_name(place.layer)}"
        source, target = sides_of(sentence, "word")
        title = f"Update {update}: AER {100 * aer:.1f} % of all sentences"
        panels = [[panel_of(sentence, map_, "word", what)]]
        path = Path(self.save_dir) / FOLDER / f"{update:06d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        save_figure(draw(Picture(title, source, target, panels, gold)), path)
        if self.tensorboard is not None and progress_bar.SummaryWriter is not None:
            from matplotlib.image import imread

            # a file of its own beside fairseq's, in the directory of the same subset
            with progress_bar.SummaryWriter(str(Path(self.tensorboard) / self.subset)) as writer:
                writer.add_image(TAG, imread(path)[..., :3], update, dataformats="HWC")
        wandb = progress_bar.wandb
        if wandb is not None and wandb.run is not None:
            wandb.log({f"{self.subset}/{TAG}": wandb.Image(str(path))}, step=update)


#: Kinds of mixing ratios that every block has; decoder self-attention is not followed by a feed-forward network.
MONITORED_MIXING = tuple(kind for kind in mixing_kinds() if not KINDS[kind].feed_forward)
#: What fairseq takes for pieces of the subset valid.
_PIECE = re.compile(r"valid\d+")


@dataclass
class MonitorConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of monitoring in training; without ``--aer-gold`` nothing is monitored."""

    aer_gold: Optional[str] = field(
        default=None,
        metadata={
            "help": "gold alignments of validation subsets: SUBSET=FILE, several separated by commas; each validation "
            "of SUBSET logs aer (for --norm-map, --norm-layer, --norm-setting) and aer_l<layer>_{w,n}_{awo,awi}; "
            "--norm-source-text and --norm-target-text then take SUBSET=FILE, too"
        },
    )
    aer_gold_base: Optional[str] = field(
        default=None, metadata={"help": "index base of the gold, 0 or 1; required with --aer-gold"}
    )
    aer_mixing: Optional[str] = field(
        default=None,
        metadata={
            "help": f"also log mixing ratios of every block in these subsets, of kinds {', '.join(MONITORED_MIXING)}, "
            f"as mixing_<block>_l<layer>_<kind>"
        },
    )
    aer_picture: Optional[int] = field(
        default=None,
        metadata={
            "help": f"a sentence of the first of these subsets, from 0: each validation draws its map in the layer of "
            f"the lowest AER, with gold and predicted links, in SAVE_DIR/{FOLDER}, TensorBoard and W&B",
        },
    )


@dataclass(frozen=True)
class MonitorOptions:
    """:class:`MonitorConfig`, checked."""

    gold: Mapping[str, str]  #: subset -> file of its gold alignments
    texts: Mapping[str, tuple[Optional[str], Optional[str]]]  #: subset -> files of its source and target text
    reading: ReadOptions  #: how to read the gold
    extraction: ExtractionOptions  #: kind, layer and setting of ``aer``; its rule is used for all metrics
    mixing: tuple[str, ...]  #: kinds of mixing ratios
    picture: Optional[int]  #: the sentence of the first subset that is drawn


def _resolve_monitor(cfg: Any, layers: int, heads: int) -> MonitorOptions:
    """Check ``cfg``, which names gold, against a model with ``layers`` decoder layers of ``heads`` heads."""
    gold = _files_of_subsets(cfg.aer_gold, "--aer-gold")
    texts = []
    for option, value in (("--norm-source-text", cfg.norm_source_text), ("--norm-target-text", cfg.norm_target_text)):
        texts.append({} if value is None else _files_of_subsets(value, option))
        for subset in texts[-1]:
            if subset not in gold:
                raise UsageError(f"{option} {value}: subset {subset!r} has no gold; choose one of {', '.join(gold)}")
    _check_validation(cfg, gold)
    if cfg.aer_gold_base not in ("0", "1"):
        found = "is missing" if cfg.aer_gold_base is None else f"is {cfg.aer_gold_base!r}"
        raise UsageError(
            f"--aer-gold-base {found}; give 0 or 1, the index base of the gold (a wrong base gives a wrong AER)"
        )
    options = resolve(cfg, layers, heads)
    if options.kind not in DEFAULT_KINDS or options.heads is not None:
        raise UsageError(
            f"--aer-gold does not work with --norm-map {options.kind} and --norm-heads {cfg.norm_heads}; monitoring "
            f"reads whole layers with map {' or '.join(DEFAULT_KINDS)}; choose one of these and omit --norm-heads"
        )
    return MonitorOptions(
        gold=gold,
        texts={subset: (texts[0].get(subset), texts[1].get(subset)) for subset in gold},
        reading=ReadOptions(base=str(cfg.aer_gold_base)),
        extraction=extraction_options(cfg, options.kind, options.layer, None),
        mixing=() if cfg.aer_mixing is None else parse_kinds(cfg.aer_mixing, "--aer-mixing", MONITORED_MIXING),
        picture=cfg.aer_picture,
    )


def _files_of_subsets(text: str, option: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for part in str(text).split(","):
        subset, equals, path = part.partition("=")
        if not (subset and equals and path) or subset in files:
            raise UsageError(f"{option} {text!r}: give SUBSET=FILE, several separated by commas, each subset once")
        files[subset] = path
    return files


def _check_validation(cfg: Any, gold: Mapping[str, str]) -> None:
    """Check that validation covers the gold's subsets completely, and that the first subset can choose checkpoints."""
    stated = str(other_option(cfg, "dataset", "valid_subset"))
    subsets = stated.split(",")
    # of binarised data, by the files of its directories (``test.de-en.de.idx``)
    files = (file for directory in str(cfg.data).split(":") for file in Path(directory).glob("*.*-*.*.idx"))
    present = sorted({file.name.split(".")[0] for file in files})
    for subset in gold:
        if present and subset not in present and not _PIECE.fullmatch(subset):
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: {cfg.data} has no subset {subset!r}; choose one of {', '.join(present)}"
            )
        if subset not in subsets:
            remedy = f"add it, such as --valid-subset {subset},valid"
            if _PIECE.fullmatch(subset):
                remedy = "fairseq takes it for a piece of valid: binarise the gold's text as test"
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: subset {subset!r} is not in --valid-subset {stated}; {remedy}"
            )
    if (steps := other_option(cfg, "dataset", "max_valid_steps")) is not None:
        raise UsageError(
            f"--aer-gold does not work with --max-valid-steps {steps}, because the AER would cover "
            f"only a part of the gold; omit --max-valid-steps"
        )
    metric = _best_metric(cfg)
    if not metric.startswith("aer"):
        return
    if subsets[0] not in gold:
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the first subset of --valid-subset {stated} chooses the "
            f"checkpoint, but it has no gold; give --valid-subset "
            f"{','.join([*gold, *(s for s in subsets if s not in gold)])}"
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


def _picture(pairs: list[GoldPair], number: int, gold: str) -> None:
    """Mark the pair that is drawn."""
    if not 0 <= number < len(pairs):
        raise UsageError(f"--aer-picture {number}: {gold} has no such sentence; choose one of 0 to {len(pairs) - 1}")
    if pairs[number].gold is None:
        raise UsageError(
            f"--aer-picture {number}: the words of this sentence are not certain; choose another, or give "
            f"--norm-source-text and --norm-target-text"
        )
    pairs[number] = replace(pairs[number], pictured=True)


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
    _monitoring: MonitorOptions
    _monitor: Optional[Monitor] = None
    _errors = 0

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """fairseq's criterion; this checks the options of monitoring before training starts."""
        criterion = super().build_criterion(*args, **kwargs)  # type: ignore[misc]
        if self.cfg.aer_gold is not None and self.built is not None:
            layers, heads = layers_and_heads([self.built])
            self._monitoring = options = _resolve_monitor(self.cfg, layers, heads)
            pads = self.source_dictionary.pad(), self.target_dictionary.pad()
            blocks = monitored_layers(self.built) if options.mixing else {}
            extraction = options.extraction
            self._monitor = Monitor(extraction, layers, options.mixing, blocks, pads)
            _check_best_metric(self.cfg, self._monitor.choosable())
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
        if self._monitor is not None and split in self._monitoring.gold:
            options, dataset = self._monitoring, self.datasets[split]
            texts, cut = options.texts[split], bool(self.cfg.truncate_source)
            readers = side_readers(dataset, len(dataset), self.vocabularies, texts, cut)
            self.datasets[split] = with_gold(dataset, split, options.gold[split], options.reading, readers)
            if options.picture is not None and split == next(iter(options.gold)):
                _picture(self.datasets[split].pairs, options.picture, options.gold[split])
        return result

    def begin_epoch(self, epoch: int, model: nn.Module) -> None:
        """Begin an epoch of fairseq-train; without gold no AER can choose its checkpoints."""
        if self._monitor is None:
            _check_best_metric(self.cfg, ())
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
            self._monitor.log(logging_outputs)

    def post_validate(self, model: nn.Module, stats: dict[str, Any], agg: Any) -> None:
        """Hook that fairseq calls after the validation of a subset, with the metrics that it will print."""
        if hasattr(super(), "post_validate"):
            super().post_validate(model, stats, agg)  # type: ignore[misc]
        if self._monitor is None:
            return
        if self._errors:
            logger.error("monitoring failed in %d batches of this process", self._errors)
            self._errors = 0
        self._draw(stats)
        scored, size = stats.get("aer_sentences"), stats.get("aer_sentences_gold")
        if scored != size:
            logger.warning("AER covers %s of the gold's %s sentences; the others were skipped or failed", scored, size)
        if size and stats["aer_unaligned"] > SUSPICIOUS * size:
            logger.warning(
                "%d of %d sentences of the gold count as having no links, because their words are not certain; give "
                "the texts that were binarised: --norm-source-text SUBSET=FILE, --norm-target-text SUBSET=FILE",
                *(stats["aer_unaligned"], size),
            )
        metric = _best_metric(self.cfg)
        if metric.startswith("aer"):
            # fairseq-train reads the metric in every subset; the first subset counts, the others may not have it.
            stats.setdefault(metric, None)

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
        return {"metric": metric, **dataset.identity, **self._monitoring.extraction.fields()}

    def _draw(self, stats: dict[str, Any]) -> None:
        """Draw the picture of a validation; a failure does not end the training."""
        monitor = self._monitor
        assert monitor is not None
        if monitor.pictured is None:  # another subset, or another process has the sentence
            return
        (pair, sentence), monitor.pictured = monitor.pictured, None
        save_dir = other_option(self.cfg, "checkpoint", "save_dir")
        tensorboard = other_option(self.cfg, "common", "tensorboard_logdir")
        pictures = Pictures(next(iter(self._monitoring.gold)), save_dir, tensorboard)
        try:
            aer, map_ = monitor.best_map(stats)
            pictures.add(sentence, pair.links, map_, aer, int(stats["num_updates"]))
        except Exception as error:
            logger.error("no picture of this validation: %s: %s", type(error).__name__, error)
