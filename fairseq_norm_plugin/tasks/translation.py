"""What the plugin adds to any translation task of fairseq's (the mixin), and the task ``translation_norm``."""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

import numpy as np
from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import nn

from alignment_eval import __version__
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.manifest import Manifest
from alignment_eval.records.store import RunInfo
from fairseq_norm_plugin.capture.attention import disable_encoder_fast_path, swap_attention
from fairseq_norm_plugin.capture.recorder import STEPWISE_KINDS, RecordedMaps, layers_and_heads, recorded_quantities
from fairseq_norm_plugin.checkpoints import check_vocabulary
from fairseq_norm_plugin.generation.generator import MAPS_KEY, Hypotheses, NormSequenceScorer, PrintedMap, carry_maps
from fairseq_norm_plugin.monitoring.mixin import MonitorMixin
from fairseq_norm_plugin.options import MonitorConfig, NormConfig, NormOptions, resolve
from fairseq_norm_plugin.output.identity import (
    data_hash,
    dictionary_hash,
    generation_options,
    model_hash,
    signature_hash,
)
from fairseq_norm_plugin.output.run import Output, Plan
from fairseq_norm_plugin.output.writers import (
    AlignmentParts,
    IfExists,
    RecordParts,
    ShardParts,
    parts_directory,
    pharaoh_line,
    written_ids,
)
from fairseq_norm_plugin.tokens import dictionary_mark, side, special_ids, surface

logger = logging.getLogger(__name__)


class NormMixin:
    """Adds the maps to a translation task; list it before the task's own class.

    The call order of fairseq-generate is what this rests on: ``build_model``, ``load_dataset``,
    ``get_batch_iterator``, ``build_generator``, then ``inference_step`` a batch, with no hook at the end.  So the
    plan of the run is made with the iterator, its output is opened with the generator, and finished in the step
    that brings the last expected sentence.

    A task whose data sets hold language tags says so in :attr:`language_tags` and :attr:`input_options`.
    """

    cfg: Any
    datasets: dict[str, Any]
    source_dictionary: Any
    target_dictionary: Any

    _training = False
    _skipped: Mapping[int, str] = {}
    _plan: Optional[Plan] = None
    _output: Optional[Output] = None
    _layers: tuple[int, ...] = ()
    _marks: tuple[str, ...] = ()
    _specials: tuple[frozenset[int], ...] = ()

    # -- the model ---------------------------------------------------------------------------------------------

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """fairseq's model with its encoder-decoder attention swapped (attention.py)."""
        model: nn.Module = super().build_model(cfg, from_checkpoint=from_checkpoint)  # type: ignore[misc]
        swap_attention(model)
        disable_encoder_fast_path(model)
        check_vocabulary(model)
        return model

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """fairseq's; only training and validation build one, which tells them from generation."""
        self._training = True
        return super().build_criterion(*args, **kwargs)  # type: ignore[misc]

    # -- the data ----------------------------------------------------------------------------------------------

    @property
    def language_tags(self) -> Sequence[str]:
        """The tokens by which the task names languages to the model; they belong to no word."""
        return ()

    @property
    def input_options(self) -> dict[str, Any]:
        """Further options of the task that change what the model is given."""
        return {}

    @property
    def specials(self) -> tuple[frozenset[int], frozenset[int]]:
        """Of source and target, the ids that belong to no word.

        Raises:
            UsageError: ``--norm-special-tokens`` names what neither dictionary has.
        """
        stated = [token for token in str(self.cfg.norm_special_tokens or "").split(",") if token]
        dictionaries = self.source_dictionary, self.target_dictionary
        for token in stated:
            if not any(token in dictionary for dictionary in dictionaries):
                raise UsageError(
                    f"--norm-special-tokens {self.cfg.norm_special_tokens}: neither dictionary has {token}: "
                    f"expected tokens of the binarised text, separated by commas"
                )
        source, target = (special_ids(dictionary, [*self.language_tags, *stated]) for dictionary in dictionaries)
        return source, target

    def filter_indices_by_size(
        self, indices: Any, dataset: Any, max_positions: Any = None, ignore_invalid_inputs: bool = False
    ) -> Any:
        """fairseq's; keeps which sentences it leaves out."""
        kept = super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)  # type: ignore[misc]
        reason = f"skipped: longer than max_positions={max_positions}"
        self._skipped = {int(id_): reason for id_ in np.setdiff1d(indices, kept)}
        return kept

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, without its loss of the last batch outside of training.

        fairseq drops the last batch unless its size is a multiple of ``--required-batch-size-multiple``.
        """
        if not (self._training and dataset is self.datasets.get(self.cfg.train_subset)):
            kwargs["required_batch_size_multiple"] = 1
        self._skipped = {}
        iterator = super().get_batch_iterator(dataset, *args, **kwargs)  # type: ignore[misc]
        return iterator if self._training else self._make_plan(dataset, iterator, kwargs)

    def _make_plan(self, dataset: Any, iterator: Any, batching: Mapping[str, Any]) -> Any:
        subset = next((name for name, loaded in self.datasets.items() if loaded is dataset), None)
        if subset is None:  # fairseq-interactive's sentences are of no subset
            return iterator
        _ = iterator.frozen_batches  # some tasks filter their sentences only now
        written = self._written_ids(batching) if self.cfg.norm_records_resume else ()
        self._plan = Plan.of(subset, iterator, self._skipped, batching, written)
        return self._plan.iterator(iterator)

    def _written_ids(self, batching: Mapping[str, Any]) -> Any:
        """The ids that every output of this shard holds; whether they are of this run is checked with the model."""
        outputs = []
        if self.cfg.norm_records:
            outputs.append((Path(self.cfg.norm_records), "records"))
        if self.cfg.norm_alignments:
            outputs.append((parts_directory(Path(self.cfg.norm_alignments)), "alignments"))
        shard, shards = batching.get("shard_id", 0), batching.get("num_shards", 1)
        written = [written_ids(directory, content, shard, shards) for directory, content in outputs]
        return functools.reduce(np.intersect1d, written) if written else ()

    # -- generation and forced scoring -------------------------------------------------------------------------

    def build_generator(
        self,
        models: Sequence[nn.Module],
        args: Any,
        seq_gen_cls: Any = None,
        extra_gen_cls_kwargs: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> Any:
        """fairseq's generator or scorer; one that carries maps if any are asked for."""
        style = getattr(args, "print_alignment", None)
        wanted = not self._training and bool(self.cfg.norm_records or self.cfg.norm_alignments)
        if not (style or wanted):
            return super().build_generator(  # type: ignore[misc]
                models, args, seq_gen_cls=seq_gen_cls, extra_gen_cls_kwargs=extra_gen_cls_kwargs, **kwargs
            )
        if seq_gen_cls is not None:
            raise UsageError(f"a norm task brings its own generator: {seq_gen_cls.__name__} cannot be used with maps")
        self._check_command(args, style, wanted)
        layers, heads = layers_and_heads(models)
        options = resolve(self.cfg, layers, heads)
        if style and options.kind not in STEPWISE_KINDS:
            raise UsageError(
                f"--print-alignment cannot show --norm-map {options.kind}: expected {' or '.join(STEPWISE_KINDS)}, "
                f"which follow beam search step by step; --norm-alignments and --norm-records know all kinds"
            )
        logger.info("maps: %s of decoder layer %d of %d (counted from 0)", options.kind, options.layer, layers)
        self._specials = self.specials
        printed = recorded = None
        stock_args = args
        if style:
            printed = PrintedMap(
                options.kind, options.layer, options.heads, options.setting, str(style), self._specials
            )
            stock_args = copy.copy(args)
            stock_args.print_alignment = None
        if wanted:
            recorded = self._open_output(models, args, options, heads)
        generator = super().build_generator(  # type: ignore[misc]
            models, stock_args, extra_gen_cls_kwargs=extra_gen_cls_kwargs, **kwargs
        )
        return carry_maps(generator, printed, recorded)

    def _check_command(self, args: Any, style: Optional[str], wanted: bool) -> None:
        if self._plan is None and wanted:
            raise UsageError(
                "--norm-records and --norm-alignments need sentence ids, which fairseq-generate alone gives: "
                "binarise the text with fairseq-preprocess and use fairseq-generate"
            )
        if self._plan is None and str(style) == "soft" and not self._training:
            raise UsageError(
                "fairseq-interactive formats alignments itself and crashes on --print-alignment soft: "
                "use hard there, or fairseq-generate"
            )
        if not (self.cfg.source_lang and self.cfg.target_lang):
            raise UsageError("--source-lang and --target-lang are missing: a run with maps is of one language pair")
        if wanted and getattr(args, "retain_dropout", False):
            raise UsageError("--retain-dropout would draw other dropout masks for the maps than for the hypotheses")
        if self.cfg.norm_records_resume and self.cfg.norm_records_overwrite:
            raise UsageError("--norm-records-resume and --norm-records-overwrite contradict each other: give one")
        if int(self.cfg.norm_part_sentences) < 1:
            raise UsageError(f"--norm-part-sentences {self.cfg.norm_part_sentences}: expected 1 or more")
        if self.cfg.norm_num_shards != 1:
            raise UsageError(
                f"--num-shards {self.cfg.norm_num_shards} does nothing in fairseq-generate (every shard would be the "
                f"whole corpus): use --distributed-world-size N --distributed-rank k"
            )

    def _open_output(self, models: Sequence[nn.Module], args: Any, options: NormOptions, heads: int) -> RecordedMaps:
        """Open the writers that are asked for; tells what has to be recorded for them."""
        assert self._plan is not None
        plan = self._plan
        quantities = recorded_quantities(options.record_kinds, len(models))
        scoring = getattr(args, "score_reference", False)
        nbest = int(args.nbest) if self.cfg.norm_records and not scoring else 1
        self._layers = options.record_layers
        self._marks = tuple(
            dictionary_mark(dictionary, str(self.cfg.norm_subword_mark))
            for dictionary in (self.source_dictionary, self.target_dictionary)
        )
        logger.info("subword marks: source %s, target %s", *self._marks)
        existing = IfExists(bool(self.cfg.norm_records_resume), bool(self.cfg.norm_records_overwrite))
        signature = self._signature(models, args)
        writers: list[ShardParts] = []
        if self.cfg.norm_records:
            info = self._run_info(signature, options, heads, nbest)
            writers.append(RecordParts(Path(self.cfg.norm_records), info, quantities, existing))
        if options.extraction is not None:
            file = Path(self.cfg.norm_alignments)
            manifest = self._alignments_manifest(signature, options.extraction)
            line_of = functools.partial(pharaoh_line, options=options.extraction)
            writers.append(AlignmentParts(file, manifest, line_of, existing))
        if plan.kept and getattr(args, "sampling", False) and not all(writer.manifest.finished for writer in writers):
            raise UsageError(
                "--norm-records-resume with --sampling: what is drawn depends on all that was drawn before: "
                "begin anew with --norm-records-overwrite"
            )
        self._output = Output(plan, self._layers, writers, int(self.cfg.norm_part_sentences))
        if self._output.finished:
            # Nothing is left to do, and fairseq-generate knows no other way to end well at this point.
            raise SystemExit(0)
        return RecordedMaps(self._layers, quantities, nbest, self._source_words)

    def _source_words(self, id_: int, tokens: Any) -> list[int]:
        """The word of each token of a row of source tokens, -1 for pads and </s>."""
        assert self._plan is not None
        forms = surface(self.datasets[self._plan.subset], "src", id_)
        return list(side(tokens, self.source_dictionary, self._marks[0], forms, self._specials[0]).words)

    def _signature(self, models: Sequence[nn.Module], args: Any) -> dict[str, Any]:
        """What every output of the run depends on."""
        assert self._plan is not None
        cfg, plan = self.cfg, self._plan
        languages = (cfg.source_lang, cfg.target_lang)
        return {
            "version": __version__,
            "task": type(self).__name__,
            "model": model_hash(models),
            "data": data_hash(cfg.data.split(":")[0], plan.subset, languages),
            "dictionaries": dictionary_hash(self.source_dictionary, self.target_dictionary),
            "subset": plan.subset,
            "languages": list(languages),
            "marks": list(self._marks),
            "special_tokens": [sorted(ids) for ids in self._specials],
            **self.input_options,
            "left_pad": [cfg.left_pad_source, cfg.left_pad_target],
            "max_positions": [cfg.max_source_positions, cfg.max_target_positions],
            "truncate_source": cfg.truncate_source,
            "shards": plan.shards,
            "generation": generation_options(args),
            **(plan.batching if plan.shards > 1 or getattr(args, "sampling", False) else {}),
        }

    def _run_info(self, common: Mapping[str, Any], options: NormOptions, heads: int, nbest: int) -> RunInfo:
        assert self._plan is not None
        plan, dtype = self._plan, str(self.cfg.norm_records_dtype)
        signature = {
            **common,
            "kinds": list(options.record_kinds),
            "layers": list(options.record_layers),
            "dtype": dtype,
        }
        return RunInfo(
            signature=signature,
            signature_hash=signature_hash(signature),
            kinds=options.record_kinds,
            layers=options.record_layers,
            heads=heads,
            dtype=dtype,
            size=plan.size,
            nbest=nbest,
            shard=plan.shard,
            shards=plan.shards,
        )

    def _alignments_manifest(self, common: Mapping[str, Any], extraction: ExtractionOptions) -> Manifest:
        assert self._plan is not None
        plan = self._plan
        signature = {**common, "extraction": extraction.fields()}
        return Manifest(
            content="alignments",
            signature=signature,
            signature_hash=signature_hash(signature),
            size=plan.size,
            shard=plan.shard,
            shards=plan.shards,
        )

    def inference_step(
        self, generator: Any, models: Sequence[nn.Module], sample: dict[str, Any], **kwargs: Any
    ) -> Hypotheses:
        """fairseq's; takes what the hypotheses carry to the run's output."""
        hypotheses: Hypotheses = super().inference_step(generator, models, sample, **kwargs)  # type: ignore[misc]
        if self._output is not None and not self._training:
            ids = sample["id"].tolist()
            forced = isinstance(generator, NormSequenceScorer)
            sentences = [
                self._sentence(id_, rank, tokens, hypothesis, forced)
                for id_, tokens, nbest in zip(ids, sample["net_input"]["src_tokens"], hypotheses)
                for rank, hypothesis in enumerate(nbest)
                if MAPS_KEY in hypothesis
            ]
            self._output.write(ids, sentences)
        return hypotheses

    def _sentence(self, id_: int, rank: int, src_tokens: Any, hypothesis: dict[str, Any], forced: bool) -> SentenceMaps:
        source_mark, target_mark = self._marks
        source_specials, target_specials = self._specials
        assert self._plan is not None
        dataset = self.datasets[self._plan.subset]
        source_ids = src_tokens[src_tokens.ne(self.source_dictionary.pad())]
        source, reference = surface(dataset, "src", id_), surface(dataset, "tgt", id_) if forced else None
        return SentenceMaps(
            id=id_,
            rank=rank,
            score=float(hypothesis["score"]),
            source=side(source_ids, self.source_dictionary, source_mark, source, source_specials),
            target=side(hypothesis["tokens"], self.target_dictionary, target_mark, reference, target_specials),
            layers=self._layers,
            arrays=hypothesis.pop(MAPS_KEY),
        )


@dataclass
class TranslationNormConfig(TranslationConfig, NormConfig, MonitorConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's translation options and the plugin's."""


@register_task("translation_norm", dataclass=TranslationNormConfig)
class TranslationNormTask(MonitorMixin, NormMixin, TranslationTask):  # type: ignore[misc]
    """fairseq's ``translation`` task whose models show their maps, in training too."""
