"""The networks that fairseq lacks: Marian's Transformer (``--arch marian``), and BERT (``--arch bert``).

Marian's, which OPUS-MT models are read into, is fairseq's with these differences, as in Transformers'
``MarianMTModel``:

- The first input of the decoder is the embedding of ``<pad>``.  fairseq's data, search and scoring begin a target with
  ``</s>``, which no other decoder input is, so the decoder looks up ``<pad>`` for it.
- Positions are Marian's sinusoids, which have other frequencies than fairseq's.
- The output projection has a bias (``final_logits_bias``), ``decoder.output_projection.bias``.
- ``--activation-fn swish`` works; in fairseq's own models it does not.

BERT is fairseq's RoBERTa with another eps.  RoBERTa fixes the eps of its layer norms at 1e-5, but BERT's is 1e-12, and
its embeddings are so small that this changes their layer norm by 6e-3.  As a separate model, BERT stores eps in the
checkpoint, so it holds for any task, and a fairseq without this plugin refuses the checkpoint instead of computing
something else.
"""

from __future__ import annotations

import argparse
from typing import Any

import torch
from fairseq import utils
from fairseq.models import register_model, register_model_architecture
from fairseq.models.roberta import RobertaModel
from fairseq.models.roberta.model import base_architecture as roberta_base
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch import Tensor, nn


class MarianPositions(nn.Module):
    """Marian's ``count`` sinusoidal positions, counted from 0 in every sentence, wherever its padding (``pad``) is."""

    def __init__(self, count: int, width: int, pad: int) -> None:
        super().__init__()
        self.pad = pad
        self.max_positions = count
        # fairseq counts positions from the id of padding, plus one
        table = torch.cat([torch.zeros(pad + 1, width), sinusoids(count, width)])
        self.register_buffer("weights", table, persistent=False)

    def forward(
        self,
        tokens: Tensor,
        incremental_state: dict[str, Any] | None = None,
        timestep: Tensor | None = None,
        positions: Tensor | None = None,
    ) -> Tensor:
        """The embeddings [B, T, D] of ``tokens`` [B, T]; [B, 1, D] of the last one in incremental decoding."""
        if incremental_state is not None:
            numbers = tokens.new_full((len(tokens), 1), self.pad + tokens.size(1))
        else:
            numbers = utils.make_positions(tokens, self.pad)
        return nn.functional.embedding(numbers, self.get_buffer("weights"))


def sinusoids(count: int, width: int) -> Tensor:
    """sin(p / 10000^(2k / width)) for all k, then the cosines: [count, width] for positions p from 0, in float32.

    Vaswani et al. (2017), section 3.5, with sines and cosines in two halves.  fairseq has (width / 2 - 1) in the place
    of width / 2.
    """
    steps = torch.arange(0, width, 2, dtype=torch.float64)
    angles = torch.arange(count, dtype=torch.float64)[:, None] / 10000 ** (steps / width)
    return torch.cat([angles.sin(), angles.cos()[:, : width // 2]], dim=1).float()


class DecoderEmbedding(nn.Embedding):
    """The target embedding, which looks up ``<pad>`` for ``</s>``, ``start``; it shares the weight of ``embedding``."""

    def __init__(self, embedding: nn.Embedding, start: int) -> None:
        rows, width = embedding.weight.shape
        super().__init__(rows, width, embedding.padding_idx, _weight=embedding.weight)
        self.weight = embedding.weight
        self.start = start

    def forward(self, input: Tensor) -> Tensor:
        """The embeddings [..., D] of ids [...]."""
        assert self.padding_idx is not None
        return super().forward(input.masked_fill(input == self.start, self.padding_idx))


@register_model("marian")
class MarianModel(TransformerModel):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's Transformer with Marian's decoder start, positions, output bias and swish."""

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Any:
        """Build fairseq's model, then change the parts that differ."""
        model = super().build_model(args, task)
        for stack, count in ((model.encoder, args.max_source_positions), (model.decoder, args.max_target_positions)):
            stack.embed_positions = MarianPositions(count, stack.embed_tokens.embedding_dim, stack.padding_idx)
            for layer in stack.layers if args.activation_fn == "swish" else ():
                layer.activation_fn = nn.functional.silu  # fairseq has the class of the module
        decoder = model.decoder
        decoder.embed_tokens = DecoderEmbedding(decoder.embed_tokens, task.target_dictionary.eos())
        decoder.output_projection.bias = nn.Parameter(torch.zeros(len(task.target_dictionary)))
        return model


@register_model_architecture("marian", "marian")  # type: ignore[untyped-decorator]
def marian_architecture(args: Any) -> None:
    """The shape of OPUS-MT's base models."""
    args.activation_fn = getattr(args, "activation_fn", "swish")
    args.share_all_embeddings = getattr(args, "share_all_embeddings", True)
    args.max_source_positions = getattr(args, "max_source_positions", 512)
    args.max_target_positions = getattr(args, "max_target_positions", 512)
    base_architecture(args)


@register_model("bert")
class BertModel(RobertaModel):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's RoBERTa with ``--layer-norm-eps``; parameters and their names are RoBERTa's."""

    @staticmethod
    def add_args(parser: argparse.ArgumentParser) -> None:
        """Add RoBERTa's options and eps."""
        RobertaModel.add_args(parser)
        parser.add_argument("--layer-norm-eps", type=float, help="eps of every layer norm (default: 1e-12)")

    @classmethod
    def build_model(cls, args: Any, task: Any) -> Any:
        """Build fairseq's model, then set eps."""
        model = super().build_model(args, task)
        for module in model.modules():
            if hasattr(module, "normalized_shape"):  # torch's LayerNorm, or apex's
                module.eps = args.layer_norm_eps
        return model


@register_model_architecture("bert", "bert")  # type: ignore[untyped-decorator]
def bert_architecture(args: Any) -> None:
    """RoBERTa base with BERT's eps."""
    args.layer_norm_eps = getattr(args, "layer_norm_eps", 1e-12)
    roberta_base(args)
