"""The files of a model in the format of Transformers: config.json, weights, and what those of its tokenizer say."""

from __future__ import annotations

import json
import os
import re
import zipfile
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
import torch
from fairseq.data import Dictionary
from fairseq.tasks.translation import TranslationConfig
from omegaconf import OmegaConf
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, shown, warn_user
from alignment_eval.profiles.profile import TextRecipe
from alignment_eval.reading import Count, ForeignFile
from fairseq_norm_plugin.checkpoints.files import weights_file
from fairseq_norm_plugin.checkpoints.read import MULTILINGUAL, PRETRAINED, explained
from fairseq_norm_plugin.text.subwords import SentencePieceSegmenter, TokenizersSegmenter
from fairseq_norm_plugin.text.tokens import MARIAN_TAG, list_tags

#: Transformers' names of activations -> fairseq's --activation-fn; only the plugin's Marian network has swish.
ACTIVATIONS = {
    **{"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_accurate", "gelu_pytorch_tanh": "gelu_accurate"},
    **{"swish": "swish", "silu": "swish"},
}
#: Types of weights; those of quantised models mean other numbers.
_TYPES = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object that a file holds; ``what`` says which file of a model is expected, for messages."""
    try:
        content = json.loads(own_file(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the file ({error}); give {what}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: the file holds no JSON object; give {what}")
    return content


def read_config(path: Path, allowed: Mapping[str, Sequence[object]], sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """Read config.json, and refuse options that would compute something else.

    ``allowed`` has the values that can be read of each option, the default first; ``sizes`` the options that must be
    positive integers, and their defaults.
    """
    defaults = {name: values[0] for name, values in allowed.items()}
    config = {**defaults, **sizes, **read_json(path, "the model's config.json")}
    for name, values in allowed.items():
        if not any(type(config[name]) is type(value) and config[name] == value for value in values):
            raise InputError(f"{path}: {name} is {config[name]!r}: expected {' or '.join(map(str, values))}")
    for name in sizes:
        if type(config[name]) is not int or config[name] < 1:
            raise InputError(f"{path}: {name} is {config[name]!r}, not a positive integer")
    return config


def own_file(path: Path) -> Path:
    """A file of a model's directory, which is no link to a file elsewhere.

    A directory of Hugging Face's cache, ``snapshots/REVISION``, has links to the ``blobs`` beside.
    """
    try:
        directory, real = path.parent.resolve(), path.resolve()
    except (OSError, RuntimeError) as error:
        raise InputError(f"{path}: a symbolic link to itself; copy the file into the directory") from error
    blobs = [directory.parent.parent / "blobs"] if directory.parent.name == "snapshots" else []
    if not any(real.is_relative_to(place) for place in (directory, *blobs)):
        raise InputError(f"{path}: a symbolic link to {real}, outside of the model's directory; copy the file")
    return path


def read_weights(directory: Path) -> dict[str, Tensor]:
    """The model's tensors by name, mapped into memory: they are read when they are copied."""
    path = weights_file(directory)
    if path is None:
        raise InputError(f"{directory}: the directory has neither model.safetensors nor pytorch_model.bin")
    if path.suffix != ".json":
        return _mapped(path)
    parts = read_json(path, "the index of the model's weights").get("weight_map")
    if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
        raise InputError(f"{path}: the file has no weight_map from tensors to files; give the index of the weights")
    tensors: dict[str, Tensor] = {}
    for name in sorted(set(parts.values())):
        part = directory / Path(name).name  # never outside of the directory
        if not part.is_file():
            raise InputError(f"{part}: no such file, but {path.name} names it; give all parts of the weights")
        tensors.update(_mapped(part))
    if missing := sorted(parts.keys() - tensors.keys()):
        raise InputError(
            f"{directory / parts[missing[0]]}: no {missing[0]}, which {path.name} places there; copy it again"
        )
    return tensors


def _mapped(path: Path) -> dict[str, Tensor]:
    """The tensors of a file."""
    with explained(str(path)):
        if own_file(path).suffix == ".safetensors":
            try:
                from safetensors.torch import load_file
            except ImportError:
                raise UsageError(f"{path}: reading this file needs safetensors; pip install safetensors") from None
            return load_file(path)
        # weights_only: a .bin cannot run code
        tensors = torch.load(path, "cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: the file holds more than named tensors; give the weights of a model")
    return {str(name): tensor for name, tensor in tensors.items()}


class Weights:
    """The tensors of the model in ``directory``, which are taken one by one, so that none is forgotten."""

    def __init__(self, tensors: Mapping[str, Tensor], directory: Path) -> None:
        self._tensors = dict(tensors)
        self._directory = directory

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, *shape: int) -> Tensor:
        """Take out a tensor, which has the ``shape`` if one is given."""
        if name not in self._tensors:
            raise InputError(f"{self._directory}: the weights have no {name}; copy the model again")
        tensor = self._tensors.pop(name)
        if shape and tensor.shape != shape:
            raise InputError(
                f"{self._directory}: {name} has the shape {list(tensor.shape)}, but config.json gives {list(shape)}"
            )
        if tensor.dtype not in _TYPES:
            raise InputError(
                f"{self._directory}: {name} is of the type {tensor.dtype}; give weights that are not quantised"
            )
        return tensor

    def take_one(self, names: Iterable[str], *shape: int) -> Tensor:
        """Take out a matrix that is stored under one or several of ``names``."""
        first, *others = [name for name in names if name in self] or list(names)[:1]
        tensor = self.take(first, *shape)
        for name in others:
            if not torch.equal(tensor, self.take(name, *shape)):
                raise InputError(f"{self._directory}: {name} differs from {first}, but they are one matrix")
        return tensor

    def take_rest(self, unused: re.Pattern[str]) -> dict[str, Tensor]:
        """Take out all other tensors, but ``unused`` ones, under their names without ``model.``."""
        names = [name for name in self._tensors if not unused.match(name)]
        return {name.removeprefix("model."): self.take(name) for name in names}


# ---- the tokenizer

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


@dataclass(frozen=True)
class TokenizerFiles:
    """What the files of a tokenizer say: the tokens of both sides by id, the task, subwords and tokenizer."""

    tokens: tuple[list[str], list[str]]
    languages: tuple[str, str]
    task: Any
    subwords: TextRecipe
    tokenizer: dict[str, Any] | None = None


class _Token(msgspec.Struct):
    """A token that a tokenizer has besides those of its model, and its id if it is stated here."""

    content: str
    id: Count = 0


#: What no line of text has, and no line of fairseq's dictionaries can hold.
_BREAK = re.compile(r"[\r\n]")
_Digits = Annotated[str, msgspec.Meta(pattern=r"^\d{1,9}$")]


def plain_config(config: Any) -> Any:
    """The options of one of fairseq's dataclasses as plain values."""
    return OmegaConf.to_container(OmegaConf.structured(config), enum_to_str=True)


def dictionary_text(tokens: Iterable[str]) -> str:
    """The file of a fairseq dictionary of ``tokens``, which come after fairseq's own four.

    A token with a line break, which no line of text has, is named by its place.
    """
    names = (f"<line break {n}>" if _BREAK.search(token) else token for n, token in enumerate(tokens))
    return "".join(f"{name} 1\n" for name in names)


def write_dictionary(path: Path, tokens: Iterable[str]) -> Dictionary:
    """Write a fairseq dictionary, and read it as fairseq does."""
    path.write_text(dictionary_text(tokens), encoding="utf-8", newline="\n")
    return Dictionary.load(str(path))


def marian_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> TokenizerFiles:
    """Marian: a SentencePiece model and a vocabulary of each language, or one vocabulary for both."""
    path = directory / "tokenizer_config.json"
    known = _optional(path)
    languages = _languages(path, (known.get("source_lang"), known.get("target_lang")), stated)
    source = _vocabulary(directory / "vocab.json", config["vocab_size"])
    other = directory / "target_vocab.json"
    one = config["share_encoder_decoder_embeddings"] or not other.exists()
    target = _vocabulary(directory / "vocab.json" if one else other, config["decoder_vocab_size"])
    tags = [token for token in source if MARIAN_TAG.fullmatch(token)]
    if tags and f">>{languages[1]}<<" not in tags:
        warn_user(
            f"{directory}: each source begins with the tag of a target language, and none is of {languages[1]}: name "
            f"it with --model-option target_tag=TAG, or with -t ({list_tags(tags)})"
        )
    files = [str(_present(directory / name, "the SentencePiece model")) for name in ("source.spm", "target.spm")]
    subwords = TextRecipe(bpe="sentencepiece", files={"sentencepiece_model": files})
    return TokenizerFiles((source, target), languages, _translation(languages), subwords)


def fsmt_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> TokenizerFiles:
    """FSMT: Moses' tokens, cut by the codes of fastBPE; a vocabulary of each language."""
    path = directory / "config.json"
    own = config.get("langs")
    languages = _languages(path, own if isinstance(own, list) and len(own) == 2 else (None, None), stated)
    trained = tuple(own) if isinstance(own, list) and languages == tuple(own[::-1]) else languages
    sides = zip(("src", "tgt"), ("src_vocab_size", "tgt_vocab_size"))
    source, target = (
        [
            # fastBPE's be@@ and low are Transformers' be and low</w>
            token if token in SPECIALS else f"{token}@@".removesuffix("</w>@@")
            for token in _vocabulary(directory / f"vocab-{side}.json", config[size])
        ]
        for side, size in sides
    )
    codes = _present(directory / "merges.txt", "the codes")
    lower = _optional(directory / "tokenizer_config.json").get("do_lower_case") is True
    subwords = TextRecipe(bpe="fastbpe", files={"bpe_codes": [str(codes)]}, lowercase=lower or None)
    return TokenizerFiles((source, target), languages, _translation(trained), subwords, {"_name": "moses_normalized"})


def mbart_text(directory: Path, config: Mapping[str, Any], stated: Sequence[str | None]) -> TokenizerFiles:
    """mBART-50, and mBART before, whose sources end, and whose targets begin, with the language."""
    text = m2m_text(directory, config, stated, "mbart", "[{}]")
    named = (config, _optional(directory / "tokenizer_config.json"))
    if not any(str(options.get("tokenizer_class")).startswith("MBart50") for options in named):
        text.task._name, text.task.langs, text.task.prepend_bos = PRETRAINED, ",".join(text.task.langs), False
    return text


def m2m_text(
    directory: Path,
    config: Mapping[str, Any],
    stated: Sequence[str | None],
    style: str = "multilingual",
    form: str = "__{}__",
) -> TokenizerFiles:
    """M2M-100 and NLLB: one vocabulary, and codes of languages among the added tokens; fairseq's are as ``form``."""
    model, path, fast = (directory / name for name in (_SENTENCEPIECE, "vocab.json", "tokenizer.json"))
    added: Iterable[tuple[int, str]] = ()
    subwords = TextRecipe(bpe="sentencepiece", files={"sentencepiece_model": [str(model)]})
    if not path.exists() and not os.path.lexists(model) and os.path.lexists(fast):  # as Transformers 5 saves it
        subwords = TextRecipe(bpe="tokenizers", files={"tokenizer_json": [str(fast)]})
        tokens = {number: token for token, number in TokenizersSegmenter(own_file(fast)).ids.items()}
    else:
        own = SentencePieceSegmenter(_present(model, "the SentencePiece model")).entries
        tokens = dict(enumerate(_vocabulary(path) if path.exists() else [*SPECIALS, *own[3:]]))
        added = _added_tokens(directory, len(tokens), path.exists())
    for number, token in added:
        if tokens.setdefault(number, token) != token:
            raise InputError(f"{directory}: {shown(token)} and {shown(tokens[number])} both have the id {number}")
    size = config["vocab_size"]
    if len(tokens) <= max(tokens) or not len(tokens) <= size <= len(tokens) + _SPARE:
        raise InputError(
            f"{directory}: the tokenizer has {len(tokens)} tokens with ids up to {max(tokens)}, but config.json gives "
            f"vocab_size {size}"
        )
    codes = {number: match[1] or match[2] for number in sorted(tokens) if (match := _CODE.fullmatch(tokens[number]))}
    tokens.update({number: form.format(code) for number, code in codes.items()})
    whole = [tokens.get(number, f"madeupword{number:04d}") for number in range(size)]
    settings = _optional(path := directory / "tokenizer_config.json")
    if settings.get("legacy_behaviour") is True:
        raise InputError(f"{path}: legacy_behaviour is true: the language of the source last, which fairseq cannot do")
    languages = _languages(path, (settings.get("src_lang"), settings.get("tgt_lang")), stated)
    task = Namespace(
        _name=MULTILINGUAL,
        langs=list(codes.values()),
        lang_pairs=[f"{languages[0]}-{languages[1]}", f"{languages[1]}-{languages[0]}"],
        source_lang=languages[0],
        target_lang=languages[1],
        encoder_langtok="src",
        decoder_langtok=True,
        lang_tok_style=style,
        max_source_positions=config["max_position_embeddings"],
        max_target_positions=config["max_position_embeddings"],
    )
    return TokenizerFiles((whole, whole), languages, task, subwords)


def _added_tokens(directory: Path, count: int, own_ids: bool) -> Iterable[tuple[int, str]]:
    """The tokens that come after the ``count`` of the vocabulary, and their ids.

    ``own_ids``: M2M-100, where vocab.json has the ids; the others have ``<mask>`` at the end.
    """
    settings, special = (_optional(directory / f"{name}.json") for name in ("tokenizer_config", "special_tokens_map"))
    if own_ids:
        codes = _WMT21_CODES if settings.get("language_codes") == "wmt21" else _M2M_CODES
        return enumerate((f"__{code}__" for code in codes.split()), count)
    file = ForeignFile(str(directory), "a tokenizer of Transformers", "give its files as they were saved")
    if by_id := settings.get(name := "added_tokens_decoder"):
        return [
            (int(number), token.content) for number, token in file.convert(by_id, dict[_Digits, _Token], name).items()
        ]
    if listed := _optional(directory / "tokenizer.json").get(name := "added_tokens"):
        return [(token.id, token.content) for token in file.convert(listed, list[_Token], name)]
    name = "additional_special_tokens"
    if not (named := special.get(name) or settings.get(name)):
        raise InputError(
            f"{directory}: no file names the codes of the languages: expected special_tokens_map.json, "
            f"tokenizer_config.json or tokenizer.json"
        )
    added = [
        token if isinstance(token, str) else token.content for token in file.convert(named, list[str | _Token], name)
    ]
    return enumerate([*added, "<mask>"], count)


def _vocabulary(path: Path, size: int | None = None) -> list[str]:
    """The tokens of a vocabulary in JSON by id; config.json says that there are ``size``."""
    ids = read_json(path, "the vocabulary of the model")
    if size is not None and len(ids) != size:
        raise InputError(f"{path}: the file has {len(ids)} tokens, but config.json gives vocab_size {size}")
    tokens = {number: token for token, number in ids.items() if type(number) is int}
    if sorted(tokens) != list(range(len(ids))):
        raise InputError(f"{path}: the ids are not 0 to {len(ids) - 1}, each once; copy the file again")
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
    source, target = languages
    return plain_config(TranslationConfig(_name="translation", data=".", source_lang=source, target_lang=target))


def _optional(path: Path) -> dict[str, Any]:
    return read_json(path, f"the model's {path.name}") if os.path.lexists(path) else {}


def _present(path: Path, what: str) -> Path:
    if not own_file(path).is_file():
        raise InputError(f"{path}: no such file; give {what} that the model was trained with")
    return path
