"""The fairseq tasks: of translation, of multilingual and pretrained models (docs/models.md), and of masked ones."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, fields
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
from fairseq.dataclass import FairseqDataclass
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMTask
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from fairseq.tasks.translation_from_pretrained_bart import TranslationFromPretrainedBARTTask
from fairseq.tasks.translation_multi_simple_epoch import TranslationMultiSimpleEpochTask
from torch import nn

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import ENCODER_SELF
from fairseq_norm_plugin.hooks.mixin import NormMixin
from fairseq_norm_plugin.hooks.monitoring import MonitorMixin
from fairseq_norm_plugin.hooks.options import MaskedLMNormConfig, MonitorConfig, NormConfig
from fairseq_norm_plugin.text.tokens import check_languages


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
            check_languages(cls, args)
        return super().setup_task(args, **kwargs)


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
        check_languages(cls, args)
        task = super().setup_task(args, **kwargs)
        check_languages(cls, args)  # now also those that fairseq has detected from the data
        return task
