"""Reads fairseq checkpoints so that they run no code, neither when they are read nor when their model is built.

torch's ``weights_only`` refuses fairseq's own checkpoints because of the inert types they hold.  This module admits
those types; everything else stays refused, with a message that names it.

``weights_only`` lets strings pass, and fairseq calls ``eval`` on some options when it builds a model
(``adaptive_softmax_cutoff``, the layers of convolutional models, …).  So the options are checked before fairseq sees
them, and those that name other files are set to None.

A checkpoint of a training under the plugin is one of stock fairseq: its task and criterion, and no other options.  What
the plugin reads back lies where stock fairseq does not look: the best AER in ``extra_state``, and ``guided_maps`` among
the options of the model.
"""

from __future__ import annotations

import argparse
import ast
import collections
import errno
import functools
import pickle
import re
import warnings
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.models.multilingual_transformer import MultilingualTransformerModel
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerModelBase
from fairseq.models.transformer_lm import TransformerLanguageModel
from omegaconf import DictConfig, ListConfig, OmegaConf, ValueNode, _utils
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode

from alignment_eval.errors import InputError, UsageError, printable, shown, warn_user
from fairseq_norm_plugin.checkpoints.identity import FAST_PATH_COPY

Pair = tuple[str, str]

NOT_SAVED = "give a checkpoint that fairseq-train saved"
_SCALAR = np.float64(0).__reduce__()[0]  # numpy's constructor of scalars
#: Types that hold data and run no code, each with the checkpoints that need it.
_INERT: list[Any] = [
    argparse.Namespace,  # args of old checkpoints, legacy model options in cfg of new ones
    # numpy scalars in meters and in extra_state (best, val_loss), with the names of numpy 1 and 2
    *((_SCALAR, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    np.dtype,
    *{type(np.dtype(code)) for code in ("f2", "f4", "f8", "i4", "i8", "?")},
]
#: What every encoder-decoder Transformer of fairseq has.
_TRANSFORMER_WEIGHTS = frozenset(
    f"{side}coder.{part}" for side in ("en", "de") for part in ("embed_tokens.weight", "layers.0.fc1.weight")
)
#: The models that fairseq builds without evaluating text, :data:`EVALUATED` aside.
_SAFE = (TransformerModelBase, MultilingualTransformerModel, RobertaModel, TransformerLanguageModel)
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
        "sentencepiece_model_path tokenizer_json",
    }.items()
}
#: Those whose files are looked up by their names in the directories of the model.
LOOKED_UP = PATHS["bpe"] | {"lang_dict"}
#: Endings of options that hold file names and other free text, which nothing evaluates.
_PATHS = ("data", "dir", "file", "path", "prefix", "project", "url", "checkpoint", "suffix", "name", "logdir")
#: A reference to another option of the same checkpoint; it reads nothing outside the checkpoint.
_REFERENCE = re.compile(r"\$\{\w+(\.\w+)*\}")
#: fairseq's tasks whose models read their languages as tags.
TAGGED = MULTILINGUAL, PRETRAINED = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
_CRITERION = "guided_alignment"
#: Tasks and criteria of the plugin -> those of fairseq that have their models and losses in validation.
_STOCK = {
    **{f"{name}_norm": name for name in ("translation", *TAGGED)},
    _CRITERION: "label_smoothed_cross_entropy",
}
#: Options of the criterion, which fairseq's does not have.
_GUIDED = ("alignment_lambda", "guided_maps")


def admit_checkpoint_types() -> None:
    """Let ``torch.load`` accept the inert types of fairseq checkpoints, and make its refusals readable.

    Training in several processes also restarts from its own checkpoints: the first process reads one and sends it.

    This is idempotent, because fairseq's data-parallel workers import the plugin again.
    """
    torch.serialization.add_safe_globals(_INERT)
    load = checkpoint_utils.load_checkpoint_to_cpu
    if not hasattr(load, "__wrapped__"):
        checkpoint_utils.load_checkpoint_to_cpu = _explain_refusals(load)
        distributed_utils._broadcast_object_slow = _receive_options(distributed_utils._broadcast_object_slow)
    save_stock_checkpoints()


def _receive_options(broadcast: Any) -> Any:
    """Let a process receive what another one of the same training has read and checked."""
    config = [DictConfig, ListConfig, ContainerMetadata, Metadata, AnyNode, Any, dict, list, int]
    types = [*config, collections.defaultdict, distributed_utils._TensorPlaceholder]

    @functools.wraps(broadcast)
    def broadcast_object(*args: Any, **kwargs: Any) -> Any:
        with torch.serialization.safe_globals(types):
            return broadcast(*args, **kwargs)

    return broadcast_object


def _explain_refusals(load: Any) -> Any:
    @functools.wraps(load)
    def load_checkpoint_to_cpu(path: str, arg_overrides: Any = None, *args: Any, **kwargs: Any) -> Any:
        with explained(path):
            _check(str(PathManager.get_local_path(path)))
            state = load(path, arg_overrides, *args, **kwargs)
        for group in ("args", "cfg"):
            forget_paths(state.get(group), arg_overrides or ())
        _remove_copies(state)
        saved = OmegaConf.to_container(state["cfg"])
        wanted = as_commanded(stock_options(saved), arg_overrides or {}, path)
        if wanted != saved:
            state.update(args=None, cfg=config_of(wanted))
            OmegaConf.set_struct(state["cfg"], True)  # as fairseq does
        return state

    return load_checkpoint_to_cpu


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Make errors of torch that reading ``path`` raises inside readable."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise _refusal(path, error) from None  # torch's messages recommend weights_only=False, which runs code


def _refusal(path: str, error: Exception) -> Exception:
    """The error for a file that ``error`` was raised at."""
    if isinstance(error, pickle.UnpicklingError):
        found = re.search(r"GLOBAL (\S+)", str(error))
        if found is None:
            return InputError(f"{path}: not a checkpoint, or damaged; expected a file that fairseq-train wrote")
        return InputError(
            f"{path}: the file holds {printable(found[1], 80)}, which could run code; a checkpoint has tensors and "
            f"plain options only: get the weights from a source that you trust and save them again"
        )
    # torch seeks the archive's directory at the end, and in a short file even before the beginning
    cut = isinstance(error, (EOFError, zipfile.BadZipFile)) or "zip archive" in str(error)
    if cut or (isinstance(error, OSError) and error.errno == errno.EINVAL):
        return InputError(f"{path}: the checkpoint is incomplete; copy or save it again")
    if isinstance(error, OSError):
        return error
    return InputError(f"{path}: damaged, or not a checkpoint ({type(error).__name__}); copy or save it again")


@contextmanager
def fairseq_errors(what: str, advice: str) -> Iterator[None]:
    """Turn whatever fairseq raises at files that do not fit into one sentence; our errors and those of files pass."""
    try:
        yield
    except (InputError, OSError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # fairseq raises plain exceptions, assertions and what Python raises
        reason = printable(" ".join(f"{type(error).__name__}: {error}".split()), 160)
        raise InputError(f"{what} ({reason}); {advice}") from error


def languages_of(options: Any) -> Pair | None:
    """The source and target language that a checkpoint's options say, if they say both."""
    source, target = (getattr(options, name, None) for name in ("source_lang", "target_lang"))
    return (source, target) if source and target else None


def languages_warning(name: str, trained: Pair, used: Pair) -> str:
    """The warning about a model that is used for other languages than those of its training."""
    return (
        f"{name} was trained from {trained[0]} to {trained[1]}, but is used from {used[0]} to {used[1]}: its maps mean "
        f"little then; give a model of that direction, or exchange -s and -t and the two texts"
    )


def read_checkpoint_parts(paths: Sequence[str]) -> dict[str, Any]:
    """The content of a checkpoint, whose weights may be in several files; its tensors are mapped."""
    state = read_checkpoint(paths[0])
    for path in paths[1:]:
        for name, tensor in read_checkpoint(path)["model"].items():
            if name in state["model"] and not torch.equal(state["model"][name], tensor):
                raise InputError(
                    f"{path}: has a part of {name}, which {paths[0]} has too, and such parts cannot be joined; save "
                    f"the model in one file with the program that trained it"
                )
            state["model"][name] = tensor
    if flat := [name for name in state["model"] if "flat_param" in name]:
        raise InputError(
            f"{paths[0]}: has {flat[0]}, parameters as FSDP cuts them: run fairseq's scripts/consolidate_fsdp_shards.py"
        )
    return state


def read_checkpoint(path: str) -> dict[str, Any]:
    """The content of a checkpoint as fairseq reads it, its options in ``cfg``; its tensors are mapped into memory."""
    with explained(path):
        state = _check(path)
    for group in ("args", "cfg"):
        forget_paths(state.get(group), LOOKED_UP)
    if state.get("cfg") is not None:
        state["cfg"] = config_of(stock_options(state["cfg"]))
    if "optimizer_history" not in state and "optimizer" not in state:  # removed to make the file smaller
        state["optimizer_history"] = [{"optimizer_name": "", "lr_scheduler_state": {}, "num_updates": 0}]
    if "epoch" not in state:
        state.setdefault("extra_state", {"train_iterator": None})
    with explained(path), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # hydra warns about fairseq's calls
        upgraded: dict[str, Any] = checkpoint_utils._upgrade_state_dict(state)
    _remove_copies(upgraded)
    return upgraded


def _check(path: str) -> dict[str, Any]:
    """The content of a checkpoint that is undamaged and whose options are plain; its tensors are mapped."""
    zipped = zipfile.is_zipfile(path)  # else saved by a torch version before 1.6
    if zipped:
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise InputError(f"{path}: the file is damaged (wrong checksum of {damaged}); copy or save it again")
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    weights = state.get("model") if isinstance(state, dict) else None
    if not (isinstance(weights, dict) and weights):
        raise InputError(f"{path}: the file has no weights; {NOT_SAVED}")
    for name, tensor in weights.items():
        if not (isinstance(name, str) and isinstance(tensor, torch.Tensor)):
            raise InputError(f"{path}: weight {shown(name)} is not a named tensor; {NOT_SAVED}")
    if state.get("cfg") is None and state.get("args") is None:
        raise InputError(f"{path}: the file has weights but no options of a model; {NOT_SAVED}")
    check_options(state, path)
    content: dict[str, Any] = state
    return content


def _remove_copies(state: dict[str, Any]) -> None:
    for name in [name for name in state.get("model", {}) if FAST_PATH_COPY.search(name)]:
        del state["model"][name]


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


def check_options(state: Mapping[str, Any], path: str) -> None:
    """Check the options of a checkpoint that was read from ``path`` but not yet given to fairseq."""
    for group in ("args", "cfg"):
        if state.get(group) is None:
            continue
        options = _named(state[group])
        if not isinstance(options, Mapping):
            raise InputError(f"{path}: the options ({group}) are a {type(options).__name__}, not named options")
        model = options.get("model", options) if group == "cfg" else options
        _check_architecture(_named(model), path, state.get("model", ()))
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
    inner = _named(options)
    for name in inner if isinstance(inner, Mapping) else ():
        if name in forgotten:
            inner[name] = "" if name == "plasma_path" else None  # which fairseq's language models want as text
        else:  # a node of a DictConfig: references are not followed
            forget_paths(inner._get_node(name) if isinstance(inner, DictConfig) else inner[name], kept)


def _check_architecture(model: Any, path: str, weights: Collection[str]) -> None:
    """Check that the model is one that fairseq builds without evaluating text.

    One whose name fairseq does not know, but which has the parts of an encoder-decoder Transformer, is taken for one:
    if it is another, its parameters do not fit.
    """
    names = {key: model[key] for key in ("_name", "arch") if isinstance(model, Mapping) and model.get(key) is not None}
    if not names:
        raise InputError(f"{path}: the options name no architecture; give a checkpoint that fairseq-train saved")
    own = [key for key, name in names.items() if str(name) not in {*ARCH_MODEL_REGISTRY, *MODEL_REGISTRY}]
    if own and set(weights) >= _TRANSFORMER_WEIGHTS:
        warn_user(
            f"{path}: architecture {shown(names[own[0]])} is none of fairseq's; it is read as fairseq's Transformer, "
            f"whose parameters it has; if it computes something else, name the directory that registers it "
            f"(--user-dir DIR)"
        )
        model.update(dict.fromkeys(own, "transformer"))
        names.update(dict.fromkeys(own, "transformer"))
    for name in names.values():
        known = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) if isinstance(name, str) else None
        if known is None or not issubclass(known, _SAFE):
            raise InputError(
                f"{path}: architecture {shown(name)} is not supported; give an encoder-decoder Transformer, RoBERTa or "
                f"transformer_lm (others are built by evaluating text of the checkpoint)"
                f"{'; if it is one, name the directory that registers it (--user-dir DIR)' if own else ''}"
            )


def _named(options: Any) -> Any:
    options = options._value() if isinstance(options, ValueNode) else options
    return vars(options) if isinstance(options, argparse.Namespace) else options


def _values(options: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Every single value with the innermost name that leads to it."""
    for name, value in options.items():
        inner = _named(value)
        if isinstance(inner, Mapping):
            yield from _values(inner)
        elif isinstance(inner, (list, tuple)):
            for entry in inner:
                yield from _values({name: entry})
        else:
            yield str(name), inner


def _check_text(name: str, text: str, path: str) -> None:
    if "${" in text and not _REFERENCE.fullmatch(text):
        raise InputError(f"{path}: option {printable(name, 80)} is {shown(text)}, a reference to what this machine has")
    if name in EVALUATED or ("(" in text and name.split("_")[-1] not in _PATHS):
        try:
            ast.literal_eval(text)  # a number, a string, or a list, tuple or mapping of these
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError) as error:
            raise InputError(
                f"{path}: option {printable(name, 80)} is {shown(text)}, no numbers; fairseq would evaluate it"
            ) from error


# ---- stock fairseq's options


def is_ours(option: str) -> bool:
    """Whether an option of a task is of the plugin."""
    return option.startswith(("norm_", "aer_"))


def task_name(options: Any) -> str:
    """The name of the task of a checkpoint's options."""
    named = options if isinstance(options, Mapping) else vars(options)
    return str(named.get("_name") or named.get("task", ""))


def stock_options(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """The options ``cfg`` of a checkpoint as a training of stock fairseq would have saved them; ``cfg`` stays."""
    return {group: _of_group(options) for group, options in cfg.items()}


def _of_group(options: Any) -> Any:
    """The options of one group; those of what has no dataclass are in a namespace with those of all groups."""
    named = vars(options) if isinstance(options, argparse.Namespace) else options
    if not isinstance(named, Mapping):
        return options
    guided = _GUIDED if named.get("_name") == _CRITERION else ()
    stock = {name: value for name, value in named.items() if not (is_ours(name) or name in guided)}
    for name in stock.keys() & {"_name", "task", "criterion"}:
        if isinstance(stock[name], str):
            stock[name] = _STOCK.get(stock[name], stock[name])
    if isinstance(stock.get("user_dir"), str) and Path(stock["user_dir"]).name == __name__.partition(".")[0]:
        stock["user_dir"] = None
    return argparse.Namespace(**stock) if isinstance(options, argparse.Namespace) else stock


def save_stock_checkpoints() -> None:
    """Let fairseq save checkpoints of stock fairseq only."""
    save = checkpoint_utils.torch_persistent_save
    if hasattr(save, "__wrapped__"):
        return

    @functools.wraps(save)
    def torch_persistent_save(state: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state, dict) and isinstance(state.get("cfg"), dict):
            state = {**state, "cfg": stock_options(state["cfg"])}
        return save(state, *args, **kwargs)

    checkpoint_utils.torch_persistent_save = torch_persistent_save


def as_commanded(cfg: dict[str, Any], command: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The options of a checkpoint, whose task is the norm task that a command line names, with its options.

    fairseq-validate takes the task from the checkpoint, and only its options from the command line.
    """
    named = command.get("task")
    if not isinstance(named, str) or named not in _STOCK:
        return cfg
    trained = task_name(cfg["task"])
    if _STOCK[named] != trained:
        expected = f"--task {trained}_norm" if trained in _STOCK.values() else "omit --task and its options"
        raise UsageError(
            f"--task {named}: {path} was trained with --task {shown(trained)}, which decides how it is read; {expected}"
        )
    options, ours = cfg["task"], {name: value for name, value in command.items() if is_ours(name)}
    if isinstance(options, argparse.Namespace):
        return {**cfg, "task": argparse.Namespace(**{**vars(options), **ours, "_name": named, "task": named})}
    return {**cfg, "task": {**options, **ours, "_name": named}}
