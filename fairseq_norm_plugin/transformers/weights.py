"""Reads the files of a model in the format of Transformers, and refuses what would be computed in another way."""

from __future__ import annotations

import json
import pickle
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.checkpoints.files import weights_file

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

    ``allowed`` has the values that can be read of each option, the default first (``model_type`` has none); ``sizes``
    the options that must be positive integers, and their defaults.
    """
    defaults = {name: values[0] for name, values in allowed.items() if name != "model_type"}
    config = {**defaults, **sizes, **read_json(path, "the model's config.json")}
    for name, values in allowed.items():
        if not any(type(config.get(name)) is type(value) and config[name] == value for value in values):
            raise InputError(
                f"{path}: {name} is {config.get(name)!r}, but only {' or '.join(map(str, values))} is supported"
            )
    for name in sizes:
        if type(config[name]) is not int or config[name] < 1:
            raise InputError(f"{path}: {name} is {config[name]!r}, not a positive integer")
    return config


def check_heads(path: Path, config: Mapping[str, Any], width: str, *heads: str) -> None:
    """Check that the option ``width`` is a multiple of each of the options ``heads``."""
    for name in heads:
        if config[width] % config[name]:
            raise InputError(f"{path}: {width} {config[width]} is not a multiple of {name} {config[name]}")


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
        raise InputError(
            f"{path}: a symbolic link to {real}, outside of the model's directory; copy that file into the directory"
        )
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
            f"{directory / parts[missing[0]]}: the file has no {missing[0]}, which {path.name} places there; copy the "
            f"parts again"
        )
    return tensors


def _mapped(path: Path) -> dict[str, Tensor]:
    """The tensors of a file."""
    try:
        if own_file(path).suffix == ".safetensors":
            return _mapped_safetensors(path)
        # weights_only: a .bin cannot run code
        tensors = torch.load(path, "cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except (pickle.UnpicklingError, OSError, EOFError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        # from None: torch's message recommends weights_only=False, which would run the file's code
        raise InputError(f"{path}: cannot read the file ({reason}); give the weights of a model") from None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
        raise InputError(f"{path}: the file holds more than named tensors; give the weights of a model")
    return {str(name): tensor for name, tensor in tensors.items()}


def _mapped_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise UsageError(f"{path}: reading this file needs safetensors; pip install safetensors") from None
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
    except SafetensorError as error:
        raise ValueError(str(error)) from error


class Weights:
    """Tensors that are taken one by one, so that none is forgotten; ``model`` says whose they are, for messages."""

    def __init__(self, tensors: Mapping[str, Tensor], model: str) -> None:
        self._tensors = dict(tensors)
        self._model = model

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, *shape: int) -> Tensor:
        """Take out a tensor, which has the ``shape`` if one is given."""
        if name not in self._tensors:
            raise InputError(f"the weights have no {name}, which {self._model} has")
        tensor = self._tensors.pop(name)
        if shape and tensor.shape != shape:
            raise InputError(f"{name} has the shape {list(tensor.shape)}, but config.json gives {list(shape)}")
        if tensor.dtype not in _TYPES:
            raise InputError(f"{name} is of the type {tensor.dtype}; give the weights that are not quantised")
        return tensor

    def take_one(self, names: Iterable[str], *shape: int) -> Tensor:
        """Take out a matrix that is stored under one or several of ``names``."""
        first, *others = [name for name in names if name in self] or list(names)[:1]
        tensor = self.take(first, *shape)
        for name in others:
            if not torch.equal(tensor, self.take(name, *shape)):
                raise InputError(f"{name} differs from {first}, but config.json says that the two are one matrix")
        return tensor

    def module(self, to: str, name: str) -> dict[str, Tensor]:
        """Take out weight and bias of a linear layer or a layer norm, under the name ``to``."""
        return {f"{to}.{part}": self.take(f"{name}.{part}") for part in ("weight", "bias")}

    def take_all(self, unused: re.Pattern[str]) -> dict[str, Tensor]:
        """Take out all other tensors, but ``unused`` ones, under their names without ``model.``."""
        names = [name for name in self._tensors if not unused.match(name)]
        return {name.removeprefix("model."): self.take(name) for name in names}

    def check_empty(self, unused: re.Pattern[str]) -> None:
        """Check that all tensors were taken, but for those whose names match ``unused``."""
        left = sorted(name for name in self._tensors if not unused.match(name))
        if left:
            raise InputError(f"{len(left)} tensors have no place in {self._model}: {left[0]}, …")
