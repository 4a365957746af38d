"""Checks the options stored in a checkpoint, because fairseq evaluates some of them as Python when it builds a model.

``torch.load(weights_only=True)`` keeps a checkpoint from running code while it is read.  But it lets strings pass, and
fairseq calls ``eval`` on some of them (``adaptive_softmax_cutoff``, the layers of convolutional models, …).  So the
options are checked before fairseq sees them, and those that name other files are set to None.
"""

from __future__ import annotations

import ast
import re
from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from inspect import signature
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerModelBase
from omegaconf import DictConfig, OmegaConf, ValueNode, _utils

from alignment_eval.errors import InputError, printable, shown

#: fairseq's tasks whose models read their languages as tags.
MULTILINGUAL, PRETRAINED = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
#: Whether omegaconf is newer than 2.0, which comes with fairseq 0.12.2.
_HAS_FLAGS = "flags" in signature(OmegaConf.create).parameters
#: Options that fairseq passes to ``eval`` in a model or task that this plugin supports: literals only.
EVALUATED = frozenset(
    (
        *("adaptive_input_cutoff", "adaptive_softmax_cutoff", "character_filters", "decoder_xformers_att_config"),
        *("encoder_xformers_att_config", "left_pad_source", "left_pad_target", "pipeline_balance", "pipeline_devices"),
        "xformers_att_config",
    )
)
#: Options of fairseq's and the plugin's registries that name a file, a directory or an address.
PATHS: Mapping[str, frozenset[str]] = {
    registry: frozenset(names.split())
    for registry, names in {
        "task": "aer_gold baseline_model config_yaml data extra_data fixed_dictionary label_dir lang_dict "
        "lang_to_offline_shard_ratio lm_path multitask_config_yaml norm_alignments norm_profile norm_records "
        "norm_source_text norm_target_text plasma_path post_save_script replace_unk sampling_weights_from_file "
        "source_dict target_dict target_dictionary",
        "model": "data decoder_embed_path encoder_embed_path load_pretrained_aux_decoder_from "
        "load_pretrained_decoder_from load_pretrained_encoder_from multires_hubert_path pretrained_checkpoint "
        "pretrained_mlm_checkpoint pretrained_xlm_checkpoint seq2seq_path w2v_args w2v_path",
        "criterion": "save_predictions wer_args wer_kenlm_model wer_lexicon",
        "scoring": "bert_score_lang",
        "tokenizer": "",
        "bpe": "bpe_codes bpe_merges bpe_vocab bpe_vocab_file gpt2_encoder_json gpt2_vocab_bpe sentencepiece_model "
        "sentencepiece_model_path",
    }.items()
}
#: Those whose files are looked up by their names in the directories of the model.
LOOKED_UP = PATHS["bpe"] | {"lang_dict"}
#: Endings of options that hold file names and other free text, which nothing evaluates.
_PATHS = ("data", "dir", "file", "path", "prefix", "project", "url", "checkpoint", "suffix", "name", "logdir")
#: A reference to another option of the same checkpoint; it reads nothing outside the checkpoint.
_REFERENCE = re.compile(r"\$\{\w+(\.\w+)*\}")


def config_of(options: Mapping[str, Any]) -> DictConfig:
    """Options of a checkpoint, which may hold a Namespace."""
    if _HAS_FLAGS:
        return OmegaConf.create(dict(options), flags={"allow_objects": True})
    known = _utils.is_primitive_type
    _utils.is_primitive_type = lambda _: True  # as fairseq 0.12.2 does: omegaconf 2.0 has no other way
    try:
        return OmegaConf.create(dict(options))
    finally:
        _utils.is_primitive_type = known


def entries_of(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The names and values of options; references are not followed."""
    if not isinstance(options, DictConfig):
        return list(options.items())
    nodes = ((name, options._get_node(name)) for name in options)
    return [(str(name), node._value() if isinstance(node, ValueNode) else node) for name, node in nodes]


def check_options(state: Mapping[str, Any], path: str) -> None:
    """Check the options of a checkpoint that was read from ``path`` but not yet given to fairseq."""
    for group in ("args", "cfg"):
        if state.get(group) is None:
            continue
        options = _plain(state[group])
        if not isinstance(options, Mapping):
            raise InputError(f"{path}: the options ({group}) are a {type(options).__name__}, not named options")
        model = options.get("model", options) if group == "cfg" else options
        _check_architecture(_plain(model), path)
        for name, value in _values(options):
            if isinstance(value, str):
                _check_text(name, value, path)
            elif name.endswith("attention_heads") and isinstance(value, (int, float)) and value < 1:
                raise InputError(f"{path}: option {printable(name, 80)} is {value}: expected 1 head or more")


def forget_paths(options: Any, kept: Collection[str] = ()) -> None:
    """Set to None, in place, every option of a checkpoint that is a path or an address, but those in ``kept``.

    ``data`` stays: fairseq wants a text, and each command states its own.  ``options`` are in mappings and namespaces,
    nested as fairseq nests them.
    """
    forgotten = frozenset().union(*PATHS.values()) - {*kept, "data"}
    inner = _plain(options)
    for name, value in entries_of(inner) if isinstance(inner, Mapping) else ():
        if name in forgotten:
            inner[name] = None  # a dict or a DictConfig
        else:
            forget_paths(value, kept)


def _check_architecture(model: Any, path: str) -> None:
    names = [model[key] for key in ("_name", "arch") if isinstance(model, Mapping) and model.get(key) is not None]
    if not names:
        raise InputError(f"{path}: the options name no architecture; give a checkpoint that fairseq-train saved")
    for name in names:
        known = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) if isinstance(name, str) else None
        if known is None or not issubclass(known, (TransformerModelBase, RobertaModel)):
            raise InputError(
                f"{path}: architecture {shown(name)} is not supported; give an encoder-decoder Transformer or a "
                f"RoBERTa-style encoder (fairseq builds other models by evaluating text of the checkpoint)"
            )


def _plain(options: Any) -> Any:
    return vars(options) if isinstance(options, Namespace) else options


def _values(options: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Every single value with the innermost name that leads to it."""
    for name, value in options.items():
        inner = _plain(value)
        if isinstance(inner, Mapping):
            yield from _values(inner)
        elif isinstance(inner, (list, tuple)):
            for entry in inner:
                yield from _values({name: entry})
        else:
            yield str(name), inner


def _check_text(name: str, text: str, path: str) -> None:
    if "${" in text and not _REFERENCE.fullmatch(text):
        raise InputError(
            f"{path}: option {printable(name, 80)} is {shown(text)}, a reference that would be resolved on this "
            f"machine, so the file is not loaded"
        )
    names_a_file = name.split("_")[-1] in _PATHS
    if (name in EVALUATED or ("(" in text and not names_a_file)) and not _is_literal(text):
        raise InputError(
            f"{path}: option {printable(name, 80)} is {shown(text)}, not numbers; fairseq would evaluate this "
            f"text, which could run code, so the file is not loaded"
        )


def _is_literal(text: str) -> bool:
    """Whether ``text`` is a number, a string, or a list, tuple or mapping of these, with nothing to compute."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
