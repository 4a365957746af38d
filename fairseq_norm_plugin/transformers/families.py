"""Translation models in the format of Transformers, read into fairseq's networks without a copy on disk.

Transformers kept fairseq's networks and the names of their parameters, so most are read under their own.  A family is a
row of :data:`FAMILIES`: the options of its config.json that have a meaning here, and fairseq's options that make the
same network.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.dataclass.configs import FairseqConfig
from fairseq.modules import SinusoidalPositionalEmbedding
from torch import Tensor

from alignment_eval.errors import InputError, shown
from fairseq_norm_plugin.checkpoints.files import Release, weights_file
from fairseq_norm_plugin.checkpoints.read import PRETRAINED, config_of
from fairseq_norm_plugin.transformers.marian import sinusoids
from fairseq_norm_plugin.transformers.text import (
    SPECIALS,
    TokenizerFiles,
    fsmt_text,
    m2m_text,
    marian_text,
    mbart_text,
    plain_config,
)
from fairseq_norm_plugin.transformers.weights import ACTIVATIONS, Weights, read_config, read_json, read_weights

#: The logit of ``<s>``, which Marian's vocabulary lacks: no probability in any dtype, and finite for training.
NEVER = -1e4
_STACKS = ("encoder", "decoder")
#: The embeddings of both sides, and the matrix of the logits, whose name depends on the family.
_SHARED, _HEADS = "model.shared.weight", ["lm_head.weight", "model.decoder.output_projection.weight"]
# copies of others, and version numbers of fairseq
_UNUSED = re.compile(rf"{re.escape(_SHARED)}$|.*\.version$")
_SIZES = [
    *("d_model", "max_position_embeddings"),
    *(f"{stack}_{size}" for stack in _STACKS for size in ("layers", "ffn_dim", "attention_heads")),
]
# the values of a flag that can be read, Transformers' default first
_TRUE, _FALSE, _ALWAYS, _NEVER = (True, False), (False, True), (True,), (False,)
# of Transformers, but for Marian, whose files state them
_IDS = {"eos_token_id": 2, "pad_token_id": 1, "decoder_start_token_id": 2}
_NORM_BEFORE = {"encoder_normalize_before": True, "decoder_normalize_before": True}


@dataclass(frozen=True)
class Family:
    """Models of one ``model_type``.

    Attributes:
        name: of the models, for messages.
        options: fairseq's options of all models of the family.
        allowed: options of config.json -> the values that can be read, Transformers' default first; of old
            configurations also options that Transformers no longer reads.
        text: reads the files of the tokenizer: called with directory, config.json and the stated languages.
        sizes: the options that give the numbers of tokens of source and target.
    """

    name: str
    options: Mapping[str, Any]
    allowed: Mapping[str, Sequence[object]]
    text: Callable[[Path, Mapping[str, Any], Sequence[str | None]], TokenizerFiles]
    sizes: tuple[str, str] = ("vocab_size", "vocab_size")

    @property
    def is_marian(self) -> bool:
        """Whether the network is Marian's: with a bias of the logits, own sinusoids and ``<pad>`` as first input."""
        return bool(self.options["_name"] == "marian")


_RELU = {"activation_function": ("relu", "gelu", "gelu_new")}
FAMILIES = {
    "marian": Family(
        "Marian",
        {"_name": "marian"},
        {
            "activation_function": tuple(ACTIVATIONS),
            "scale_embedding": _FALSE,
            "tie_word_embeddings": _TRUE,
            "share_encoder_decoder_embeddings": _TRUE,
            **dict.fromkeys(("normalize_before", "normalize_embedding", "add_final_layer_norm"), _NEVER),
            "static_position_embeddings": _ALWAYS,
        },
        marian_text,
        sizes=("vocab_size", "decoder_vocab_size"),
    ),
    "m2m_100": Family(
        "M2M-100 or NLLB",
        {"_name": "transformer", **_NORM_BEFORE},
        {**_RELU, "scale_embedding": _TRUE, "tie_word_embeddings": _TRUE},
        m2m_text,
    ),
    "mbart": Family(
        "mBART",
        {
            **{"_name": "transformer", "layernorm_embedding": True, **_NORM_BEFORE},
            **{"encoder_learned_pos": True, "decoder_learned_pos": True},
        },
        {
            "activation_function": ("gelu", "relu", "gelu_new"),
            "scale_embedding": _FALSE,
            "tie_word_embeddings": _TRUE,
            **dict.fromkeys(("normalize_before", "normalize_embedding", "add_final_layer_norm"), _ALWAYS),
            **dict.fromkeys(("add_bias_logits", "static_position_embeddings"), _NEVER),
        },
        mbart_text,
    ),
    "fsmt": Family(
        "FSMT",
        {"_name": "transformer"},
        {**_RELU, "scale_embedding": _TRUE, "tie_word_embeddings": _FALSE},
        fsmt_text,
        sizes=("src_vocab_size", "tgt_vocab_size"),
    ),
}


def read_directory(directory: Path, languages: Sequence[str | None]) -> Release:
    """A directory in the format of Transformers, whose headers of weights are compared with config.json.

    A language that is None is the one that the files name.
    """
    family, config = _read_config(directory / "config.json")
    text = family.text(directory, config, languages)
    _check_ids(directory, family, config, text)
    parameters = _parameters(directory, family, config, text.tokens)
    joint = isinstance(text.task, Namespace)  # multilingual tasks have one dictionary
    names = ["dict.txt"] if joint else [f"dict.{language}.txt" for language in text.languages]
    cfg = {
        **plain_config(FairseqConfig()),
        "model": _options(family, config, text.tokens),
        "task": text.task,
        "tokenizer": text.tokenizer,
    }
    return Release(
        [[str(weights_file(directory) or directory)]],
        directory,
        text.subwords,
        found=True,
        state={"cfg": config_of(cfg), "model": parameters},
        languages=text.languages,
        dictionaries={name: [t for t in own if t not in SPECIALS] for name, own in zip(names, text.tokens)},
    )


def _read_config(path: Path) -> tuple[Family, dict[str, Any]]:
    given = read_json(path, "the config.json of a model")
    family = FAMILIES.get(str(given.get("model_type")))
    if family is None:
        what = "" if given.get("is_encoder_decoder") else ", no encoder-decoder,"
        known = ", ".join(f"{name} ({family.name})" for name, family in FAMILIES.items())
        raise InputError(f"{path}: model_type is {shown(given.get('model_type'))}{what}: expected one of {known}")
    allowed = {"is_encoder_decoder": _ALWAYS, **family.allowed}
    config = {**_IDS, **read_config(path, allowed, dict.fromkeys((*_SIZES, *family.sizes[:1])))}
    config[family.sizes[1]] = config.get(family.sizes[1]) or config[family.sizes[0]]
    if _is_one_matrix(config) and len({config[size] for size in family.sizes}) > 1:
        raise InputError(
            f"{path}: {' and '.join(f'{size} {config[size]}' for size in family.sizes)} differ, but both sides have "
            f"one matrix of embeddings"
        )
    return family, config


def _check_ids(directory: Path, family: Family, config: Mapping[str, Any], text: TokenizerFiles) -> None:
    """Check that the ids of special tokens are those of config.json, and the decoder's first input is supported."""
    for tokens in text.tokens:
        for token, option in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id"), ("<unk>", None)):
            if token not in tokens:
                raise InputError(f"{directory}: the vocabulary has no {token}; give the files of a {family.name} model")
            if option and config.get(option) != tokens.index(token):
                raise InputError(
                    f"{directory}: {token} has the id {tokens.index(token)}, but config.json gives {option} "
                    f"{config.get(option)!r}"
                )
    start, name = config.get("decoder_start_token_id"), "pad_token_id" if family.is_marian else "eos_token_id"
    if start != config[name] and getattr(text.task, "_name", None) != PRETRAINED:  # whose targets begin with a tag
        raise InputError(
            f"{directory / 'config.json'}: decoder_start_token_id is {start!r}: expected {name}, {config[name]!r}"
        )


def _options(family: Family, config: Mapping[str, Any], tokens: tuple[list[str], list[str]]) -> Namespace:
    same = {name: config[name] for stack in _STACKS for name in (f"{stack}_layers", f"{stack}_attention_heads")}
    return Namespace(
        **family.options,
        **same,
        **{f"{stack}_embed_dim": config["d_model"] for stack in _STACKS},
        **{f"{stack}_ffn_embed_dim": config[f"{stack}_ffn_dim"] for stack in _STACKS},
        activation_fn=ACTIVATIONS[config["activation_function"]],
        no_scale_embedding=not config["scale_embedding"],
        share_all_embeddings=_is_one_matrix(config) and tokens[0] == tokens[1],
        share_decoder_input_output_embed=config["tie_word_embeddings"],
        max_source_positions=config["max_position_embeddings"],
        max_target_positions=config["max_position_embeddings"],
    )


def _is_one_matrix(config: Mapping[str, Any]) -> bool:
    return bool(config["tie_word_embeddings"] and config.get("share_encoder_decoder_embeddings", True))


def _parameters(
    directory: Path, family: Family, config: Mapping[str, Any], tokens: Sequence[Sequence[str]]
) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names; ``tokens`` are those of both sides, by their ids."""
    weights = Weights(read_weights(directory), directory)
    width, tied = config["d_model"], config["tie_word_embeddings"]
    rows, (source, target) = [config[size] for size in family.sizes], tokens
    encoder, decoder = (f"model.{stack}.embed_tokens.weight" for stack in _STACKS)
    if _is_one_matrix(config):
        of_encoder = of_decoder = weights.take_one([_SHARED, encoder, decoder, *_HEADS], rows[0], width)
    else:
        of_encoder = weights.take(encoder, rows[0], width)
        of_decoder = weights.take_one([decoder, *(_HEADS if tied else ())], rows[1], width)
    embeddings = _in_order(of_decoder, target)
    result = {
        "encoder.embed_tokens.weight": _in_order(of_encoder, source),
        "decoder.embed_tokens.weight": embeddings,
        "decoder.output_projection.weight": embeddings
        if tied
        else _in_order(weights.take_one(_HEADS, rows[1], width), target),
    }
    if "final_logits_bias" in weights or family.is_marian:
        bias = weights.take("final_logits_bias", 1, rows[1])[0]
        if family.is_marian:
            result["decoder.output_projection.bias"] = _in_order(bias, target, NEVER)
        elif bias.any():
            raise InputError(f"{directory}: final_logits_bias is not 0, which {family.name} models do not have")
    if "encoder_learned_pos" not in family.options:
        _check_positions(directory, family, config, weights)
    # the version that fairseq gives at present; it would change models without it
    versions = {f"{stack}.version": torch.Tensor([3]) for stack in _STACKS}
    return {**result, **weights.take_rest(_UNUSED), **versions}


def _in_order(rows: Tensor, tokens: Sequence[str], missing: float = 0.0) -> Tensor:
    """The rows of ``tokens`` in the order of fairseq's ids; one of ``missing`` for ``<s>`` if there is none."""
    ids = {token: number for number, token in enumerate(tokens)}
    first = [ids.get(token, len(tokens)) for token in SPECIALS]
    order = first + [number for token, number in ids.items() if token not in SPECIALS]
    if order == list(range(len(tokens))):
        return rows
    return torch.cat([rows, rows.new_full((1, *rows.shape[1:]), missing)])[order]


def _check_positions(directory: Path, family: Family, config: Mapping[str, Any], weights: Weights) -> None:
    """Check that stored sinusoids, which newer files leave out, are those that are computed."""
    count, width = config["max_position_embeddings"], config["d_model"]
    for name in (f"model.{stack}.embed_positions.weight{ending}" for stack in _STACKS for ending in ("", "s")):
        if name not in weights:
            continue
        if family.is_marian:
            computed = sinusoids(count, width)
        else:  # fairseq's table, with its two unused rows before the positions
            computed = SinusoidalPositionalEmbedding.get_embedding(count + 2, width, 1)
        found = weights.take(name, *computed.shape)
        rounding = max(1e-3, torch.finfo(found.dtype).eps)  # computed by another library, stored in 16 bits
        if not torch.allclose(found.float(), computed, rtol=0, atol=rounding):
            raise InputError(
                f"{directory}: {name} holds other positions than {family.name}'s sinusoids, such as learned ones"
            )
