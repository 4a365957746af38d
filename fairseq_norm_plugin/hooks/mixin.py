"""The fairseq hooks through which the plugin adds maps to any translation task."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from fairseq.data.iterators import EpochBatchIterator
from torch import float32, nn

from alignment_eval.errors import UsageError, say, warn_user
from alignment_eval.maps.sentence import DEFAULT_KINDS
from alignment_eval.profiles.chosen import AlignmentOptions, choose_method
from alignment_eval.profiles.profile import Profile, find_profile
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import check_architecture, check_vocabulary
from fairseq_norm_plugin.capture.recorder import Hypotheses, RecordedMaps, layers_and_heads
from fairseq_norm_plugin.checkpoints.files import profile_file
from fairseq_norm_plugin.checkpoints.identity import (
    ParameterHash,
    architecture_hash,
    data_hash,
    dictionary_hash,
    model_hash,
)
from fairseq_norm_plugin.checkpoints.read import languages_of, languages_warning
from fairseq_norm_plugin.environment import versions
from fairseq_norm_plugin.hooks.datasets import BinarisedText, all_batches
from fairseq_norm_plugin.hooks.generator import NormOptions, PrintedMap, carry_maps
from fairseq_norm_plugin.hooks.options import (
    AER_GOLD,
    ALIGNMENTS,
    PRINT,
    RECORDS,
    TRAINING,
    check_command,
    check_used,
    other_option,
    resolve,
)
from fairseq_norm_plugin.hooks.session import Plan, RecordingSession
from fairseq_norm_plugin.model.model import Model
from fairseq_norm_plugin.model.text_check import check_parallel, sample_lines
from fairseq_norm_plugin.text.pair import SentencePair, TextPipeline
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from fairseq_norm_plugin.text.tokens import Vocabulary, language_tags, special_ids, special_tokens, tagged_hash

logger = logging.getLogger(__name__)

#: Options of generation that change no map.
_SILENT_OPTIONS = {"_name", "print_alignment", "print_step", "no_beamable_mm"}


class NormMixin:
    """Adds maps to a translation task; list it before the task's own class.

    fairseq-generate calls ``build_model``, ``load_dataset``, ``get_batch_iterator``, ``build_generator``, then
    ``inference_step`` for each batch.  The iterator plans the run, the generator opens its session, and the last step
    finishes it.

    A task with language tags overrides :attr:`input_options`.
    """

    cfg: Any
    datasets: dict[str, Any]
    source_dictionary: Any
    target_dictionary: Any
    input_options: Sequence[str] = ()  #: more options of the task that change the input of the model
    check_loaded: Callable[[str, Any], None] | None = None  #: what a criterion checks of each subset that is loaded
    built: nn.Module | None = None  #: the last model, until the criterion is built
    _training = False
    _skipped: Mapping[int, str]
    _plan: Plan | None = None
    _session: RecordingSession | None = None
    _read: ParameterHash | None = None  #: of the models that were read from checkpoints

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """fairseq's model with its encoder-decoder attention swapped (capture/attention.py)."""
        self._training = True  # a generator that is built inside is of --eval-bleu
        check_architecture(cfg)
        model: nn.Module = super().build_model(cfg, from_checkpoint=from_checkpoint)  # type: ignore[misc]
        self._training = not from_checkpoint
        swap_attention(model)
        check_vocabulary(model)
        if from_checkpoint and (self.cfg.norm_records or self.cfg.norm_alignments):
            self._read = self._read or ParameterHash(float32)
            self._read.watch(model)
        self.built = model
        return model

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """fairseq's criterion; only training and validation build one, so this call identifies them."""
        gold = getattr(self.cfg, "aer_gold", None) is not None
        check_used(self.cfg, ([AER_GOLD, TRAINING] if self._training else [AER_GOLD]) if gold else [])
        self._training = True
        return super().build_criterion(*args, **kwargs)  # type: ignore[misc]

    def load_dataset(self, split: str, *args: Any, **kwargs: Any) -> None:
        """fairseq's data of a subset, checked by the criterion."""
        super().load_dataset(split, *args, **kwargs)  # type: ignore[misc]
        if self.check_loaded is not None:
            self.check_loaded(split, self.datasets[split])

    @property
    def vocabularies(self) -> tuple[Vocabulary, Vocabulary]:
        """The vocabularies of source and target."""
        dictionaries = self.source_dictionary, self.target_dictionary
        stated = [token for token in str(self.cfg.norm_special_tokens or "").split(",") if token]
        for token in stated:
            if not any(token in dictionary for dictionary in dictionaries):
                raise UsageError(
                    f"--norm-special-tokens {self.cfg.norm_special_tokens}: neither dictionary has {token}"
                )
        source, target = (
            Vocabulary(known, str(self.cfg.norm_subword_mark), special_ids(known, [*language_tags(self), *stated]))
            for known in dictionaries
        )
        return source, target

    def filter_indices_by_size(
        self, indices: Any, dataset: Any, max_positions: Any = None, ignore_invalid_inputs: bool = False
    ) -> Any:
        """fairseq's filter; remembers which sentences it skips."""
        kept = super().filter_indices_by_size(indices, dataset, max_positions, ignore_invalid_inputs)  # type: ignore[misc]
        reason = f"skipped: longer than max_positions={max_positions}"
        self._skipped = {int(id_): reason for id_ in np.setdiff1d(indices, kept)}
        return kept

    def get_batch_iterator(self, dataset: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's iterator; where nothing is trained, the sentences that it loses follow in batches of their own."""
        self._skipped = {}
        if self._training:  # a subset with gold adds them itself
            return super().get_batch_iterator(dataset, *args, **kwargs)  # type: ignore[misc]
        batch_by_size = dataset.batch_by_size

        def and_the_lost(*given: Any, **sizes: Any) -> list[Any]:
            batches, lost = all_batches(batch_by_size, *given, **sizes)
            return batches + lost

        dataset.batch_by_size = and_the_lost
        try:
            iterator = super().get_batch_iterator(dataset, *args, **kwargs)  # type: ignore[misc]
            if callable(iterator.batch_sampler):  # some tasks filter and batch their sentences only now
                iterator.batch_sampler = iterator.frozen_batches
        finally:
            del dataset.batch_by_size
        subset = next((name for name, loaded in self.datasets.items() if loaded is dataset), None)
        if subset is None:  # sentences of fairseq-interactive belong to none
            return iterator
        plan = self._plan = Plan(self.cfg, subset, iterator, self._skipped, kwargs)
        if not plan.kept:
            return iterator
        workers = {"num_workers": iterator.num_workers, "buffer_size": iterator.buffer_size}
        return EpochBatchIterator(dataset, iterator.collate_fn, plan.batches, **workers)

    def build_generator(self, models: Sequence[nn.Module], args: Any, **kwargs: Any) -> Any:
        """fairseq's generator or scorer; it carries maps if an option needs them."""
        if getattr(args, "score_reference", False) and not self._training:
            logger.info("the references are forced, not translated: a BLEU of this run compares them with themselves")
        style, outputs = getattr(args, "print_alignment", None), (self.cfg.norm_records, self.cfg.norm_alignments)
        wanted = not self._training and any(output is not None for output in outputs)
        if not self._training:
            given = zip((PRINT, RECORDS, ALIGNMENTS), (style or None, *outputs))
            check_used(self.cfg, [reader for reader, value in given if value is not None])
        if not (style or wanted):
            return super().build_generator(models, args, **kwargs)  # type: ignore[misc]
        check_command(self.cfg, args, wanted, interactive=self._plan is None and not self._training)
        self._warn_of_languages(models)
        if self._plan is not None and getattr(args, "score_reference", False):
            self._warn_of_text(models, self._plan)
        layers, heads = layers_and_heads(models)
        parameters = (self._read.whole if self._read else model_hash(models)) if wanted else ""
        profile = find_profile(self.cfg.norm_profile, self._beside()) if wanted else None
        if profile is not None:
            profile = profile.of(tagged_hash(parameters, special_tokens(self)))
        chosen = None
        if profile is not None and self.cfg.norm_alignments:
            chosen = choose_method(AlignmentOptions(), 1, [profile], None)
        options = resolve(self.cfg, layers, heads, chosen)
        kind, layer = options.maps.kind, options.maps.heads[0].layer
        read = {PRINT: style, ALIGNMENTS: options.extraction and options.extraction is not chosen}
        if by := [name for name, given in read.items() if given]:
            logger.info("%s: %s of decoder layer %d of %d (counted from 0)", ", ".join(by), kind, layer, layers)
        if style and kind not in DEFAULT_KINDS:
            raise UsageError(
                f"--print-alignment cannot show --norm-map {kind}, only {' or '.join(DEFAULT_KINDS)}; "
                "--norm-alignments and --norm-records support all kinds"
            )
        if style and self._plan is not None:
            self._warn_of_prefixes(self._plan, args)
        printed = (
            PrintedMap(options.maps, str(style), [known.specials for known in self.vocabularies]) if style else None
        )
        if chosen is not None and options.extraction is chosen:
            say(f"--norm-alignments: {chosen.reason}")
        recorded = self._open_session(models, args, parameters, options, profile) if wanted else None
        stock_args = copy.copy(args)
        stock_args.print_alignment = None
        generator = super().build_generator(models, stock_args, **kwargs)  # type: ignore[misc]
        return carry_maps(generator, printed, recorded)

    def _beside(self) -> Path | None:
        """Where the profile of the checkpoint is by default; None: no checkpoint is named."""
        checkpoint = other_option(self.cfg, "common_eval", "path")
        direction = f"{self.cfg.source_lang}-{self.cfg.target_lang}" if language_tags(self) else None
        return profile_file(str(checkpoint).split(":"), direction) if checkpoint else None

    def _warn_of_languages(self, models: Sequence[Any]) -> None:
        """Warn of models that were trained for other languages; a joint dictionary would not show it."""
        if language_tags(self):  # they tell the model its languages
            return
        used = (self.cfg.source_lang, self.cfg.target_lang)
        names = str(other_option(self.cfg, "common_eval", "path") or "the model").split(":")
        for name, model in zip(names, models):
            if (trained := languages_of(getattr(model, "args", None))) not in (None, used):
                warn_user(languages_warning(name, trained, used))

    def _warn_of_prefixes(self, plan: Plan, args: Any) -> None:
        """Warn of sentences that get no printed alignment (generator.NormSequenceGenerator)."""
        prefix, size = int(getattr(args, "prefix_size", 0)), self.datasets[plan.subset].size
        searches = prefix and args.beam > 1 and not args.score_reference
        if searches and (whole := sum(size(id_)[1] <= prefix for batch in plan.batches for id_ in batch)):
            warn_user(
                f"--prefix-size {prefix} covers the whole target of {whole} sentences: their A- lines are empty, "
                f"because fairseq's beam search returns the attention of other hypotheses then; --score-reference "
                f"forces whole targets"
            )

    def _warn_of_text(self, models: Sequence[nn.Module], plan: Plan) -> None:
        """Warn if source and target do not look like translations of each other."""
        for each in models:
            each.eval()
        source, target = (TextPipeline(MarkedSubwords(vocabulary.mark)) for vocabulary in self.vocabularies)
        path, dataset = other_option(self.cfg, "common_eval", "path"), self.datasets[plan.subset]
        model = Model(models, self.vocabularies, (source, target), str(path), special_tokens(self))

        def pair(id_: int) -> SentencePair:
            batch = dataset.collater([dataset[id_]])  # alike for all data sets of fairseq, where an item is not
            ids = batch["net_input"]["src_tokens"][0].tolist(), batch["target"][0].tolist()
            words = (
                " ".join(vocabulary.dictionary[i] for i in side if i not in vocabulary.specials)
                for vocabulary, side in zip(self.vocabularies, ids)
            )
            return SentencePair(source.read(next(words)), target.read(next(words)))

        check_parallel(((id_, pair(id_)) for id_ in sample_lines(plan.size) if id_ not in plan.skipped), model)

    def _open_session(
        self, models: Sequence[nn.Module], args: Any, parameters: str, options: NormOptions, profile: Profile | None
    ) -> RecordedMaps:
        plan = self._plan
        if plan is None:
            raise UsageError(
                "--norm-records and --norm-alignments need sentence ids: expected fairseq-generate, on binarised text"
            )
        cfg, languages, generation = self.cfg, (self.cfg.source_lang, self.cfg.target_lang), generation_options(args)
        named, dataset = (cfg.norm_source_text, cfg.norm_target_text), self.datasets[plan.subset]
        text = BinarisedText(dataset, plan.size, self.vocabularies, named, bool(cfg.truncate_source))
        signature = {  # everything that every output depends on
            **versions(),
            "task": type(self).__name__,
            "model": parameters,
            "dtype": str(next(models[0].parameters()).dtype).removeprefix("torch."),
            "architecture": architecture_hash(models),
            "data": data_hash(cfg.data.split(":")[0], plan.subset, languages),
            "dictionaries": dictionary_hash(self.source_dictionary, self.target_dictionary),
            "subset": plan.subset,
            "languages": list(languages),
            "marks": [vocabulary.mark for vocabulary in text.vocabularies],
            "special_tokens": [sorted(vocabulary.specials) for vocabulary in text.vocabularies],
            **{name: getattr(self, name, None) or getattr(cfg, name) for name in self.input_options},
            "left_pad": [cfg.left_pad_source, cfg.left_pad_target],
            "max_positions": [cfg.max_source_positions, cfg.max_target_positions],
            "truncate_source": cfg.truncate_source,
            "shards": plan.shards,
            "generation": generation,
            **({"texts": text.hashes} if any(text.hashes) else {}),
            **(plan.batching if plan.shards > 1 or generation.get("sampling") else {}),
        }
        self._session = RecordingSession(cfg, plan, text, options, signature, len(models), profile)
        if self._session.finished:
            # Nothing is left to do, and fairseq-generate has no other way to end successfully at this point.
            raise SystemExit(0)
        return self._session.recorded

    def inference_step(
        self, generator: Any, models: Sequence[nn.Module], sample: dict[str, Any], **kwargs: Any
    ) -> Hypotheses:
        """fairseq's step; writes the maps that the hypotheses carry to the run's output."""
        hypotheses: Hypotheses = super().inference_step(generator, models, sample, **kwargs)  # type: ignore[misc]
        if self._session is not None and not self._training:
            self._session.write(sample, hypotheses)
        return hypotheses


def generation_options(args: Any) -> dict[str, Any]:
    """The generation options of a run (fairseq's GenerationConfig in any of its forms), for JSON."""
    options = dict(args.items() if hasattr(args, "items") else vars(args))
    return {
        name: value if isinstance(value, (int, float, type(None))) else str(value)
        for name, value in sorted(options.items())
        if name not in _SILENT_OPTIONS
    }
