"""Reads the files of a model in the format of Transformers, and refuses what would be computed in another way."""

from __future__ import annotations

import json
import math
import pickle
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.checkpoints.files import weights_file
from fairseq_norm_plugin.checkpoints.identity import is_unread

#: Bytes of a file that are read before it is mapped anew.
_MAPPED = 1 << 25
#: Numbers of a tensor that are copied at once.
_PART = 1 << 22
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


def read_weights(directory: Path) -> dict[str, Stored]:
    """The model's tensors by name; nothing but their headers is read."""
    path = weights_file(directory)
    if path is None:
        raise InputError(f"{directory}: the directory has neither model.safetensors nor pytorch_model.bin")
    if path.suffix != ".json":
        return _File(path).stored()
    parts = read_json(path, "the index of the model's weights").get("weight_map")
    if not isinstance(parts, dict) or not all(isinstance(part, str) for part in parts.values()):
        raise InputError(f"{path}: the file has no weight_map from tensors to files; give the index of the weights")
    state: dict[str, Stored] = {}
    for name in sorted(set(parts.values())):
        part = directory / Path(name).name  # never outside of the directory
        if not part.is_file():
            raise InputError(f"{part}: no such file, but {path.name} names it; give all parts of the weights")
        state.update(_File(part).stored())
    if missing := sorted(parts.keys() - state.keys()):
        raise InputError(
            f"{directory / parts[missing[0]]}: the file has no {missing[0]}, which {path.name} places there; copy the "
            f"parts again"
        )
    return state


class _File:
    """A file of weights, mapped into memory, and anew after some reading, so that little of it stays there."""

    def __init__(self, path: Path) -> None:
        self._path = own_file(path)
        self._mapped: dict[str, Tensor] = {}
        self._bytes = 0

    def stored(self) -> dict[str, Stored]:
        """All tensors."""
        return {name: Stored(self, name, tensor.shape, tensor.dtype) for name, tensor in self._map().items()}

    def tensor(self, name: str, size: int) -> Tensor:
        """A tensor, of which ``size`` bytes will be read."""
        if name not in self._mapped or self._bytes > _MAPPED:
            self._mapped, self._bytes = self._map(name), 0
        self._bytes += size
        return self._mapped[name]

    def _map(self, name: str | None = None) -> dict[str, Tensor]:
        """The tensors of the file, or at least that of a name."""
        try:
            if self._path.suffix == ".safetensors":
                return _map_safetensors(self._path, name)
            # weights_only: a .bin cannot run code
            state = torch.load(self._path, "cpu", weights_only=True, mmap=zipfile.is_zipfile(self._path))
        except (pickle.UnpicklingError, OSError, EOFError, RuntimeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            # from None: torch's message recommends weights_only=False, which would run the file's code
            raise InputError(f"{self._path}: cannot read the file ({reason}); give the weights of a model") from None
        if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
            raise InputError(f"{self._path}: the file holds more than named tensors; give the weights of a model")
        return {str(key): tensor for key, tensor in state.items()}


def _map_safetensors(path: Path, name: str | None) -> dict[str, Tensor]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise UsageError(f"{path}: reading this file needs safetensors; pip install safetensors") from None
    try:
        with safe_open(path, "pt") as file:
            return {key: file.get_tensor(key) for key in ([name] if name else file.keys())}
    except SafetensorError as error:
        raise ValueError(str(error)) from error


@dataclass(frozen=True, eq=False)
class Stored:
    """A tensor in a file, which is read when it is needed.

    ``order`` says which of its rows come in which order, where the number after the last stands for a row of
    ``missing``; None: as they are.
    """

    file: _File
    name: str
    shape: torch.Size
    dtype: torch.dtype
    order: Tensor | None = None
    missing: float = 0.0

    def __len__(self) -> int:
        return self.shape[0] if self.order is None else len(self.order)

    @property
    def row_size(self) -> int:
        """The numbers of a row."""
        return math.prod(self.shape[1:])

    def rows(self, first: int = 0, last: int | None = None) -> Tensor:
        """Some rows, by default all, in their own type."""
        last = len(self) if last is None else last
        tensor = self.file.tensor(self.name, (last - first) * self.row_size * self.dtype.itemsize).reshape(self.shape)
        if self.order is None:
            return tensor[first:last]
        order = self.order[first:last]
        missing = order == self.shape[0]
        rows = tensor[order.masked_fill(missing, 0)]
        rows[missing] = self.missing
        return rows

    def ordered(self, order: Sequence[int] | None, missing: float = 0.0) -> Stored:
        """Its rows in another order."""
        return self if order is None else replace(self, order=torch.tensor(order), missing=missing)

    def parts(self) -> Iterator[tuple[int, int]]:
        """First and last row of parts of bounded size."""
        step = max(1, _PART // max(1, self.row_size))
        return ((first, min(first + step, len(self))) for first in range(0, len(self), step))


class StoredParameters(Mapping[str, Tensor]):
    """The parameters of a fairseq model, by its names, which are read one by one when the model is filled."""

    def __init__(self, stored: Mapping[str, Stored], others: Mapping[str, Tensor]) -> None:
        self._stored = stored
        self._others = others

    def __getitem__(self, name: str) -> Tensor:
        return self._stored[name].rows() if name in self._stored else self._others[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*self._stored, *self._others))

    def __len__(self) -> int:
        return len(self._stored) + len(self._others)

    def fill(self, model: nn.Module) -> None:
        """Copy them into a model; the largest first, while little of its memory is in use."""
        own = {name: tensor for name, tensor in model.state_dict().items() if not is_unread(name)}
        assert own.keys() == set(self), sorted(own.keys() ^ set(self))[:3]
        for name, stored in sorted(self._stored.items(), key=lambda item: -len(item[1]) * item[1].row_size):
            for first, last in stored.parts():
                own[name][first:last].copy_(stored.rows(first, last))


class Weights:
    """Tensors that are taken one by one, so that none is forgotten; ``model`` says whose they are, for messages."""

    def __init__(self, tensors: Mapping[str, Stored], model: str) -> None:
        self._tensors = dict(tensors)
        self._model = model

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def take(self, name: str, *shape: int) -> Stored:
        """Take out a tensor."""
        if name not in self._tensors:
            raise InputError(f"the weights have no {name}, which {self._model} has")
        tensor = self._tensors.pop(name)
        if tensor.shape != shape:
            raise InputError(f"{name} has the shape {list(tensor.shape)}, but config.json gives {list(shape)}")
        if tensor.dtype not in _TYPES:
            raise InputError(f"{name} is of the type {tensor.dtype}; give the weights that are not quantised")
        return tensor

    def take_one(self, names: Iterable[str], *shape: int) -> Stored:
        """Take out a matrix that is stored under one or several of ``names``."""
        first, *others = [name for name in names if name in self] or list(names)[:1]
        tensor = self.take(first, *shape)
        for name in others:
            other = self.take(name, *shape)
            if not all(torch.equal(tensor.rows(*part), other.rows(*part)) for part in tensor.parts()):
                raise InputError(f"{name} differs from {first}, but config.json says that the two are one matrix")
        return tensor

    def module(self, to: str, name: str, *shape: int) -> dict[str, Stored]:
        """Take out weight and bias of a linear layer or a layer norm, under the name ``to``."""
        shapes = {"weight": shape, "bias": shape[:1]}
        return {f"{to}.{part}": self.take(f"{name}.{part}", *of_part) for part, of_part in shapes.items()}

    def check_empty(self, unused: re.Pattern[str]) -> None:
        """Check that all tensors were taken, but for those whose names match ``unused``."""
        left = sorted(name for name in self._tensors if not unused.match(name))
        if left:
            raise InputError(f"{len(left)} tensors have no place in {self._model}: {left[0]}, …")
