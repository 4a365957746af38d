"""Marian models, such as those of OPUS-MT: the plugin's ``--arch marian`` computes what ``MarianMTModel`` does."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks.translation import TranslationConfig, TranslationTask
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from alignment_eval.profiles.profile import calibrated
from fairseq_norm_plugin.convert.checkpoint import PROFILE, converted, write_checkpoint, write_dictionary
from fairseq_norm_plugin.convert.files import Weights, check_heads, read_config, read_json, read_weights
from fairseq_norm_plugin.hooks.models.marian import sinusoids
from fairseq_norm_plugin.model.tags import MARIAN_TAG, list_tags
from fairseq_norm_plugin.recording.identity import model_hash

#: Transformers' activation_function -> fairseq's --activation-fn.
ACTIVATIONS = {"gelu": "gelu", "swish": "swish", "silu": "swish", "relu": "relu", "gelu_new": "gelu_accurate"}
#: The logit of ``<s>``, which Marian's vocabulary lacks: no probability in any dtype, and finite for training.
NEVER = -1e4
#: fairseq's own tokens, in the order of its ids.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
_LANGUAGE = re.compile(r"[\w-]+")
_ATTENTION = ("q_proj", "k_proj", "v_proj", "out_proj")
# the positions are checked; the others are copies
_UNUSED = re.compile(r"model\.shared\.weight$")
_ALLOWED: dict[str, list[Any]] = {
    "model_type": ["marian"],
    "activation_function": list(ACTIVATIONS),
    "is_encoder_decoder": [True],
    # options of old configurations, which Transformers no longer reads
    "normalize_before": [False],
    "normalize_embedding": [False],
    "add_final_layer_norm": [False],
    "static_position_embeddings": [True],
    "scale_embedding": [False, True],
    "share_encoder_decoder_embeddings": [True, False],
    "tie_word_embeddings": [True, False],
}
_STACKS = ("encoder", "decoder")
_SIZES = dict.fromkeys(
    [
        *("vocab_size", "d_model", "max_position_embeddings"),
        *(f"{stack}_{size}" for stack in _STACKS for size in ("layers", "ffn_dim", "attention_heads")),
    ]
)


def convert(
    model: Path,
    out: Path,
    overwrite: bool = False,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> None:
    """Write OUT/checkpoint.pt, OUT/dict.<lang>.txt of both languages, OUT/source.spm, OUT/target.spm and a profile.

    The profile, OUT/upper-layers.align.json, is for commands that have no text to choose maps on.  It is not named
    after the checkpoint, because the others would then use it instead of choosing.

    Args:
        model: directory with config.json, vocab.json, source.spm, target.spm and model.safetensors or
            pytorch_model.bin, or these in parts; target_vocab.json if the two languages have separate vocabularies.
        out: directory to write.
        overwrite: replace ``out``.
        source_lang: source language; default: that of tokenizer_config.json.
        target_lang: target language; likewise.

    Raises:
        InputError: a file is missing, is damaged or holds what cannot be converted; or ``out`` exists.
        UsageError: the languages are not known, or cannot be names of dictionaries.
    """
    with converted(model, out, overwrite) as directory:
        config = read_marian_config(model / "config.json")
        languages = _languages(model, source_lang, target_lang)
        for name in ("source.spm", "target.spm"):
            try:
                shutil.copyfile(model / name, directory / name)
            except OSError as error:
                raise InputError(
                    f"{model / name}: cannot read the file ({error.strerror}); give the SentencePiece model that the "
                    f"model was trained with"
                ) from error
        vocabularies = _vocabularies(model, config)
        _warn_of_tags(vocabularies[0], languages[1], model)
        dictionaries = [
            write_dictionary(directory / f"dict.{language}.txt", (t for t in tokens if t not in SPECIALS))
            for language, tokens in zip(languages, vocabularies)
        ]
        task = TranslationConfig(_name="translation", data=".", source_lang=languages[0], target_lang=languages[1])
        args = _options(config)
        built = TranslationTask(task, *dictionaries).build_model(args)
        parameters = fairseq_weights(config, read_weights(model), vocabularies)
        # fairseq's version numbers keep their values
        versions = {name: tensor for name, tensor in built.state_dict().items() if name.endswith(".version")}
        built.load_state_dict({**versions, **parameters}, strict=True)
        write_checkpoint(directory, built, args, task)
        profile = calibrated(None, range(config["decoder_layers"]), model_hash([built]), "", 0)
        (directory / PROFILE).write_text(f"{profile.to_json()}\n", encoding="utf-8")


def read_marian_config(path: Path) -> dict[str, Any]:
    """Read config.json of a Marian model, and refuse options that would compute something else.

    Raises:
        InputError: the file is absent, or no such configuration.
    """
    config = read_config(path, _ALLOWED, _SIZES)
    check_heads(path, config, "d_model", "encoder_attention_heads", "decoder_attention_heads")
    config["decoder_vocab_size"] = config.get("decoder_vocab_size") or config["vocab_size"]
    if config["share_encoder_decoder_embeddings"] and config["decoder_vocab_size"] != config["vocab_size"]:
        raise InputError(
            f"{path}: vocab_size {config['vocab_size']} and decoder_vocab_size {config['decoder_vocab_size']} differ, "
            f"but share_encoder_decoder_embeddings is True; the two must be equal then"
        )
    if config.get("decoder_start_token_id") != config.get("pad_token_id"):
        raise InputError(
            f"{path}: decoder_start_token_id is {config.get('decoder_start_token_id')!r}, but only pad_token_id "
            f"{config.get('pad_token_id')!r} is supported"
        )
    return config


def _languages(model: Path, source: str | None, target: str | None) -> tuple[str, str]:
    path = model / "tokenizer_config.json"
    known = read_json(path, "the model's tokenizer_config.json") if path.exists() else {}
    languages = []
    for option, given, key in (("-s", source, "source_lang"), ("-t", target, "target_lang")):
        language = given or known.get(key)
        if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
            origin = f"{option} {given}" if given else f"{path}: {key} is {language!r}"
            raise UsageError(f"{origin}: expected the name of a language, such as de; give it with {option}")
        languages.append(language)
    if languages[0] == languages[1]:
        raise UsageError(f"source and target language are both {languages[0]}: expected two; give them with -s and -t")
    return languages[0], languages[1]


def _vocabularies(model: Path, config: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The tokens of source and target, by Marian's ids."""
    source = read_vocabulary(model / "vocab.json", config, "vocab_size")
    path = model / "target_vocab.json"
    if config["share_encoder_decoder_embeddings"] or not path.exists():
        path = model / "vocab.json"
    return source, read_vocabulary(path, config, "decoder_vocab_size")


def _warn_of_tags(tokens: Sequence[str], language: str, model: Path) -> None:
    tags = [token for token in tokens if MARIAN_TAG.fullmatch(token)]
    if tags and f">>{language}<<" not in tags:
        warn_on_stderr(
            f"{model}: each source begins with the tag of a target language, and none is of {language}: name it with "
            f"--model-option target_tag=TAG, or with -t here, so that it is the default ({list_tags(tags)})"
        )


def read_vocabulary(path: Path, config: dict[str, Any], size: str) -> list[str]:
    """The tokens of vocab.json, by Marian's ids; the option ``size`` of config.json says how many there are.

    Raises:
        InputError: the file is no such vocabulary, or does not belong to the configuration.
    """
    ids = read_json(path, "the vocabulary of a Marian model")
    if len(ids) != config[size]:
        raise InputError(f"{path}: the file has {len(ids)} tokens, but config.json gives {size} {config[size]}")
    tokens = {number: token for token, number in ids.items() if type(number) is int}
    if sorted(tokens) != list(range(len(ids))):
        raise InputError(
            f"{path}: the ids are not the numbers from 0 to {len(ids) - 1}, each once; copy the file again"
        )
    if broken := [token for token in ids if "\n" in token or "\r" in token]:
        raise InputError(f"{path}: token {broken[0]!r} contains a line end, which fairseq's dictionaries cannot hold")
    for token, option in (("</s>", "eos_token_id"), ("<pad>", "pad_token_id"), ("<unk>", None)):
        if token not in ids:
            raise InputError(f"{path}: the file has no {token}; give the vocabulary of a Marian model")
        if option and config.get(option) != ids[token]:
            raise InputError(
                f"{path}: {token} has the id {ids[token]}, but config.json gives {option} {config.get(option)!r}"
            )
    return [tokens[number] for number in range(len(ids))]


def fairseq_weights(
    config: dict[str, Any], tensors: dict[str, Tensor], vocabularies: tuple[Sequence[str], Sequence[str]]
) -> dict[str, Tensor]:
    """The parameters of fairseq's model, under fairseq's names, from Marian's by name.

    ``vocabularies`` are the tokens of source and target, by Marian's ids.

    Raises:
        InputError: a tensor is missing or left over, or of another shape than config.json says.
    """
    weights = Weights(tensors, f"a Marian of {config['encoder_layers']} and {config['decoder_layers']} layers")
    result = _embeddings(weights, config, vocabularies)
    for stack in ("encoder", "decoder"):
        for number in range(config[f"{stack}_layers"]):
            result.update(_layer(weights, config, stack, f"{stack}.layers.{number}"))
        _check_positions(weights, config, f"model.{stack}.embed_positions.weight")
    weights.check_empty(_UNUSED)
    return result


def _embeddings(
    weights: Weights, config: dict[str, Any], vocabularies: tuple[Sequence[str], Sequence[str]]
) -> dict[str, Tensor]:
    """The three matrices, or what they share, and the bias of the logits; rows in fairseq's order."""
    shared = ["model.shared.weight"] if config["share_encoder_decoder_embeddings"] else []
    encoder, decoder, head = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"
    source, target = map(_order, vocabularies)
    sizes = [(config[name], config["d_model"]) for name in ("vocab_size", "decoder_vocab_size")]
    if config["share_encoder_decoder_embeddings"] and config["tie_word_embeddings"]:
        of_encoder = of_decoder = of_head = weights.take_one([*shared, encoder, decoder, head], *sizes[0])
    else:
        of_encoder = weights.take_one([encoder], *sizes[0])
        of_decoder = weights.take_one([decoder, head] if config["tie_word_embeddings"] else [decoder], *sizes[1])
        of_head = of_decoder if config["tie_word_embeddings"] else weights.take(head, *sizes[1])
    bias = weights.take("final_logits_bias", 1, sizes[1][0])
    return {
        "encoder.embed_tokens.weight": _rows(of_encoder, source),
        "decoder.embed_tokens.weight": _rows(of_decoder, target),
        "decoder.output_projection.weight": _rows(of_head, target),
        "decoder.output_projection.bias": _rows(bias.t(), target, NEVER)[:, 0],
    }


def _order(tokens: Sequence[str]) -> list[int]:
    """Marian's id of each of fairseq's; one more than the last for ``<s>`` if Marian has none."""
    ids = {token: number for number, token in enumerate(tokens)}
    first = [ids.get(token, len(tokens)) for token in SPECIALS]
    return first + [number for token, number in ids.items() if token not in SPECIALS]


def _rows(matrix: Tensor, order: Sequence[int], missing: float = 0.0) -> Tensor:
    """The rows in the given order; one of the value ``missing`` for that after the last."""
    return torch.cat([matrix, torch.full_like(matrix[:1], missing)])[list(order)]


def _layer(weights: Weights, config: dict[str, Any], stack: str, layer: str) -> dict[str, Tensor]:
    """The parameters of a layer, which have the same names in Transformers and in fairseq."""
    width, inner = config["d_model"], config[f"{stack}_ffn_dim"]
    attentions = ("self_attn", "encoder_attn") if stack == "decoder" else ("self_attn",)
    shapes = {f"{attention}.{part}": (width, width) for attention in attentions for part in _ATTENTION}
    shapes.update({"fc1": (inner, width), "fc2": (width, inner)})
    result = {}
    for name, shape in shapes.items():
        result.update(weights.linear(f"{layer}.{name}", f"model.{layer}.{name}", *shape))
    for name in (*(f"{attention}_layer_norm" for attention in attentions), "final_layer_norm"):
        result.update(weights.norm(f"{layer}.{name}", f"model.{layer}.{name}", width))
    return result


def _check_positions(weights: Weights, config: dict[str, Any], name: str) -> None:
    """Check that stored positions, which newer files leave out, are the sinusoids that the architecture computes."""
    if name in weights:
        count, width = config["max_position_embeddings"], config["d_model"]
        if not torch.allclose(weights.take(name, count, width), sinusoids(count, width), rtol=0, atol=1e-3):  # of fp16
            raise InputError(
                f"{name} holds other positions than Marian's sinusoids; learned positions are not supported"
            )


def _options(config: dict[str, Any]) -> argparse.Namespace:
    stacks = {
        f"{stack}_{ours}": config[f"{stack}_{theirs}"]
        for stack in _STACKS
        for ours, theirs in (("layers", "layers"), ("ffn_embed_dim", "ffn_dim"), ("attention_heads", "attention_heads"))
    }
    return argparse.Namespace(
        _name="marian",
        encoder_embed_dim=config["d_model"],
        decoder_embed_dim=config["d_model"],
        **stacks,
        activation_fn=ACTIVATIONS[config["activation_function"]],
        no_scale_embedding=not config["scale_embedding"],
        share_all_embeddings=config["share_encoder_decoder_embeddings"] and config["tie_word_embeddings"],
        share_decoder_input_output_embed=config["tie_word_embeddings"],
        max_source_positions=config["max_position_embeddings"],
        max_target_positions=config["max_position_embeddings"],
    )
