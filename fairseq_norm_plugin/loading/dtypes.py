"""The types that a model is computed in."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from fairseq_norm_plugin.loading.int8 import has_int8, use_float32, use_int8

#: The types -> that of a model's parameters; with ``int8`` only its products have 8 bits.
DTYPES = {
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int8": torch.float32,
}


def fastest_dtype() -> str:
    """The type that this processor computes models in fastest.

    It is ``bfloat16`` with matrix units for it (AMX: twice as fast as ``int8``), ``int8`` on other x86 processors,
    ``float32`` elsewhere (docs/benchmarks.md).
    """
    if not has_int8():
        return "float32"
    return "bfloat16" if _supports("amx_tile") else "int8"


def is_emulated(dtype: str) -> bool:
    """Whether this processor has no instructions for ``dtype``, and then takes many times as long as for float32."""
    known = dtype == "bfloat16" and has_int8() and hasattr(torch.cpu, "_is_avx512_bf16_supported")
    return known and not (_supports("avx512_bf16") or _supports("amx_tile"))


def _supports(instructions: str) -> bool:
    look: Any = getattr(torch.cpu, f"_is_{instructions}_supported", lambda: False)
    return bool(look())


def use_dtype(model: nn.Module, dtype: str) -> Callable[[], None]:
    """Compute ``model``, whose parameters are in float32, in one of :data:`DTYPES`, in place.

    Returns:
        What undoes it: then everything is as before, to the last bit.

    Raises:
        UsageError: ``int8``, and torch has no such products on this processor.
    """
    if dtype == "int8":
        use_int8(model)
        return partial(use_float32, model)
    before = _Tensors(model)
    model.to(DTYPES[dtype])
    return before.put_back


class _Tensors:
    """All tensors of a model: parameters, buffers, and plain attributes (positions, in older versions of fairseq)."""

    def __init__(self, model: nn.Module) -> None:
        modules = list(model.modules())
        self._parameters = [(parameter, parameter.data) for parameter in model.parameters()]
        self._places: list[tuple[dict[str, Any], str, Tensor]] = [
            (place, name, value)
            for place in itertools.chain.from_iterable((vars(module), module._buffers) for module in modules)
            for name, value in place.items()
            if isinstance(value, Tensor)
        ]

    def put_back(self) -> None:
        """Put each where it was."""
        for parameter, data in self._parameters:
            parameter.data = data
        for place, name, value in self._places:
            place[name] = value
