"""Models in the format of Transformers, read into fairseq's networks without a copy on disk.

Transformers kept fairseq's networks and the names of their parameters, so most translation models are read under their
own.  A family is a row of :data:`FAMILIES`: the options of its config.json that have a meaning here, and fairseq's
options that make the same network.

Of BERT the pooler and the next-sentence classifier are left out; a model without a masked-LM head gets one of NaN, so
that its predictions cannot be taken for some (docs/analysis.md).
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
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from torch import Tensor

from alignment_eval.errors import InputError, shown
from alignment_eval.reading import TextFile
from fairseq_norm_plugin.checkpoints.files import Release, weights_file
from fairseq_norm_plugin.checkpoints.read import PRETRAINED, config_of
from fairseq_norm_plugin.text.subwords import TokenizersSegmenter
from fairseq_norm_plugin.transformers.files import (
    ACTIVATIONS,
    SPECIALS,
    TokenizerFiles,
    Weights,
    fsmt_text,
    m2m_text,
    marian_text,
    mbart_text,
    own_file,
    plain_config,
    read_config,
    read_json,
    read_weights,
    write_dictionary,
)
from fairseq_norm_plugin.transformers.networks import sinusoids

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


# ---- BERT

#: BERT's special token -> fairseq's, in the order of fairseq's ids; the masked-LM task counts <mask> as the last.
BERT_SPECIALS = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": "<mask>"}
_BERT_ENCODER, _BERT_HEAD = "encoder.sentence_encoder", "encoder.lm_head"
_BERT_WORDS, _BERT_BIAS = "embeddings.word_embeddings.weight", "cls.predictions.bias"
#: Parts of the names of BERT's tensors -> fairseq's, replaced one after the other.
_BERT_RENAMED = {
    "gamma": "weight",  # of models converted from TensorFlow
    "beta": "bias",
    "encoder.layer.": f"{_BERT_ENCODER}.layers.",
    "attention.self.query": "self_attn.q_proj",
    "attention.self.key": "self_attn.k_proj",
    "attention.self.value": "self_attn.v_proj",
    "attention.output.dense": "self_attn.out_proj",
    "attention.output.LayerNorm": "self_attn_layer_norm",
    "intermediate.dense": "fc1",
    "output.dense": "fc2",
    "output.LayerNorm": "final_layer_norm",
    "embeddings.LayerNorm": f"{_BERT_ENCODER}.layernorm_embedding",
    "cls.predictions.transform.dense": f"{_BERT_HEAD}.dense",
    "cls.predictions.transform.LayerNorm": f"{_BERT_HEAD}.layer_norm",
}
#: Tensors that no hidden state and no masked-LM prediction depends on, or that are copies of others.
_BERT_UNUSED = re.compile(
    r"pooler\.|cls\.seq_relationship\.|embeddings\.(position|token_type)_ids$|cls\.predictions\.decoder\.bias$"
)
_BERT_ALLOWED: dict[str, Sequence[object]] = {
    "model_type": ["bert"],
    "position_embedding_type": ["absolute"],
    "is_decoder": [False],
    "hidden_act": [name for name, ours in ACTIVATIONS.items() if ours != "swish"],
}
_BERT_SIZES = {
    **dict.fromkeys(
        ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "max_position_embeddings")
    ),
    "type_vocab_size": 2,
}


def read_bert(model: Path, place: Path) -> tuple[Any, dict[str, Any], dict[str, Tensor]]:
    """fairseq's task, options and parameters of a directory of Transformers; dict.txt is written to ``place``."""
    path = model / "config.json"
    config = read_config(path, _BERT_ALLOWED, _BERT_SIZES)
    if type(config.get("layer_norm_eps")) not in (int, float):
        raise InputError(f"{path}: layer_norm_eps is {config.get('layer_norm_eps')!r}, not a number")
    file = model / ("vocab.txt" if (model / "vocab.txt").exists() else "tokenizer.json")
    tokens = _bert_vocabulary(file)
    if config.get("vocab_size", len(tokens)) != len(tokens):
        raise InputError(f"{file}: {len(tokens)} tokens, but config.json gives {config['vocab_size']}")
    *first, mask = BERT_SPECIALS
    order = [*first, *(token for token in tokens if token not in BERT_SPECIALS), mask]
    dictionary = write_dictionary(place / "dict.txt", [*order[len(first) : -1], BERT_SPECIALS[mask]])
    args = Namespace(
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
    return (
        MaskedLMTask(task, dictionary),
        cfg,
        _bert_parameters(model, config, [tokens.index(token) for token in order]),
    )


def _bert_vocabulary(path: Path) -> list[str]:
    """The tokens of vocab.txt, or of tokenizer.json if there is no other, by BERT's ids."""
    if path.suffix == ".txt":
        tokens = [line for chunk in TextFile(path) for line in chunk.decode().split("\n")[:-1]]
    else:
        ids = TokenizersSegmenter(own_file(path)).ids
        tokens = sorted(ids, key=ids.__getitem__)
    seen: set[str] = set()
    for number, token in enumerate(tokens, 1):
        if token.split() != [token] or token in seen or token in BERT_SPECIALS.values():
            raise InputError(
                f"{path}:{number}: token {token!r} contains a blank, is a duplicate, or is one of fairseq's own"
            )
        seen.add(token)
    for special in BERT_SPECIALS:
        if special not in seen:
            raise InputError(f"{path}: the file has no {special}; give the vocabulary of a BERT model")
    return tokens


def _bert_parameters(model: Path, config: dict[str, Any], order: list[int]) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names; ``order`` has BERT's id of each of fairseq's tokens."""
    tensors = read_weights(model)
    for old, new in {"bert.": "", **_BERT_RENAMED}.items():
        tensors = {name.replace(old, new): tensor for name, tensor in tensors.items()}
    weights = Weights(tensors, model)
    width = config["hidden_size"]
    words = weights.take_one([_BERT_WORDS, "cls.predictions.decoder.weight"], len(order), width)[order]
    places, types = (
        weights.take(f"embeddings.{name}_embeddings.weight", config[size], width).float()
        for name, size in (("position", "max_position_embeddings"), ("token_type", "type_vocab_size"))
    )
    if _BERT_BIAS in weights:
        head = {"bias": weights.take(_BERT_BIAS, len(order))[order]}
    else:
        shapes: dict[str, tuple[int, ...]] = {"dense.weight": (width, width), "bias": (len(order),)}
        shapes.update(dict.fromkeys(("dense.bias", "layer_norm.weight", "layer_norm.bias"), (width,)))
        head = {name: torch.full(shape, torch.nan) for name, shape in shapes.items()}
    return {
        f"{_BERT_ENCODER}.embed_tokens.weight": words,
        # fairseq counts positions from the id of <pad>, 1, plus one; single sentences are all of token type 0
        f"{_BERT_ENCODER}.embed_positions.weight": torch.cat([torch.zeros(2, width), places + types[0]]),
        **{f"{_BERT_HEAD}.{name}": tensor for name, tensor in {"weight": words, **head}.items()},
        **weights.take_rest(_BERT_UNUSED),
    }
