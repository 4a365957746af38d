"""Load the checkpoint of a masked language model, and compute the maps of a sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.layers import ENCODER_SELF
from fairseq_norm_plugin.checkpoints.read import build_model, fairseq_errors, read_checkpoint_parts
from fairseq_norm_plugin.model.block_maps import BlockMaps, block_maps_of


class MaskedLM:
    """A masked language model, made by :func:`load_masked_lm`; several threads may use it, as with NormModel."""

    def __init__(self, task: Any, model: Any) -> None:
        self.task = task
        self.model = model

    def block_maps(self, sentence: str, kind: str) -> BlockMaps:
        """Compute the maps of ``kind`` of every layer's self-attention; only ``<mask>`` in the text is masked.

        Args:
            sentence: subwords separated by spaces, without ``<s>`` and ``</s>``.
            kind: a kind of map of one block (docs/maps.md).

        Raises:
            InputError: the sentence is empty or longer than the model takes.
            UsageError: an unknown kind.
        """
        dictionary = self.task.source_dictionary
        text = dictionary.encode_line(sentence, add_if_not_exist=False, append_eos=True).long()
        ids = torch.cat([text.new_tensor([dictionary.bos()]), text])
        limit = self.model.max_positions()
        if not 2 < len(ids) <= limit:
            raise InputError(f"{len(ids) - 2} tokens: expected 1 to {limit - 2} (<s> and </s> are added)")
        tokens = tuple(dictionary[i] for i in ids.tolist())
        return block_maps_of([self.model], {"src_tokens": ids[None]}, ENCODER_SELF, kind, tokens, tokens)


def load_masked_lm(path: str | Path, data: str | Path) -> MaskedLM:
    """Load a masked language model (fairseq's RoBERTa, or a converted BERT) to read maps from.

    Args:
        path: the checkpoint.
        data: the directory with ``dict.txt``.

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, or the model has no Transformer encoder.
    """
    from fairseq_norm_plugin.hooks.tasks.masked_lm import MaskedLMNormConfig, MaskedLMNormTask

    for name in (str(path), str(Path(data) / "dict.txt")):
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file: expected the checkpoint, and dict.txt in {data}")
    with fairseq_errors(f"{data}/dict.txt: not a dictionary of fairseq", "give the dict.txt of the model"):
        task = MaskedLMNormTask.setup_task(MaskedLMNormConfig(data=str(data)))
    return MaskedLM(task, build_model(task, read_checkpoint_parts([str(path)]), str(path)))
