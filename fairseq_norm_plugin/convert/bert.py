"""BERT models: the plugin's ``--arch bert`` has their hidden states, in float32 (docs/bert.md).

The pooler and the next-sentence classifier are left out.  A model without a masked-LM head gets one of NaN, so that its
predictions cannot be taken for some.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.links.text import TextFile
from fairseq_norm_plugin.convert.checkpoint import converted, write_checkpoint
from fairseq_norm_plugin.transformers.families import write_dictionary
from fairseq_norm_plugin.transformers.text import plain
from fairseq_norm_plugin.transformers.weights import Stored, Weights, check_heads, read_config, read_weights

#: Transformers' hidden_act -> fairseq's --activation-fn.
ACTIVATIONS = {"gelu": "gelu", "gelu_new": "gelu_accurate", "gelu_pytorch_tanh": "gelu_accurate", "relu": "relu"}
#: BERT's special token -> fairseq's, in the order of fairseq's ids; the masked-LM task counts <mask> as the last.
SPECIALS = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": "<mask>"}
#: fairseq module -> BERT's, in an encoder layer.
LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
#: Tensors that no hidden state and no masked-LM prediction depends on, or that are copies of others.
_UNUSED = re.compile(
    r"pooler\.|cls\.seq_relationship\.|embeddings\.(position|token_type)_ids$|cls\.predictions\.decoder\."
)
_ALLOWED: dict[str, list[Any]] = {
    "model_type": ["bert"],
    "position_embedding_type": ["absolute"],
    "is_decoder": [False],
    "hidden_act": list(ACTIVATIONS),
}
_SIZES: dict[str, int | None] = {
    **dict.fromkeys(("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")),
    "max_position_embeddings": None,
    "type_vocab_size": 2,
}


def convert(model: Path, out: Path, overwrite: bool = False) -> None:
    """Write OUT/dict.txt and OUT/checkpoint.pt.

    Args:
        model: directory with config.json, vocab.txt and model.safetensors or pytorch_model.bin, or these in parts.
        out: directory to write.
        overwrite: replace ``out``.
    """
    with converted(model, out, overwrite) as directory:
        config = read_config(model / "config.json", _ALLOWED, _SIZES)
        check_heads(model / "config.json", config, "hidden_size", "num_attention_heads")
        if type(config.get("layer_norm_eps")) not in (int, float):
            raise InputError(f"config.json: layer_norm_eps is {config.get('layer_norm_eps')!r}, not a number")
        tokens = read_vocabulary(model / "vocab.txt")
        if config.get("vocab_size", len(tokens)) != len(tokens):
            raise InputError(f"vocab.txt has {len(tokens)} tokens, but config.json gives {config['vocab_size']}")
        ids = {token: number for number, token in enumerate(tokens)}
        ordinary = [token for token in tokens if token not in SPECIALS]
        *first, mask = SPECIALS
        dictionary = write_dictionary(directory / "dict.txt", [*ordinary, SPECIALS[mask]])
        order = [ids[token] for token in (*first, *ordinary, mask)]
        args = _options(config)
        task = MaskedLMConfig(
            _name="masked_lm", data=".", sample_break_mode="eos", tokens_per_sample=args.max_positions
        )
        built = MaskedLMTask(task, dictionary).build_model(args)
        # gamma and beta: the layer norms of models converted from TensorFlow
        tensors = {
            name.removeprefix("bert.").replace("Norm.gamma", "Norm.weight").replace("Norm.beta", "Norm.bias"): tensor
            for name, tensor in read_weights(model).items()
        }
        built.load_state_dict(fairseq_weights(config, tensors, order), strict=True)
        cfg = {**plain(FairseqConfig()), "model": args, "task": plain(task), "criterion": {"_name": "masked_lm"}}
        write_checkpoint(directory, built, cfg)


def read_vocabulary(path: Path) -> list[str]:
    """The tokens of vocab.txt, by BERT's ids."""
    tokens = [line for chunk in TextFile(path) for line in chunk.decode().split("\n")[:-1]]
    seen: set[str] = set()
    for number, token in enumerate(tokens, 1):
        if token.split() != [token] or token in seen or token in SPECIALS.values():
            raise InputError(
                f"{path}:{number}: token {token!r} contains a blank, is a duplicate, or is one of fairseq's own"
            )
        seen.add(token)
    for special in SPECIALS:
        if special not in seen:
            raise InputError(f"{path}: the file has no {special}; give the vocab.txt of a BERT model")
    return tokens


def fairseq_weights(config: dict[str, Any], tensors: dict[str, Stored], order: Sequence[int]) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names, from BERT's by name.

    The embedding of token type 0 is added to every position's: single sentences are all of that type.  ``order`` has
    BERT's id of each of fairseq's.
    """
    weights = Weights(tensors, f"a BERT of {config['num_hidden_layers']} layers")
    width, inner = config["hidden_size"], config["intermediate_size"]
    words, places, types = (
        weights.take(f"embeddings.{name}_embeddings.weight", count, width).rows().float()
        for name, count in (
            ("word", len(order)),
            ("position", config["max_position_embeddings"]),
            ("token_type", config["type_vocab_size"]),
        )
    )
    result: dict[str, Tensor | Stored] = {
        "embed_tokens.weight": words[list(order)],
        # fairseq counts positions from the id of <pad>, 1, plus one
        "embed_positions.weight": torch.cat([torch.zeros(2, width), places + types[0]]),
        **weights.module("layernorm_embedding", "embeddings.LayerNorm", width),
    }
    shapes = {"fc1": (inner, width), "fc2": (width, inner)}
    for number in range(config["num_hidden_layers"]):
        for ours, theirs in LAYER.items():
            shape = (width,) if "norm" in ours else shapes.get(ours, (width, width))
            result.update(weights.module(f"layers.{number}.{ours}", f"encoder.layer.{number}.{theirs}", *shape))
    result = {f"sentence_encoder.{name}": tensor for name, tensor in result.items()}
    result.update(_head(weights, words, order))
    weights.check_empty(_UNUSED)
    return {
        f"encoder.{name}": tensor.rows() if isinstance(tensor, Stored) else tensor for name, tensor in result.items()
    }


def _head(weights: Weights, words: Tensor, order: Sequence[int]) -> dict[str, Tensor | Stored]:
    """The masked-LM head; one of NaN if the model has none."""
    size, width = words.shape
    result: dict[str, Tensor | Stored] = {"lm_head.weight": words[list(order)]}
    if "cls.predictions.bias" not in weights:
        shapes = {"dense.weight": (width, width), "dense.bias": (width,), "bias": (size,)}
        shapes.update({"layer_norm.weight": (width,), "layer_norm.bias": (width,)})
        result.update({f"lm_head.{name}": torch.full(shape, torch.nan) for name, shape in shapes.items()})
        return result
    decoder = "cls.predictions.decoder.weight"
    if decoder in weights and not torch.equal(weights.take(decoder, size, width).rows().float(), words):
        raise InputError(f"{decoder} differs from the word embeddings; the head must be tied")
    result.update(weights.module("lm_head.dense", "cls.predictions.transform.dense", width, width))
    result.update(weights.module("lm_head.layer_norm", "cls.predictions.transform.LayerNorm", width))
    result["lm_head.bias"] = weights.take("cls.predictions.bias", size).rows()[list(order)]
    return result


def _options(config: dict[str, Any]) -> argparse.Namespace:
    return argparse.Namespace(
        _name="bert",
        layer_norm_eps=config["layer_norm_eps"],
        activation_fn=ACTIVATIONS[config["hidden_act"]],
        encoder_layers=config["num_hidden_layers"],
        encoder_embed_dim=config["hidden_size"],
        encoder_ffn_embed_dim=config["intermediate_size"],
        encoder_attention_heads=config["num_attention_heads"],
        max_positions=config["max_position_embeddings"],
    )
