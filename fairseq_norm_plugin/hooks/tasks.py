"""The fairseq tasks: of translation, of multilingual and pretrained models (docs/models.md), and of masked ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fairseq.data import (
    IdDataset,
    MaskTokensDataset,
    NestedDictionaryDataset,
    NumelDataset,
    PrependTokenDataset,
    RightPadDataset,
    data_utils,
)
from fairseq.data.multilingual.multilingual_data_manager import MultilingualDatasetManager
from fairseq.data.multilingual.multilingual_utils import get_lang_tok
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from torch import nn

from alignment_eval.errors import InputError, UsageError, printable, shown
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import ENCODER_SELF
from fairseq_norm_plugin.hooks.mixin import NormMixin
from fairseq_norm_plugin.hooks.monitoring import MonitorMixin
from fairseq_norm_plugin.hooks.options import MaskedLMNormConfig, MonitorConfig, NormConfig
from fairseq_norm_plugin.text.tokens import SpecialTokens


@register_task("masked_lm_norm", dataclass=MaskedLMNormConfig)
class MaskedLMNormTask(MaskedLMTask):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's ``masked_lm`` for reading maps: every line of text is a sample ``<s> … </s>``.

    ``--mask-prob`` masks tokens as in pretraining; options of blocks are ignored.
    """

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """fairseq's model with its self-attention swapped (capture/attention.py)."""
        model: nn.Module = super().build_model(cfg, from_checkpoint=from_checkpoint)
        swap_attention(model, required=ENCODER_SELF)
        return model

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse training, because this task masks no tokens by default."""
        raise UsageError("--task masked_lm_norm is for analysis; train with --task masked_lm")

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load the lines of subset ``split``."""
        directory = self.cfg.data.split(":")[0]
        text = data_utils.load_indexed_dataset(f"{directory}/{split}", self.source_dictionary, combine=combine)
        if text is None:
            raise InputError(f"{directory}: no subset {split}; make it with fairseq-preprocess --only-source")
        tokens = PrependTokenDataset(text, self.source_dictionary.bos())
        if self.cfg.mask_prob:
            tokens, _ = MaskTokensDataset.apply_mask(
                tokens,
                self.source_dictionary,
                pad_idx=self.source_dictionary.pad(),
                mask_idx=self.mask_idx,
                seed=self.cfg.seed,
                mask_prob=self.cfg.mask_prob,
                leave_unmasked_prob=self.cfg.leave_unmasked_prob,
                random_token_prob=self.cfg.random_token_prob,
            )
        self.datasets[split] = NestedDictionaryDataset(
            {
                "id": IdDataset(),
                "net_input": {
                    "src_tokens": RightPadDataset(tokens, pad_idx=self.source_dictionary.pad()),
                    "src_lengths": NumelDataset(tokens, reduce=False),
                },
            },
            sizes=[text.sizes + 1],
        )


@dataclass
class TranslationNormConfig(TranslationConfig, NormConfig, MonitorConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's translation options and the plugin's."""


@register_task("translation_norm", dataclass=TranslationNormConfig)
class TranslationNormTask(MonitorMixin, NormMixin, TranslationTask):  # type: ignore[misc]
    """fairseq's ``translation`` task with maps, also during training."""

    #: The tag of the target language that every source begins with, for reading raw text; data sets hold it themselves.
    target_tag: str | None = None

    @property
    def language_tags(self) -> Sequence[str]:
        """The tag of the target language, if the model has tags."""
        return () if self.target_tag is None else (self.target_tag,)

    @property
    def tagged_direction(self) -> str | None:
        """``en-fra``, of the tag ``>>fra<<``."""
        return None if self.target_tag is None else f"{self.cfg.source_lang}-{self.target_tag.strip('<>[]_')}"

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tag before the source; both sides end in ``</s>``."""
        before = tuple(self.source_dictionary.index(tag) for tag in self.language_tags)
        return replace(super().special_tokens, source_prefix=before)


class ArgparseMixin:
    """Adds a norm task's options to a fairseq task that takes its options from argparse; list it first.

    Such a task gets the options of all groups in one Namespace, which is ``cfg`` here.
    """

    #: The dataclasses of the options that are added.
    added_options: tuple[type[FairseqDataclass], ...] = (NormConfig,)

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add fairseq's arguments and those of :attr:`added_options`."""
        super().add_args(parser)  # type: ignore[misc]
        for options in cls.added_options:
            gen_parser_from_dataclass(parser, options())

    @classmethod
    def setup_task(cls, args: Namespace, **kwargs: Any) -> Any:
        """Set up fairseq's task; its options are available as ``cfg`` and as ``args``.

        A checkpoint of stock fairseq lacks those of :attr:`added_options`: they have their defaults.
        """
        defaults = {field.name: field.default for options in cls.added_options for field in fields(options)}
        vars(args).update({name: value for name, value in defaults.items() if name not in args})
        task = super().setup_task(args, **kwargs)  # type: ignore[misc]
        task.cfg = task.args = args
        return task


@register_task("translation_multi_simple_epoch_norm")
class TranslationMultiSimpleEpochNormTask(ArgparseMixin, NormMixin, TranslationMultiSimpleEpochTask):  # type: ignore[misc]
    """fairseq's ``translation_multi_simple_epoch`` whose models show their maps."""

    input_options = ("langs", "langtoks", "lang_tok_style", "lang_tok_replacing_bos_eos")

    @classmethod
    def setup_task(cls, args: Namespace, **kwargs: Any) -> Any:
        """Set up fairseq's task."""
        if args.lang_pairs is not None and (args.source_lang or args.target_lang):
            cls.check_languages(args)
        return super().setup_task(args, **kwargs)

    @classmethod
    def check_languages(cls, args: Namespace) -> None:
        """Check that the model has the languages."""
        pairs = args.lang_pairs.split(",") if isinstance(args.lang_pairs, str) else args.lang_pairs
        known = Namespace(langs=args.langs, lang_dict=args.lang_dict, lang_pairs=pairs)
        _check_languages(args, MultilingualDatasetManager.load_langs(known), "--langs, --lang-dict or --lang-pairs")

    @property
    def language_tags(self) -> list[str]:
        """``__de__`` or ``[de]``, for every kind of data that has its own tags."""
        style, specs = self.args.lang_tok_style, self.args.langtoks_specs
        return [get_lang_tok(language, style, spec) for spec in specs for language in self.langs]

    @property
    def special_tokens(self) -> SpecialTokens:
        """Tags before the sides, or in the place of ``</s>``."""
        source, target, manager = self.args.source_lang, self.args.target_lang, self.data_manager
        encoder_spec, decoder_spec = self.args.langtoks["main"]
        try:
            of_source = manager.get_encoder_langtok(source, target, encoder_spec)
            of_target = manager.get_decoder_langtok(target, decoder_spec)
        except AssertionError as error:  # fairseq adds the tags of --langtoks-specs only
            raise InputError(
                f"{printable(str(error), 120)}: --langtoks {shown(self.args.langtoks['main'])} and "
                f"--langtoks-specs {shown(self.args.langtoks_specs)} do not go together; give those of the training"
            ) from error
        eos = self.target_dictionary.eos()
        before = [() if tag is None else (tag,) for tag in (of_source, of_target)]
        if self.args.lang_tok_replacing_bos_eos:
            return SpecialTokens((), before[0] or (eos,), (), (eos,), eos if of_target is None else of_target)
        return SpecialTokens(before[0], (eos,), before[1], (eos,), eos)


@register_task("translation_from_pretrained_bart_norm")
class TranslationFromPretrainedBARTNormTask(
    ArgparseMixin,
    MonitorMixin,
    NormMixin,
    TranslationFromPretrainedBARTTask,  # type: ignore[misc]
):
    """fairseq's ``translation_from_pretrained_bart`` whose models show their maps, in training too."""

    added_options = (NormConfig, MonitorConfig)
    input_options = ("langs", "prepend_bos")

    @classmethod
    def setup_task(cls, args: Namespace, **kwargs: Any) -> Any:
        """Set up fairseq's task."""
        cls.check_languages(args)
        task = super().setup_task(args, **kwargs)
        cls.check_languages(args)  # now also those that fairseq has detected from the data
        return task

    @classmethod
    def check_languages(cls, args: Namespace) -> None:
        """Check that the model has the languages."""
        if not args.langs:
            raise UsageError("--langs is missing; give the languages of the pretrained model, in its order")
        _check_languages(args, args.langs.split(","), "--langs")

    @classmethod
    def with_dictionaries(cls, args: Namespace, files: Sequence[Path]) -> Any:
        """The task with the dictionaries of source and target in ``files``, for reading text."""
        task = cls(args, *(cls.load_dictionary(str(file)) for file in files))
        task.cfg = task.args = args
        return task

    @property
    def language_tags(self) -> list[str]:
        """``[de_DE]`` for each language."""
        return [f"[{language}]" for language in self.langs]

    @property
    def special_tokens(self) -> SpecialTokens:
        """The tag after ``</s>``; the decoder starts with the target's tag."""
        dictionaries = self.source_dictionary, self.target_dictionary
        languages = self.args.source_lang, self.args.target_lang
        tags = [dictionary.index(f"[{language}]") for dictionary, language in zip(dictionaries, languages)]
        before = (dictionaries[0].bos(),) if getattr(self.args, "prepend_bos", False) else ()
        source, target = ((dictionary.eos(), tag) for dictionary, tag in zip(dictionaries, tags))
        return SpecialTokens(before, source, before, target, tags[1])


def _check_languages(args: Namespace, known: Sequence[str], origin: str) -> None:
    for option, language in (("--source-lang", args.source_lang), ("--target-lang", args.target_lang)):
        if language is not None and language not in known:
            near = get_close_matches(language, known, n=5, cutoff=0.3) or known[:5]
            raise UsageError(
                f"{option} {language} is not one of the model's {len(known)} languages ({origin}), such as "
                f"{', '.join(near)}"
            )
