"""Translation models in the format of Transformers, read into fairseq's networks without a copy on disk.

Transformers kept fairseq's networks and the names of their parameters.  So a family is a row of :data:`FAMILIES`: the
options of its config.json that have a meaning here, and fairseq's options that make the same network.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.dataclass.configs import FairseqConfig
from fairseq.modules import SinusoidalPositionalEmbedding

from alignment_eval.errors import InputError, shown
from fairseq_norm_plugin.checkpoints.foreign import (
    Stored,
    StoredParameters,
    Weights,
    check_heads,
    read_config,
    read_json,
    read_weights,
)
from fairseq_norm_plugin.config import config_of
from fairseq_norm_plugin.hooks.models.marian import sinusoids
from fairseq_norm_plugin.model.family_text import (
    SPECIALS,
    fsmt_text,
    marian_text,
    multilingual_text,
    plain,
    starts_with_tag,
)

#: Transformers' activation_function -> fairseq's --activation-fn; swish needs the plugin's own network.
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_accurate", "swish": "swish", "silu": "swish"}
#: The logit of ``<s>``, which Marian's vocabulary lacks: no probability in any dtype, and finite for training.
NEVER = -1e4
_STACKS = ("encoder", "decoder")
# copies of others, and version numbers of fairseq
_UNUSED = re.compile(r"model\.shared\.weight$|.*\.version$")
_SIZES = [
    *("d_model", "max_position_embeddings"),
    *(f"{stack}_{size}" for stack in _STACKS for size in ("layers", "ffn_dim", "attention_heads")),
]
_NORM_BEFORE = {"encoder_normalize_before": True, "decoder_normalize_before": True}
_LEARNED = {"encoder_learned_pos": True, "decoder_learned_pos": True}


@dataclass(frozen=True)
class Family:
    """Models of one ``model_type``.

    Attributes:
        name: of the models, for messages.
        defaults: values of options that config.json may leave out.
        fixed: options of old configurations that Transformers no longer reads, and their values.
        options: fairseq's options of all models of the family.
        norms: layer norms of the encoder and the decoder outside of their layers.
        sizes: the options that give the numbers of tokens of source and target.
        head: the matrix of the logits.
        start: the option that names the first input of the decoder.
        activations: the values of activation_function, Transformers' default first.
    """

    name: str
    defaults: Mapping[str, Any]
    fixed: Mapping[str, bool]
    options: Mapping[str, Any]
    norms: tuple[str, ...] = ()
    sizes: tuple[str, str] = ("vocab_size", "vocab_size")
    head: str = "lm_head.weight"
    start: str = "eos_token_id"
    activations: tuple[str, ...] = ("relu", "gelu", "gelu_new")

    @property
    def allowed(self) -> dict[str, Sequence[object]]:
        """The values of options that can be read, the default first (foreign.read_config)."""
        names = ("scale_embedding", "tie_word_embeddings", "share_encoder_decoder_embeddings")
        flags = {name: [default, not default] for name in names if (default := self.defaults.get(name)) is not None}
        fixed = {name: [value] for name, value in self.fixed.items()}
        return {"is_encoder_decoder": [True], "activation_function": self.activations, **flags, **fixed}


_IDS = {"eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
FAMILIES = {
    "marian": Family(
        "Marian",
        {"scale_embedding": False, "tie_word_embeddings": True, "share_encoder_decoder_embeddings": True},
        {
            "normalize_before": False,
            "normalize_embedding": False,
            "add_final_layer_norm": False,
            "static_position_embeddings": True,
        },
        {"_name": "marian"},
        sizes=("vocab_size", "decoder_vocab_size"),
        start="pad_token_id",
        activations=tuple(ACTIVATIONS),
    ),
    "m2m_100": Family(
        "M2M-100 or NLLB",
        {"scale_embedding": True, "tie_word_embeddings": True, **_IDS},
        {},
        {"_name": "transformer", **_NORM_BEFORE},
        norms=("layer_norm",),
    ),
    "mbart": Family(
        "mBART",
        {"scale_embedding": False, "tie_word_embeddings": True, **_IDS},
        {
            "normalize_before": True,
            "normalize_embedding": True,
            "add_final_layer_norm": True,
            "add_bias_logits": False,
            "static_position_embeddings": False,
        },
        {"_name": "transformer", "layernorm_embedding": True, **_NORM_BEFORE, **_LEARNED},
        norms=("layer_norm", "layernorm_embedding"),
        activations=("gelu", "relu", "gelu_new"),
    ),
    "fsmt": Family(
        "FSMT",
        {"scale_embedding": True, "tie_word_embeddings": False, **_IDS},
        {},
        {"_name": "transformer"},
        sizes=("src_vocab_size", "tgt_vocab_size"),
        head="model.decoder.output_projection.weight",
    ),
}


@dataclass(frozen=True)
class Release:
    """A model in the format of Transformers.

    Attributes:
        cfg: the options of a fairseq checkpoint.
        parameters: of fairseq's model.
        languages: of source and target.
        subwords: the model's subwords: ``bpe`` and its files.
    """

    cfg: dict[str, Any]
    parameters: StoredParameters
    languages: tuple[str, str]
    subwords: dict[str, Any]

    @property
    def state(self) -> dict[str, Any]:
        """The same as the content of a checkpoint (checkpoints.read.read_parts)."""
        return {"cfg": config_of(self.cfg), "model": self.parameters}


def read_release(directory: Path, place: Path, source: str | None, target: str | None) -> Release:
    """Read all but the weights of a model in the format of Transformers, and compare their headers with config.json.

    Args:
        directory: with config.json, the files of the tokenizer, and model.safetensors or pytorch_model.bin, or these in
            parts.
        place: a directory to write fairseq's dictionaries to.
        source: source language; None: the one that the files name.
        target: target language.
    """
    family, config = _read_config(directory / "config.json")
    read = {"marian": marian_text, "fsmt": fsmt_text}.get(config["model_type"], multilingual_text)
    text = read(directory, config, (source, target))
    _check_ids(directory, family, config, text.tokens)
    name = f"a model of {config['encoder_layers']} and {config['decoder_layers']} layers"
    parameters = fairseq_parameters(family, config, Weights(read_weights(directory), name), text.tokens)
    joint = isinstance(text.task, Namespace)  # multilingual tasks have one dictionary
    names = ["dict.txt"] if joint else [f"dict.{language}.txt" for language in text.languages]
    for file, tokens in zip(names, text.tokens):
        write_dictionary(place / file, (token for token in tokens if token not in SPECIALS))
    cfg = {
        **plain(FairseqConfig()),
        "model": _options(family, config, text.tokens),
        "task": text.task,
        "tokenizer": text.tokenizer,
    }
    return Release(cfg, parameters, text.languages, text.subwords)


def write_dictionary(path: Path, tokens: Iterable[str]) -> Dictionary:
    """Write a fairseq dictionary of ``tokens``, which come after fairseq's own four, and read it as fairseq does."""
    path.write_text("".join(f"{token} 1\n" for token in tokens), encoding="utf-8", newline="\n")
    return Dictionary.load(str(path))


def _read_config(path: Path) -> tuple[Family, dict[str, Any]]:
    given = read_json(path, "the config.json of a model")
    family = FAMILIES.get(str(given.get("model_type")))
    if family is None:
        what = "" if given.get("is_encoder_decoder") else ", no encoder-decoder,"
        known = ", ".join(f"{name} ({family.name})" for name, family in FAMILIES.items())
        raise InputError(
            f"{path}: model_type is {shown(given.get('model_type'))}{what} and cannot be read; supported are {known}"
        )
    sizes = dict.fromkeys((*_SIZES, *family.sizes[:1]))
    config = {**family.defaults, **read_config(path, {"model_type": [given["model_type"]], **family.allowed}, sizes)}
    check_heads(path, config, "d_model", "encoder_attention_heads", "decoder_attention_heads")
    if not config.get(family.sizes[1]):
        config[family.sizes[1]] = config[family.sizes[0]]
    one = config.get("share_encoder_decoder_embeddings", config["tie_word_embeddings"])
    if one and len({config[size] for size in family.sizes}) > 1:
        said = " and ".join(f"{size} {config[size]}" for size in family.sizes)
        option = next(name for name in ("share_encoder_decoder_embeddings", "tie_word_embeddings") if name in config)
        raise InputError(f"{path}: {said} differ, but {option} is True; the two must be equal then")
    return family, config


def _check_ids(directory: Path, family: Family, config: Mapping[str, Any], tokens: Sequence[list[str]]) -> None:
    """Check that the ids of special tokens are those of config.json, and the decoder's first input is supported."""
    path = directory / "config.json"
    for of_side in tokens:
        for token, option in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id"), ("<unk>", None)):
            if token not in of_side:
                raise InputError(f"{directory}: the vocabulary has no {token}; give the files of a {family.name} model")
            if option and config.get(option) != of_side.index(token):
                raise InputError(
                    f"{directory}: {token} has the id {of_side.index(token)} in the vocabulary, but config.json gives "
                    f"{option} {config.get(option)!r}"
                )
    start = config.get("decoder_start_token_id")
    if start != config[family.start] and not starts_with_tag(directory, config):
        raise InputError(
            f"{path}: decoder_start_token_id is {start!r}, but only {family.start} {config[family.start]!r} is "
            f"supported"
        )


def _options(family: Family, config: Mapping[str, Any], tokens: tuple[list[str], list[str]]) -> Namespace:
    stacks = {
        f"{stack}_{ours}": config[f"{stack}_{theirs}"]
        for stack in _STACKS
        for ours, theirs in (("layers", "layers"), ("ffn_embed_dim", "ffn_dim"), ("attention_heads", "attention_heads"))
    }
    return Namespace(
        **family.options,
        encoder_embed_dim=config["d_model"],
        decoder_embed_dim=config["d_model"],
        **stacks,
        activation_fn=ACTIVATIONS[config["activation_function"]],
        no_scale_embedding=not config["scale_embedding"],
        share_all_embeddings=_is_one_matrix(config) and tokens[0] == tokens[1],
        share_decoder_input_output_embed=config["tie_word_embeddings"],
        max_source_positions=config["max_position_embeddings"],
        max_target_positions=config["max_position_embeddings"],
    )


def _is_one_matrix(config: Mapping[str, Any]) -> bool:
    return bool(config["tie_word_embeddings"] and config.get("share_encoder_decoder_embeddings", True))


# Parameters


def fairseq_parameters(
    family: Family, config: Mapping[str, Any], weights: Weights, tokens: Sequence[Sequence[str]]
) -> StoredParameters:
    """The parameters of fairseq's model, under fairseq's names.

    Args:
        family: the family.
        config: config.json.
        weights: the tensors, all of which are taken.
        tokens: of source and target, by the ids of the vocabulary.
    """
    result = _embeddings(family, config, weights, tokens)
    for stack in _STACKS:
        for number in range(config[f"{stack}_layers"]):
            result.update(_layer(weights, config, stack, f"{stack}.layers.{number}"))
        for norm in family.norms:
            result.update(weights.norm(f"{stack}.{norm}", f"model.{stack}.{norm}", config["d_model"]))
        result.update(_positions(family, config, weights, f"{stack}.embed_positions"))
    weights.check_empty(_UNUSED)
    # what fairseq's present version gives; it would change models without it
    return StoredParameters(result, {f"{stack}.version": torch.Tensor([3]) for stack in _STACKS})


def _embeddings(
    family: Family, config: Mapping[str, Any], weights: Weights, tokens: Sequence[Sequence[str]]
) -> dict[str, Stored]:
    """The three matrices, or what they share, and the bias of the logits; rows in fairseq's order."""
    shared, width, tied = "model.shared.weight", config["d_model"], config["tie_word_embeddings"]
    encoder, decoder, head = (*(f"model.{stack}.embed_tokens.weight" for stack in _STACKS), family.head)
    rows = [config[size] for size in family.sizes]
    if _is_one_matrix(config):
        names = [name for name in (shared, encoder, decoder, head) if name != shared or family.name != "FSMT"]
        of_encoder = of_decoder = of_head = weights.take_one(names, rows[0], width)
    else:
        of_encoder = weights.take_one([encoder], rows[0], width)
        of_decoder = weights.take_one([decoder, head] if tied else [decoder], rows[1], width)
        of_head = of_decoder if tied else weights.take(head, rows[1], width)
    source, target = map(_order, tokens)
    result = {
        "encoder.embed_tokens.weight": of_encoder.ordered(source),
        "decoder.embed_tokens.weight": of_decoder.ordered(target),
        "decoder.output_projection.weight": of_head.ordered(target),
    }
    if "final_logits_bias" in weights or family.name == "Marian":
        bias = weights.take("final_logits_bias", 1, rows[1])
        if family.name == "Marian":
            result["decoder.output_projection.bias"] = replace(bias, shape=torch.Size(rows[1:])).ordered(target, NEVER)
        elif bias.rows().any():
            raise InputError("final_logits_bias is not 0; a bias of the logits is supported in Marian models only")
    return result


def _order(tokens: Sequence[str]) -> list[int] | None:
    """The id of each of fairseq's tokens in ``tokens``; one more than the last for ``<s>`` if there is none.

    None: they are in fairseq's order.
    """
    ids = {token: number for number, token in enumerate(tokens)}
    first = [ids.get(token, len(tokens)) for token in SPECIALS]
    order = first + [number for token, number in ids.items() if token not in SPECIALS]
    return None if order == list(range(len(tokens))) else order


def _layer(weights: Weights, config: Mapping[str, Any], stack: str, layer: str) -> dict[str, Stored]:
    """The parameters of a layer, which have the same names in Transformers and in fairseq."""
    width, inner = config["d_model"], config[f"{stack}_ffn_dim"]
    attentions = ("self_attn", "encoder_attn") if stack == "decoder" else ("self_attn",)
    parts = ("q_proj", "k_proj", "v_proj", "out_proj")
    shapes = {f"{attention}.{part}": (width, width) for attention in attentions for part in parts}
    shapes.update({"fc1": (inner, width), "fc2": (width, inner)})
    result = {}
    for name, shape in shapes.items():
        result.update(weights.linear(f"{layer}.{name}", f"model.{layer}.{name}", *shape))
    for name in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
        result.update(weights.norm(f"{layer}.{name}", f"model.{layer}.{name}", width))
    return result


def _positions(family: Family, config: Mapping[str, Any], weights: Weights, name: str) -> dict[str, Stored]:
    """Learned positions; or check that stored ones, which newer files leave out, are those that are computed."""
    count, width = config["max_position_embeddings"], config["d_model"]
    if "encoder_learned_pos" in family.options:
        return {f"{name}.weight": weights.take(f"model.{name}.weight", count + 2, width)}
    for stored in (f"model.{name}.weight", f"model.{name}.weights"):
        if stored in weights:
            if family.name == "Marian":
                computed = sinusoids(count, width)
            else:
                computed = SinusoidalPositionalEmbedding.get_embedding(count + 2, width, 1)
            found = weights.take(stored, *computed.shape).rows().float()
            if not torch.allclose(found, computed, rtol=0, atol=1e-3):  # of fp16
                raise InputError(
                    f"{stored} holds other positions than {family.name}'s sinusoids; learned positions are not "
                    f"supported"
                )
    return {}
