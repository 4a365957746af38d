"""BERT's encoder as a fairseq model (``--arch bert``): RoBERTa with the eps of BERT's layer norms.

fairseq fixes eps at 1e-5, but BERT's is 1e-12, and its embeddings are so small that this changes their layer norm by
6e-3.  As a separate model, BERT stores eps in the checkpoint, so it holds for any task, and a fairseq without this
plugin refuses the checkpoint instead of computing something else.
"""

from __future__ import annotations

import argparse
from typing import Any

from fairseq.models import register_model, register_model_architecture
from fairseq.models.roberta import RobertaModel
from fairseq.models.roberta.model import base_architecture


@register_model("bert")
class BertModel(RobertaModel):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's RoBERTa with ``--layer-norm-eps``; parameters and their names are RoBERTa's."""

    @classmethod
    def hub_models(cls) -> dict[str, str]:
        """No models: ``python -m fairseq_norm_plugin.convert bert`` makes the checkpoints."""
        return {}

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
    base_architecture(args)
