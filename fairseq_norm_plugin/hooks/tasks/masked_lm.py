"""The task ``masked_lm_norm``: analysis of masked language models (RoBERTa, BERT) on unmasked text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairseq.data import (
    IdDataset,
    NestedDictionaryDataset,
    NumelDataset,
    PrependTokenDataset,
    RightPadDataset,
    data_utils,
)
from fairseq.tasks import register_task
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from torch import nn

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import ENCODER_SELF


@dataclass
class MaskedLMNormConfig(MaskedLMConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's options of masked language models; options of masking and of blocks are ignored."""


@register_task("masked_lm_norm", dataclass=MaskedLMNormConfig)
class MaskedLMNormTask(MaskedLMTask):  # type: ignore[misc]
    """fairseq's ``masked_lm`` for reading maps: every line of text is a sample ``<s> … </s>`` without masks."""

    def build_model(self, cfg: Any, from_checkpoint: bool = False) -> nn.Module:
        """fairseq's model with its self-attention swapped (capture/attention.py)."""
        model: nn.Module = super().build_model(cfg, from_checkpoint=from_checkpoint)
        swap_attention(model, required=ENCODER_SELF)
        return model

    def build_criterion(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse training, because this task masks no tokens."""
        raise UsageError("--task masked_lm_norm is for analysis and masks no tokens; train with --task masked_lm")

    def load_dataset(self, split: str, epoch: int = 1, combine: bool = False, **kwargs: Any) -> None:
        """Load the lines of subset ``split``."""
        directory = self.cfg.data.split(":")[0]
        text = data_utils.load_indexed_dataset(f"{directory}/{split}", self.source_dictionary, combine=combine)
        if text is None:
            raise InputError(
                f"{directory}: the directory has no subset {split}; make {split}.bin and {split}.idx with "
                f"fairseq-preprocess --only-source"
            )
        tokens = PrependTokenDataset(text, self.source_dictionary.bos())
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
