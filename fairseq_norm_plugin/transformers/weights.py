"""Reads the files of a model in the format of Transformers, and refuses what would be computed in another way."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.checkpoints.files import weights_file
from fairseq_norm_plugin.checkpoints.read import explained

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
            return _load_safetensors(path)
        # weights_only: a .bin cannot run code
        tensors = torch.load(path, "cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: the file holds more than named tensors; give the weights of a model")
    return {str(name): tensor for name, tensor in tensors.items()}


def _load_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise UsageError(f"{path}: reading this file needs safetensors; pip install safetensors") from None
    return load_file(path)


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
