"""Reads fairseq checkpoints with torch's ``weights_only``, so that they cannot run code, and builds their models.

torch refuses fairseq's own checkpoints then because of the inert types they hold.  This module admits those types;
everything else stays refused, with a message that names it.

fairseq reads a whole checkpoint into memory, fills a new model with random numbers, and copies.  Here a model is built
without random numbers, and its parameters are copied from the mapped file, in their type.
"""

from __future__ import annotations

import argparse
import collections
import errno
import functools
import pickle
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq import checkpoint_utils
from fairseq.distributed import utils as distributed_utils
from fairseq.file_io import PathManager
from omegaconf import DictConfig, ListConfig
from omegaconf.base import ContainerMetadata, Metadata
from omegaconf.nodes import AnyNode
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from alignment_eval.errors import InputError, printable, shown
from fairseq_norm_plugin.checkpoints.identity import FAST_PATH_COPY
from fairseq_norm_plugin.checkpoints.int8 import use_int8
from fairseq_norm_plugin.checkpoints.options import LOOKED_UP, check_options, config_of, forget_paths
from fairseq_norm_plugin.process import DTYPES

Pair = tuple[str, str]

_ADVICE = "give a checkpoint that fairseq-train saved"
#: The type of a model's parameters; with ``int8`` only its products have 8 bits.
_TYPES = {name: torch.float32 if name == "int8" else getattr(torch, name) for name in DTYPES}
_SCALAR = np.float64(0).__reduce__()[0]  # numpy's constructor of scalars
#: Types that hold data and run no code, each with the checkpoints that need it.
_INERT: list[Any] = [
    argparse.Namespace,  # args of old checkpoints, legacy model options in cfg of new ones
    # numpy scalars in meters and in extra_state (best, val_loss), with the names of numpy 1 and 2
    *((_SCALAR, f"numpy.{core}.multiarray.scalar") for core in ("core", "_core")),
    np.dtype,
    *{type(np.dtype(code)) for code in ("f2", "f4", "f8", "i4", "i8", "?")},
]
#: What fills a tensor, of tensors and of torch.nn.init.
_FILLS = frozenset(
    (
        *("uniform_", "normal_", "fill_", "zero_", "constant_", "ones_", "zeros_", "trunc_normal_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
    )
)
#: The matrices that have a row for each token of a side.
_EMBEDDINGS = {"encoder.embed_tokens.weight": "source", "decoder.embed_tokens.weight": "target"}


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


def _receive_options(broadcast: Any) -> Any:
    """Let a process receive what another one of the same training has read and checked."""
    config = [DictConfig, ListConfig, ContainerMetadata, Metadata, AnyNode, Any, dict, list, int]
    types = [*config, collections.defaultdict, distributed_utils._TensorPlaceholder]

    @functools.wraps(broadcast)
    def broadcast_object(*args: Any, **kwargs: Any) -> Any:
        with torch.serialization.safe_globals(types):
            return broadcast(*args, **kwargs)

    return broadcast_object


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


def check_vocabulary(model: nn.Module) -> None:
    """Make ``model`` refuse weights that belong to other dictionaries than its own, with a clear message."""
    model.register_load_state_dict_pre_hook(_compare_vocabulary)  # type: ignore[no-untyped-call]


def _compare_vocabulary(model: nn.Module, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
    own = model.state_dict()
    _check_sizes({name: len(own[name]) for name in _EMBEDDINGS if name in own}, state, prefix)


def _check_sizes(own: Mapping[str, int], trained: Mapping[str, Any], prefix: str = "") -> None:
    """Check that embeddings have as many rows as the task has tokens, ``own``."""
    for name, size in own.items():
        embeddings = trained.get(prefix + name)
        if embeddings is not None and len(embeddings) != size:
            side = _EMBEDDINGS[name]
            raise InputError(
                f"the checkpoint has {len(embeddings)} {side} tokens, but the task has {size}; give the dictionaries, "
                f"the languages and the kind of task that the model was trained with (multilingual tasks add one token "
                f"per language to their dictionaries, docs/models.md)"
            )


def other_languages(trained: Any, used: Pair) -> Pair | None:
    """The source and target language in a checkpoint's options ``trained``, if there are two other than ``used``."""
    source, target = (getattr(trained, name, None) for name in ("source_lang", "target_lang"))
    return (source, target) if source and target and (source, target) != used else None


def languages_warning(name: str, trained: Pair, used: Pair) -> str:
    """The warning about a model that :func:`other_languages` finds."""
    return (
        f"{name} was trained from {trained[0]} to {trained[1]}, but is used from {used[0]} to {used[1]}: its maps mean "
        f"little then; give a model of that direction, or exchange -s and -t and the two texts"
    )


def read_checkpoint(path: str) -> dict[str, Any]:
    """The content of a checkpoint as fairseq reads it, its options in ``cfg``; its tensors are mapped into memory."""
    with explained(path):
        state = _check(path)
    for group in ("args", "cfg"):
        forget_paths(state.get(group), LOOKED_UP)
    if state.get("cfg") is not None:
        state["cfg"] = config_of(state["cfg"])
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
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            if damaged := archive.testzip():
                raise InputError(f"{path}: the file is damaged (wrong checksum of {damaged}); copy or save it again")
        state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    else:  # saved by a torch version before 1.6
        state = torch.load(path, map_location="cpu", weights_only=True)
    weights = state.get("model") if isinstance(state, dict) else None
    if not (isinstance(weights, dict) and weights):
        raise InputError(f"{path}: the file has no weights; {_ADVICE}")
    for name, tensor in weights.items():
        if not (isinstance(name, str) and isinstance(tensor, torch.Tensor)):
            raise InputError(f"{path}: weight {shown(name)} is not a named tensor; {_ADVICE}")
    if state.get("cfg") is None and state.get("args") is None:
        raise InputError(f"{path}: the file has weights but no options of a model; {_ADVICE}")
    check_options(state, path)
    content: dict[str, Any] = state
    return content


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Make errors of torch that reading ``path`` raises inside readable."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise _refusal(path, error) from None  # torch's messages recommend weights_only=False, which runs code


def _explain_refusals(load: Any) -> Any:
    @functools.wraps(load)
    def load_checkpoint_to_cpu(path: str, arg_overrides: Any = None, *args: Any, **kwargs: Any) -> Any:
        with explained(path):
            _check(str(PathManager.get_local_path(path)))
            state = load(path, arg_overrides, *args, **kwargs)
        for group in ("args", "cfg"):
            forget_paths(state.get(group), arg_overrides or ())
        _remove_copies(state)
        return state

    return load_checkpoint_to_cpu


def _remove_copies(state: dict[str, Any]) -> None:
    for name in [name for name in state.get("model", {}) if FAST_PATH_COPY.search(name)]:
        del state["model"][name]


def _refusal(path: str, error: Exception) -> Exception:
    """The error for a file that ``error`` was raised at."""
    if isinstance(error, pickle.UnpicklingError):
        found = re.search(r"GLOBAL (\S+)", str(error))
        with Path(PathManager.get_local_path(path)).open("rb") as file:
            looks_saved = file.read(2).startswith((b"PK", b"\x80"))  # an archive, or an older file, a pickle
        if not (found or looks_saved):
            return InputError(f"{path}: not a checkpoint; expected a file that fairseq-train or torch.save has written")
        what = f"the file holds {printable(found.group(1), 80)}" if found else "the file cannot be read as weights"
        return InputError(
            f"{path}: {what}; it could run code, so it is not loaded; a fairseq checkpoint has only tensors and "
            f"plain options; get the weights from a source that you trust and save them again"
        )
    # torch seeks the archive's directory at the end, and in a short file even before the beginning
    cut = isinstance(error, (EOFError, zipfile.BadZipFile)) or "zip archive" in str(error)
    if cut or (isinstance(error, OSError) and error.errno == errno.EINVAL):
        return InputError(f"{path}: the checkpoint is incomplete; copy or save it again")
    if isinstance(error, OSError):
        return error
    return InputError(f"{path}: damaged, or not a checkpoint ({type(error).__name__}); copy or save it again")


def read_checkpoint_parts(paths: Sequence[str]) -> dict[str, Any]:
    """The content of a checkpoint, whose weights may be in several files; its tensors are mapped."""
    state = read_checkpoint(paths[0])
    for path in paths[1:]:
        for name, tensor in read_checkpoint(path)["model"].items():
            if name in state["model"] and not torch.equal(state["model"][name], tensor):
                raise InputError(
                    f"{path}: has a part of {name}, which {paths[0]} has too: parameters that are cut into parts "
                    f"cannot be joined here; save the model in one file with the program that trained it"
                )
            state["model"][name] = tensor
    if flat := [name for name in state["model"] if "flat_param" in name]:
        raise InputError(
            f"{paths[0]}: has {flat[0]}, parameters as FSDP cuts them: consolidate the parts with fairseq's "
            f"scripts/consolidate_fsdp_shards.py first"
        )
    return state


def build_model(
    task: Any,
    state: dict[str, Any],
    name: str,
    dtype: str = "float32",
    see: Callable[[str, Tensor], object] | None = None,
) -> nn.Module:
    """Build the model of a checkpoint, in evaluation mode.

    Args:
        task: the task.
        state: the checkpoint's content; its weights are taken out of it.  They are tensors by name, or (of a model in
            the format of Transformers) have a method ``fill`` that copies them into a model.
        name: the file, for messages.
        dtype: one of :data:`~fairseq_norm_plugin.process.DTYPES`.
        see: called with the name and the values of each entry of the model's state dictionary, in the order of the
            names, as they are in the file.
    """
    cfg: DictConfig = state["cfg"].model
    weights = state.pop("model")
    loaded = isinstance(weights, dict)
    if loaded:  # fairseq does not say so where both sides share them
        _check_sizes({entry: len(getattr(task, f"{side}_dictionary")) for entry, side in _EMBEDDINGS.items()}, weights)
    with fairseq_errors(f"{name}: fairseq cannot build the model of its options", _ADVICE), _Unfilled():
        model: nn.Module = task.build_model(cfg, from_checkpoint=True)
    if loaded:
        model.upgrade_state_dict(weights)  # type: ignore[operator]
        weights = checkpoint_utils.prune_state_dict(weights, cfg)
    if see is not None:
        for entry in sorted(weights):
            see(entry, weights[entry])
    model.to(_TYPES[dtype])  # before they have numbers, so that no two copies of all are in memory
    try:
        if loaded:
            nn.Module.load_state_dict(model, weights, strict=True)
        else:
            weights.fill(model)
    except (RuntimeError, KeyError) as error:  # fairseq 0.12.2 looks some up itself
        reasons = [line.strip() for line in str(error).splitlines() if line.startswith("\t")]
        raise InputError(
            f"{name}: its parameters do not fit the dictionaries or the options of the model "
            f"({printable(next(iter(reasons), str(error)), 120)}): expected the dictionaries that it was trained with, "
            f"and all of its parts, unchanged"
        ) from error
    if dtype == "int8":
        use_int8(model)
    return model.eval()


class _Unfilled(TorchFunctionMode):
    """Parameters that are made inside are not filled, so their memory is not touched."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        filled = args[0] if args else named.get("tensor")  # torch.nn.init names it
        if getattr(func, "__name__", "") in _FILLS and isinstance(filled, nn.Parameter):
            return filled
        return func(*args, **named)
