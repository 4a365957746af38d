"""BERT (``--arch bert``), and its reader.

BERT is fairseq's RoBERTa with another eps.  RoBERTa fixes the eps of its layer norms at 1e-5, but BERT's is 1e-12, and
its embeddings are so small that this changes their layer norm by 6e-3.  As a separate model, BERT stores eps in the
checkpoint, so it holds for any task, and a fairseq without this plugin refuses the checkpoint instead of computing
something else.  Its pooler and next-sentence classifier are left out; a model without a masked-LM head gets one of NaN,
so that its predictions cannot be taken for some (docs/analysis.md).
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.models import register_model, register_model_architecture
from fairseq.models.roberta import RobertaModel
from fairseq.models.roberta.model import base_architecture as roberta_base
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.reading import TextFile
from fairseq_norm_plugin.transformers.text import plain_config, write_dictionary
from fairseq_norm_plugin.transformers.weights import ACTIVATIONS, Weights, read_config, read_weights

#: BERT's special token -> fairseq's, in the order of fairseq's ids; the masked-LM task counts <mask> as the last.
BERT_SPECIALS = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": "<mask>"}
_ENCODER, _HEAD = "encoder.sentence_encoder", "encoder.lm_head"
_WORDS, _HEAD_BIAS = "embeddings.word_embeddings.weight", "cls.predictions.bias"
#: Parts of the names of BERT's tensors -> fairseq's, replaced one after the other.
_RENAMED = {
    "gamma": "weight",  # of models converted from TensorFlow
    "beta": "bias",
    "encoder.layer.": f"{_ENCODER}.layers.",
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "self_attn_layer_norm",
    "intermediate.dense": "fc1",
    "output.dense": "fc2",
    "output.LayerNorm": "final_layer_norm",
    "embeddings.LayerNorm": f"{_ENCODER}.layernorm_embedding",
    "cls.predictions.transform.dense": f"{_HEAD}.dense",
    "cls.predictions.transform.LayerNorm": f"{_HEAD}.layer_norm",
}
#: Tensors that no hidden state and no masked-LM prediction depends on, or that are copies of others.
_UNUSED = re.compile(
    r"pooler\.|cls\.seq_relationship\.|embeddings\.(position|token_type)_ids$|cls\.predictions\.decoder\.bias$"
)
_ALLOWED: dict[str, Sequence[object]] = {
    "model_type": ["bert"],
    "position_embedding_type": ["absolute"],
    "is_decoder": [False],
    "hidden_act": [name for name, ours in ACTIVATIONS.items() if ours != "swish"],
}
_SIZES = {
    **dict.fromkeys(
        ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    ),
    "type_vocab_size": 2,
}


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


def read_bert(model: Path, place: Path) -> tuple[Any, dict[str, Any], dict[str, Tensor]]:
    """fairseq's task, options and parameters of a directory of Transformers; dict.txt is written to ``place``."""
    path = model / "config.json"
    config = read_config(path, _ALLOWED, _SIZES)
    if type(config.get("layer_norm_eps")) not in (int, float):
        raise InputError(f"{path}: layer_norm_eps is {config.get('layer_norm_eps')!r}, not a number")
    tokens = _read_vocabulary(model / "vocab.txt")
    if config.get("vocab_size", len(tokens)) != len(tokens):
        raise InputError(f"{model / 'vocab.txt'}: {len(tokens)} tokens, but config.json gives {config['vocab_size']}")
    *first, mask = BERT_SPECIALS
    order = [*first, *(token for token in tokens if token not in BERT_SPECIALS), mask]
    dictionary = write_dictionary(place / "dict.txt", [*order[len(first) : -1], BERT_SPECIALS[mask]])
    args = argparse.Namespace(
        _name="bert",
        layer_norm_eps=config["layer_norm_eps"],
        activation_fn=ACTIVATIONS[config["hidden_act"]],
        encoder_layers=config["num_hidden_layers"],
        encoder_embed_dim=config["hidden_size"],
        encoder_ffn_embed_dim=config["intermediate_size"],
        encoder_attention_heads=config["num_attention_heads"],
        max_positions=config["max_position_embeddings"],
    )
    task = MaskedLMConfig(_name="masked_lm", data=".", sample_break_mode="eos", tokens_per_sample=args.max_positions)
    cfg = {
        **plain_config(FairseqConfig()),
        "model": args,
        "task": plain_config(task),
        "criterion": {"_name": "masked_lm"},
    }
    return MaskedLMTask(task, dictionary), cfg, _parameters(model, config, [tokens.index(token) for token in order])


def _read_vocabulary(path: Path) -> list[str]:
    """The tokens of vocab.txt, by BERT's ids."""
    tokens = [line for chunk in TextFile(path) for line in chunk.decode().split("\n")[:-1]]
    seen: set[str] = set()
    for number, token in enumerate(tokens, 1):
        if token.split() != [token] or token in seen or token in BERT_SPECIALS.values():
            raise InputError(
                f"{path}:{number}: token {token!r} contains a blank, is a duplicate, or is one of fairseq's own"
            )
        seen.add(token)
    for special in BERT_SPECIALS:
        if special not in seen:
            raise InputError(f"{path}: the file has no {special}; give the vocab.txt of a BERT model")
    return tokens


def _parameters(model: Path, config: dict[str, Any], order: list[int]) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names; ``order`` has BERT's id of each of fairseq's tokens."""
    tensors = read_weights(model)
    for old, new in {"bert.": "", **_RENAMED}.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    weights = Weights(tensors, model)
    width = config["hidden_size"]
    words = weights.take_one([_WORDS, "cls.predictions.decoder.weight"], len(order), width)[order]
    places, types = (
        weights.take(f"embeddings.{name}_embeddings.weight", config[size], width).float()
        for name, size in (("position", "max_position_embeddings"), ("token_type", "type_vocab_size"))
    )
    if _HEAD_BIAS in weights:
        head = {"bias": weights.take(_HEAD_BIAS, len(order))[order]}
    else:
        shapes: dict[str, tuple[int, ...]] = {"dense.weight": (width, width), "bias": (len(order),)}
        shapes.update(dict.fromkeys(("dense.bias", "layer_norm.weight", "layer_norm.bias"), (width,)))
        head = {name: torch.full(shape, torch.nan) for name, shape in shapes.items()}
    return {
        f"{_ENCODER}.embed_tokens.weight": words,
        # fairseq counts positions from the id of <pad>, 1, plus one; single sentences are all of token type 0
        f"{_ENCODER}.embed_positions.weight": torch.cat([torch.zeros(2, width), places + types[0]]),
        **{f"{_HEAD}.{name}": tensor for name, tensor in {"weight": words, **head}.items()},
        **weights.take_rest(_UNUSED),
    }
