"""Turn a BERT model in Hugging Face's layout into a fairseq checkpoint and dictionary.

Reads MODEL/config.json, MODEL/vocab.txt and MODEL/model.safetensors (or pytorch_model.bin); writes OUT/checkpoint.pt
and OUT/dict.txt.  The checkpoint is of the plugin's `--arch bert`, so it needs `--user-dir fairseq_norm_plugin`; its
hidden states are the original's, in float32.  The pooler and the next-sentence classifier are left out.  A model
without a masked-LM head gets one of NaN, so that its predictions cannot be taken for some.  See docs/bert.md.
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import FairseqConfig
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from omegaconf import OmegaConf
from safetensors import SafetensorError
from safetensors.torch import load_file
from text_files import exit_status, fresh_files
from torch import Tensor

import fairseq_norm_plugin  # noqa: F401  # registers --arch bert
from alignment_eval.errors import InputError
from alignment_eval.formats.text import TextFile

#: Hugging Face's hidden_act -> fairseq's --activation-fn.
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
UNUSED = re.compile(
    r"pooler\.|cls\.seq_relationship\.|embeddings\.(position|token_type)_ids$|cls\.predictions\.decoder\."
)


def read_config(path: Path) -> dict[str, Any]:
    """Read config.json of a plain BERT, and refuse options that would compute something else.

    Raises:
        InputError: the file is absent or no such configuration.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot read the file ({error}); give the model's config.json") from error
    if not isinstance(config, dict):
        raise InputError(f"{path}: the file holds no JSON object; give the model's config.json")
    config = {"model_type": "bert", "position_embedding_type": "absolute", "is_decoder": False, **config}
    expected: dict[str, list[object]] = {
        "model_type": ["bert"],
        "position_embedding_type": ["absolute"],
        "is_decoder": [False],
        "hidden_act": list(ACTIVATIONS),
    }
    for name, allowed in expected.items():
        if config.get(name) not in allowed:
            raise InputError(
                f"{path}: {name} is {config.get(name)!r}, but only {' or '.join(map(str, allowed))} is supported"
            )
    sizes = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    for name in (*sizes, "layer_norm_eps"):
        if not isinstance(config.get(name), (int, float)):
            raise InputError(f"{path}: {name} is {config.get(name)!r}, not a number")
    if config["hidden_size"] % config["num_attention_heads"]:
        raise InputError(
            f"{path}: hidden_size {config['hidden_size']} is not a multiple of "
            f"num_attention_heads {config['num_attention_heads']}"
        )
    return config


def read_vocabulary(path: Path) -> list[str]:
    """The tokens of vocab.txt, by BERT's ids.

    Raises:
        InputError: one comes twice, holds a blank or is fairseq's own; or a special token is missing.
    """
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


def read_weights(directory: Path) -> dict[str, Tensor]:
    """The model's tensors in float32, named as in a bare BertModel, `cls.` for the heads.

    Raises:
        InputError: no weights file, or one that holds something else.
    """
    path = directory / "model.safetensors"
    if not path.exists():
        path = directory / "pytorch_model.bin"
    if not path.exists():
        raise InputError(f"{directory}: the directory has neither model.safetensors nor pytorch_model.bin")
    try:
        # weights_only: a .bin cannot run code
        state = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except (SafetensorError, pickle.UnpicklingError, OSError, EOFError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        # from None: torch's message recommends weights_only=False, which would run the file's code
        raise InputError(f"{path}: cannot read the file ({reason}); give the weights of a BERT model") from None
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise InputError(f"{path}: the file holds more than named tensors; give the weights of a BERT model")
    weights = {}
    for name, tensor in state.items():
        # gamma and beta: the layer norms of models converted from TensorFlow
        name = name.removeprefix("bert.").replace("LayerNorm.gamma", "LayerNorm.weight")
        weights[name.replace("LayerNorm.beta", "LayerNorm.bias")] = tensor.float()
    return weights


def fairseq_weights(config: dict[str, Any], weights: dict[str, Tensor], order: Sequence[int]) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names.

    The embedding of token type 0 is added to every position's: single sentences are all of that type.

    Args:
        config: config.json.
        weights: BERT's tensors; those that are used are taken out.
        order: BERT's id of each of fairseq's.

    Raises:
        InputError: a tensor is missing or left over, or of another shape than config.json says.
    """
    width, inner = config["hidden_size"], config["intermediate_size"]

    def take(name: str, *shape: int) -> Tensor:
        if name not in weights:
            raise InputError(f"the weights have no {name}, which a BERT of {config['num_hidden_layers']} layers has")
        tensor = weights.pop(name)
        if tensor.shape != shape:
            raise InputError(f"{name} has the shape {list(tensor.shape)}, but config.json gives {list(shape)}")
        return tensor

    def linear(to: str, name: str, rows: int, columns: int) -> dict[str, Tensor]:
        return {f"{to}.weight": take(f"{name}.weight", rows, columns), f"{to}.bias": take(f"{name}.bias", rows)}

    def norm(to: str, name: str) -> dict[str, Tensor]:
        return {f"{to}.{part}": take(f"{name}.{part}", width) for part in ("weight", "bias")}

    words = take("embeddings.word_embeddings.weight", len(order), width)
    places = take("embeddings.position_embeddings.weight", config["max_position_embeddings"], width)
    types = take("embeddings.token_type_embeddings.weight", config.get("type_vocab_size", 2), width)
    result = {
        "embed_tokens.weight": words[list(order)],
        # fairseq counts positions from the id of <pad>, 1, plus one
        "embed_positions.weight": torch.cat([torch.zeros(2, width), places + types[0]]),
        **norm("layernorm_embedding", "embeddings.LayerNorm"),
    }
    shapes = {"fc1": (inner, width), "fc2": (width, inner)}
    for number in range(config["num_hidden_layers"]):
        for ours, theirs in LAYER.items():
            to, name = f"layers.{number}.{ours}", f"encoder.layer.{number}.{theirs}"
            result.update(norm(to, name) if "norm" in ours else linear(to, name, *shapes.get(ours, (width, width))))
    result = {f"sentence_encoder.{name}": tensor for name, tensor in result.items()}
    result["lm_head.weight"] = result["sentence_encoder.embed_tokens.weight"]
    if "cls.predictions.bias" in weights:
        if not torch.equal(weights.get("cls.predictions.decoder.weight", words), words):
            raise InputError("cls.predictions.decoder.weight differs from the word embeddings; the head must be tied")
        result.update(linear("lm_head.dense", "cls.predictions.transform.dense", width, width))
        result.update(norm("lm_head.layer_norm", "cls.predictions.transform.LayerNorm"))
        result["lm_head.bias"] = take("cls.predictions.bias", len(order))[list(order)]
    else:
        nan = {"dense.weight": (width, width), "dense.bias": (width,), "bias": (len(order),)}
        nan.update({"layer_norm.weight": (width,), "layer_norm.bias": (width,)})
        result.update({f"lm_head.{name}": torch.full(shape, torch.nan) for name, shape in nan.items()})
    left = sorted(name for name in weights if not UNUSED.match(name))
    if left:
        raise InputError(
            f"{len(left)} tensors have no place in a BERT of {config['num_hidden_layers']} layers: {left[0]}, …"
        )
    return {f"encoder.{name}": tensor for name, tensor in result.items()}


def checkpoint(
    config: dict[str, Any], weights: dict[str, Tensor], dictionary: Path, order: Sequence[int]
) -> dict[str, Any]:
    """The content of a fairseq checkpoint of ``--arch bert`` and ``--task masked_lm``; strictly loaded once."""
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
    model = MaskedLMTask(task, Dictionary.load(str(dictionary))).build_model(args)
    model.load_state_dict(fairseq_weights(config, weights, order), strict=True)
    history = {"optimizer_name": "none", "criterion_name": "none", "lr_scheduler_state": {}, "num_updates": 0}
    return {
        "args": None,
        "cfg": {
            **OmegaConf.to_container(OmegaConf.structured(FairseqConfig()), enum_to_str=True),
            "model": args,
            "task": OmegaConf.to_container(OmegaConf.structured(task), enum_to_str=True),
            "criterion": {"_name": "masked_lm"},
        },
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }


def convert(model: Path, out: Path) -> None:
    """Write OUT/dict.txt and OUT/checkpoint.pt, both or neither."""
    config = read_config(model / "config.json")
    tokens = read_vocabulary(model / "vocab.txt")
    if config.get("vocab_size", len(tokens)) != len(tokens):
        raise InputError(f"{model}: vocab.txt has {len(tokens)} tokens, but config.json gives {config['vocab_size']}")
    weights = read_weights(model)
    ids = {token: number for number, token in enumerate(tokens)}
    ordinary = [token for token in tokens if token not in SPECIALS]
    *first, mask = SPECIALS
    with fresh_files([out / "dict.txt", out / "checkpoint.pt"]) as (dictionary, path):
        lines = [f"{token} 1\n" for token in (*ordinary, SPECIALS[mask])]
        dictionary.write_text("".join(lines), encoding="utf-8")
        order = [ids[token] for token in (*first, *ordinary, mask)]
        try:
            with path.open("wb") as file:  # given a path, torch would store its name in the file
                torch.save(checkpoint(config, weights, dictionary, order), file)
        except InputError as error:
            raise InputError(f"{model}: {error}") from None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="convert_bert.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, metavar="MODEL", help="directory of the Hugging Face model")
    parser.add_argument("--out", type=Path, required=True, metavar="OUT", help="directory to write to")
    args = parser.parse_args(argv)
    return exit_status("convert_bert.py", lambda: convert(args.model, args.out))


if __name__ == "__main__":
    sys.exit(main())
