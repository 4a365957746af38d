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
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf

from alignment_eval.errors import InputError, UsageError, shown, warn_on_stderr
from fairseq_norm_plugin.checkpoints.foreign import (
    Stored,
    StoredParameters,
    Weights,
    check_heads,
    own_file,
    read_config,
    read_json,
    read_weights,
)
from fairseq_norm_plugin.hooks.models.marian import sinusoids
from fairseq_norm_plugin.model.languages import MULTILINGUAL, PRETRAINED
from fairseq_norm_plugin.model.tags import MARIAN_TAG, list_tags
from fairseq_norm_plugin.text.pieces import SentencePieces

#: Transformers' activation_function -> fairseq's --activation-fn; swish needs the plugin's own network.
ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_accurate", "swish": "swish", "silu": "swish"}
#: The logit of ``<s>``, which Marian's vocabulary lacks: no probability in any dtype, and finite for training.
NEVER = -1e4
#: fairseq's own tokens, in the order of its ids.
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
#: Rows of embeddings without a token: they make their number a multiple of one up to this.
_SPARE = 128
#: The languages of M2M-100 and of its models for WMT21, in the order of their ids: their files need not name them.
_M2M_CODES = (
    "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr ht hu hy "
    "id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru "
    "sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu"
)
_WMT21_CODES = "en ha is ja cs ru zh de"
_SENTENCEPIECE = "sentencepiece.bpe.model"
_LANGUAGE = re.compile(r"[\w-]+")
#: A token that names a language: ``__de__``, ``deu_Latn``, ``de_DE``.
_CODE = re.compile(r"__([\w-]+)__|([a-z]{2,3}_[A-Z][A-Za-z]{1,3})")
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
        return {"cfg": OmegaConf.create(self.cfg, flags={"allow_objects": True}), "model": self.parameters}


@dataclass(frozen=True)
class _Text:
    """What the files of a tokenizer say: the tokens of both sides by id, the task, subwords and tokenizer."""

    tokens: tuple[list[str], list[str]]
    languages: tuple[str, str]
    task: Any
    subwords: dict[str, Any]
    tokenizer: dict[str, Any] | None = None


def read_release(directory: Path, place: Path, source: str | None, target: str | None) -> Release:
    """Read all but the weights of a model in the format of Transformers, and compare their headers with config.json.

    Args:
        directory: with config.json, the files of the tokenizer, and model.safetensors or pytorch_model.bin, or these in
            parts.
        place: a directory to write fairseq's dictionaries to.
        source: source language; None: the one that the files name.
        target: target language.

    Raises:
        InputError: a file is missing, is damaged or holds what cannot be read.
        UsageError: the languages are not known.
    """
    family, config = _read_config(directory / "config.json")
    read = {"marian": _marian_text, "fsmt": _fsmt_text}.get(config["model_type"], _multilingual_text)
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


def plain(config: Any) -> Any:
    """The options of one of fairseq's dataclasses as plain values."""
    return OmegaConf.to_container(OmegaConf.structured(config), enum_to_str=True)


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
    if start != config[family.start] and not _starts_with_tag(directory, config):
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

    Raises:
        InputError: a tensor is missing or left over, or of another shape than config.json says.
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


# Text


def _marian_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> _Text:
    path = directory / "tokenizer_config.json"
    known = _optional(path)
    languages = _languages(path, [known.get(name) for name in ("source_lang", "target_lang")], stated)
    source = _vocabulary(directory / "vocab.json", config["vocab_size"])
    other = directory / "target_vocab.json"
    one = config["share_encoder_decoder_embeddings"] or not other.exists()
    target = _vocabulary(directory / "vocab.json" if one else other, config["decoder_vocab_size"])
    tags = [token for token in source if MARIAN_TAG.fullmatch(token)]
    if tags and f">>{languages[1]}<<" not in tags:
        warn_on_stderr(
            f"{directory}: each source begins with the tag of a target language, and none is of {languages[1]}: name "
            f"it with --model-option target_tag=TAG, or with -t ({list_tags(tags)})"
        )
    files = [str(_present(directory / name, "the SentencePiece model")) for name in ("source.spm", "target.spm")]
    subwords = {"bpe": "sentencepiece", "sentencepiece_model": files}
    return _Text((source, target), languages, _translation(languages), subwords)


def _fsmt_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> _Text:
    path = directory / "config.json"
    own = config.get("langs")
    languages = _languages(path, own if isinstance(own, list) and len(own) == 2 else (None, None), stated)
    trained = tuple(own) if isinstance(own, list) and languages == tuple(own[::-1]) else languages
    sides = zip(("src", "tgt"), ("src_vocab_size", "tgt_vocab_size"))
    source, target = (
        [_fastbpe_piece(token) for token in _vocabulary(directory / f"vocab-{side}.json", config[size])]
        for side, size in sides
    )
    codes = _present(directory / "merges.txt", "the codes")
    lower = _optional(directory / "tokenizer_config.json").get("do_lower_case") is True
    subwords = {"bpe": "fastbpe", "bpe_codes": str(codes), **({"lowercase": True} if lower else {})}
    return _Text((source, target), languages, _translation(trained), subwords, {"_name": "moses_normalized"})


def _fastbpe_piece(token: str) -> str:
    """fastBPE's ``be@@`` and ``low`` of Transformers' ``be`` and ``low</w>``."""
    if token in SPECIALS:
        return token
    return token.removesuffix("</w>") if token.endswith("</w>") else f"{token}@@"


def _multilingual_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> _Text:
    """M2M-100, NLLB and mBART: one vocabulary, and the codes of the languages among the added tokens."""
    model = _present(directory / _SENTENCEPIECE, "the SentencePiece model")
    path = directory / "vocab.json"
    if path.exists():
        tokens = dict(enumerate(_vocabulary(path)))
    else:
        path = model
        tokens = dict(enumerate([*SPECIALS, *SentencePieces(model).pieces[3:]]))
    for number, token in _added_tokens(directory, len(tokens), path != model):
        if tokens.setdefault(number, token) != token:
            raise InputError(
                f"{directory}: {shown(token)} has the id {number}, but {path.name} has {shown(tokens[number])} there; "
                f"give the files of one tokenizer"
            )
    size = config["vocab_size"]
    if len(tokens) <= max(tokens) or not len(tokens) <= size <= len(tokens) + _SPARE:
        raise InputError(
            f"{directory}: the tokenizer has {len(tokens)} tokens with ids up to {max(tokens)}, but config.json gives "
            f"vocab_size {size}; give the files of the model's own tokenizer"
        )
    form = "[{}]" if config["model_type"] == "mbart" else "__{}__"
    codes = {number: match[1] or match[2] for number in sorted(tokens) if (match := _CODE.fullmatch(tokens[number]))}
    tokens.update({number: form.format(code) for number, code in codes.items()})
    whole = [tokens.get(number, f"madeupword{number:04d}") for number in range(size)]
    settings = _optional(directory / "tokenizer_config.json")
    languages = _languages(
        directory / "tokenizer_config.json", [settings.get(name) for name in ("src_lang", "tgt_lang")], stated
    )
    task = Namespace(
        _name=MULTILINGUAL,
        langs=list(codes.values()),
        lang_pairs=[f"{languages[0]}-{languages[1]}", f"{languages[1]}-{languages[0]}"],
        source_lang=languages[0],
        target_lang=languages[1],
        encoder_langtok="src",
        decoder_langtok=True,
        encoder_langtok_last=settings.get("legacy_behaviour") is True,
        lang_tok_style="mbart" if form[0] == "[" else "multilingual",
        max_source_positions=config["max_position_embeddings"],
        max_target_positions=config["max_position_embeddings"],
    )
    if _starts_with_tag(directory, config):
        task._name, task.langs, task.prepend_bos = PRETRAINED, ",".join(task.langs), False
    subwords = {"bpe": "sentencepiece", "sentencepiece_model": str(model)}
    return _Text((whole, whole), languages, task, subwords)


def _starts_with_tag(directory: Path, config: Mapping[str, Any]) -> bool:
    """Whether this is an mBART before mBART-50, whose sources end, and whose targets begin, with the language."""
    if config["model_type"] != "mbart":
        return False
    named = (config, _optional(directory / "tokenizer_config.json"))
    return not any(str(of.get("tokenizer_class")).startswith("MBart50") for of in named)


def _added_tokens(directory: Path, count: int, own_ids: bool) -> Iterable[tuple[int, str]]:
    """The tokens that come after the ``count`` of the vocabulary, and their ids.

    ``own_ids``: M2M-100, where vocab.json has the ids; the others have ``<mask>`` at the end.
    """
    settings, special = (_optional(directory / f"{name}.json") for name in ("tokenizer_config", "special_tokens_map"))
    if own_ids:
        codes = _WMT21_CODES if settings.get("language_codes") == "wmt21" else _M2M_CODES
        return enumerate((f"__{code}__" for code in codes.split()), count)
    if by_id := settings.get("added_tokens_decoder"):
        return [(int(number), token["content"]) for number, token in by_id.items()]
    if listed := _optional(directory / "tokenizer.json").get("added_tokens"):
        return [(token["id"], token["content"]) for token in listed]
    named = special.get("additional_special_tokens") or settings.get("additional_special_tokens")
    if not named:
        raise InputError(
            f"{directory}: no file names the codes of the languages; expected special_tokens_map.json, "
            f"tokenizer_config.json or tokenizer.json as the model was saved with"
        )
    listed = [token["content"] if isinstance(token, dict) else token for token in named]
    return enumerate([*listed, "<mask>"], count)


def _vocabulary(path: Path, size: int | None = None) -> list[str]:
    """The tokens of a vocabulary in JSON by id; config.json says that there are ``size``.

    Raises:
        InputError: the file is no such vocabulary, or does not belong to the configuration.
    """
    ids = read_json(path, "the vocabulary of the model")
    if size is not None and len(ids) != size:
        raise InputError(f"{path}: the file has {len(ids)} tokens, but config.json gives vocab_size {size}")
    tokens = {number: token for token, number in ids.items() if type(number) is int}
    if sorted(tokens) != list(range(len(ids))):
        raise InputError(
            f"{path}: the ids are not the numbers from 0 to {len(ids) - 1}, each once; copy the file again"
        )
    if broken := [token for token in ids if "\n" in token or "\r" in token]:
        raise InputError(f"{path}: token {broken[0]!r} contains a line end, which fairseq's dictionaries cannot hold")
    return [tokens[number] for number in range(len(ids))]


def _languages(path: Path, known: Sequence[Any], stated: Sequence[str | None]) -> tuple[str, str]:
    """The languages: as stated, else as a file says."""
    languages = []
    for option, given, own in zip(("-s", "-t"), stated, known):
        language = given or own
        if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
            origin = f"{option} {given}" if given else f"{path} names no language ({own!r})"
            raise UsageError(f"{origin}: expected the name of a language, such as de; give it with {option}")
        languages.append(language)
    if languages[0] == languages[1]:
        raise UsageError(f"source and target language are both {languages[0]}: expected two; give them with -s and -t")
    return languages[0], languages[1]


def _translation(languages: Sequence[str]) -> Any:
    return plain(TranslationConfig(_name="translation", data=".", source_lang=languages[0], target_lang=languages[1]))


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path, f"the model's {path.name}") if path.exists() else {}


def _present(path: Path, what: str) -> Path:
    if not own_file(path).is_file():
        other = ", and tokenizer.json does not replace it" if (path.parent / "tokenizer.json").exists() else ""
        raise InputError(f"{path}: no such file{other}; give {what} that the model was trained with")
    return path
