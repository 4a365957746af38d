"""Reads the files of a model in the format of Transformers, and refuses what would be computed in another way."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from alignment_eval.errors import InputError, UsageError

#: The file of the weights, and that which names the parts of larger ones; the first that exists is read.
FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object that a file holds; ``what`` says which file of a model is expected, for messages.

    Raises:
        InputError: the file cannot be read or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the file ({error}); give {what}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: the file holds no JSON object; give {what}")
    return content


def read_config(path: Path, allowed: Mapping[str, Sequence[object]], sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """Read config.json, and refuse options that would compute something else.

    Args:
        path: the file.
        allowed: the values that can be converted, for each option that changes what is computed; the first one if the
            file leaves it out, but ``model_type`` must be there.
        sizes: options that must be positive integers, and their values if the file leaves them out.

    Raises:
        InputError: the file is absent, or no such configuration.
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
    """Check that the option ``width`` is a multiple of each of the options ``heads``.

    Raises:
        InputError: it is not.
    """
    for name in heads:
        if config[width] % config[name]:
            raise InputError(f"{path}: {width} {config[width]} is not a multiple of {name} {config[name]}")


def read_weights(directory: Path) -> dict[str, Tensor]:
    """The model's tensors by name, in float32.

    Raises:
        InputError: there are no weights, a part is missing, or a file holds something else.
    """
    path = next((directory / name for name in FILES if (directory / name).exists()), None)
    if path is None:
        raise InputError(f"{directory}: the directory has neither model.safetensors nor pytorch_model.bin")
    if path.suffix != ".json":
        return _read(path)
    parts = read_json(path, "the index of the model's weights").get("weight_map")
    if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
        raise InputError(f"{path}: the file has no weight_map from tensors to files; give the index of the weights")
    state = {}
    for name in sorted(set(parts.values())):
        part = directory / Path(name).name  # never outside of the directory
        if not part.is_file():
            raise InputError(f"{part}: no such file, but {path.name} names it; give all parts of the weights")
        state.update(_read(part))
    if missing := sorted(parts.keys() - state.keys()):
        raise InputError(
            f"{directory / parts[missing[0]]}: the file has no {missing[0]}, which {path.name} places there; copy the "
            f"parts again"
        )
    return state


def _read(path: Path) -> dict[str, Tensor]:
    try:
        state = _load(path)
    except (pickle.UnpicklingError, OSError, EOFError, RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        # from None: torch's message recommends weights_only=False, which would run the file's code
        raise InputError(f"{path}: cannot read the file ({reason}); give the weights of a model") from None
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise InputError(f"{path}: the file holds more than named tensors; give the weights of a model")
    return {str(name): tensor.float() for name, tensor in state.items()}


def _load(path: Path) -> Any:
    if path.suffix != ".safetensors":
        return torch.load(path, "cpu", weights_only=True)  # weights_only: a .bin cannot run code
    try:
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError:
        raise UsageError(f"{path}: reading this file needs the package safetensors; pip install safetensors") from None
    try:
        return load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error


class Weights:
    """Tensors that are taken one by one, so that none is forgotten.

    Args:
        tensors: by name.
        model: what has these tensors, such as "a BERT of 12 layers", for messages.
    """

    def __init__(self, tensors: dict[str, Tensor], model: str) -> None:
        self._tensors = dict(tensors)
        self._model = model

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, *shape: int) -> Tensor:
        """Take out a tensor.

        Raises:
            InputError: it is missing, or of another shape.
        """
        if name not in self._tensors:
            raise InputError(f"the weights have no {name}, which {self._model} has")
        tensor = self._tensors.pop(name)
        if tensor.shape != shape:
            raise InputError(f"{name} has the shape {list(tensor.shape)}, but config.json gives {list(shape)}")
        return tensor

    def take_one(self, names: Iterable[str], *shape: int) -> Tensor:
        """Take out a matrix that is stored under one or several of ``names``.

        Raises:
            InputError: it is missing, of another shape, or not the same under all its names.
        """
        first, *others = [name for name in names if name in self] or list(names)[:1]
        tensor = self.take(first, *shape)
        for name in others:
            if not torch.equal(self.take(name, *shape), tensor):
                raise InputError(f"{name} differs from {first}, but config.json says that the two are one matrix")
        return tensor

    def linear(self, to: str, name: str, rows: int, columns: int) -> dict[str, Tensor]:
        """Take out a linear layer, under the name ``to``."""
        return {
            f"{to}.weight": self.take(f"{name}.weight", rows, columns),
            f"{to}.bias": self.take(f"{name}.bias", rows),
        }

    def norm(self, to: str, name: str, width: int) -> dict[str, Tensor]:
        """Take out a layer norm, under the name ``to``."""
        return {f"{to}.{part}": self.take(f"{name}.{part}", width) for part in ("weight", "bias")}

    def check_empty(self, unused: re.Pattern[str]) -> None:
        """Check that all tensors were taken, but for those whose names match ``unused``.

        Raises:
            InputError: one is left.
        """
        left = sorted(name for name in self._tensors if not unused.match(name))
        if left:
            raise InputError(f"{len(left)} tensors have no place in {self._model}: {left[0]}, …")
