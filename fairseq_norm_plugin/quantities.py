"""Recorded quantities of a batch: a layer's maps, the mean over an ensemble, and the cut to one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Optional

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from alignment_eval.errors import InputError
from alignment_eval.maps import KINDS, QUANTITIES
from fairseq_norm_plugin.attention import norm_attentions
from fairseq_norm_plugin.capture import MapCapture
from fairseq_norm_plugin.norms import head_norms, layer_norms, layer_weights, transformed_norms

Quantities = dict[str, Tensor]


def recorded_quantities(kinds: Sequence[str], models: int) -> tuple[str, ...]:
    """The quantities that records of ``kinds`` hold (alignment_eval.maps).

    The mean of α‖f(x)‖ over an ensemble does not follow from the means of its factors: it is recorded itself.
    """
    names = {name for kind in kinds for name in KINDS[kind]}
    if models > 1 and "transformed_norm" in names:
        names = names - {"transformed_norm"} | {"head_attn_n"}
    return tuple(name for name in QUANTITIES if name in names)


def layer_capture(kind: str, layer: int, heads: Optional[Sequence[int]]) -> MapCapture[Tensor]:
    """A capture of one layer's map [B, T, S] of ``kind`` over ``heads`` (default: all)."""
    return MapCapture([layer], partial(_layer_map, kind=kind, heads=heads), needs_norms=kind != "attn_w")


def quantity_capture(layers: Sequence[int], names: Sequence[str]) -> MapCapture[Quantities]:
    """A capture of the quantities ``names`` of ``layers``."""
    return MapCapture(layers, partial(_quantities, names=names), needs_norms=set(names) != {"head_attn_w"})


def _layer_map(alpha: Tensor, factor: Optional[Tensor], kind: str, heads: Optional[Sequence[int]]) -> Tensor:
    if kind == "attn_w":
        return layer_weights(alpha, heads)
    assert factor is not None
    return layer_norms(alpha, factor, heads)


def _quantities(alpha: Tensor, factor: Optional[Tensor], names: Sequence[str]) -> Quantities:
    result = {"head_attn_w": alpha} if "head_attn_w" in names else {}
    compute = {"transformed_norm": transformed_norms}
    compute["head_attn_n"] = partial(head_norms, alpha)
    compute["layer_attn_n"] = partial(layer_norms, alpha)
    for name in names:
        if name in compute:
            assert factor is not None
            result[name] = compute[name](factor)
    return result


class BatchMaps:
    """Quantities of a batch, the mean over the models that were added; float32 on the CPU.

    Each array is [B, L, …] with the axes of ``alignment_eval.maps.QUANTITIES`` after the batch axis.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._models = 0

    def add(self, layers: Sequence[Quantities]) -> None:
        """Add one model's quantities, a dictionary a layer."""
        for name in layers[0]:
            stacked = torch.stack([layer[name] for layer in layers], dim=1).float()
            self._sums[name] = self._sums[name] + stacked if name in self._sums else stacked
        self._models += 1

    def sentences(self, source: Sequence[slice], target: Sequence[slice]) -> list[dict[str, NDArray[Any]]]:
        """The arrays of each sentence, pads cut off: ``source[i]`` and ``target[i]`` are its columns and rows."""
        means = {name: (total / self._models).cpu().numpy() for name, total in self._sums.items()}
        return [
            {name: _cut(array[i], QUANTITIES[name], columns, rows) for name, array in means.items()}
            for i, (columns, rows) in enumerate(zip(source, target))
        ]


def _cut(array: NDArray[Any], axes: str, columns: slice, rows: slice) -> NDArray[Any]:
    index = tuple({"S": columns, "T": rows}.get(axis, slice(None)) for axis in axes)
    return np.ascontiguousarray(array[index])


def real_positions(tokens: Tensor, pad: int) -> list[slice]:
    """Where the tokens of each row of ``tokens`` [B, N] that are no pads stand (pads are on one side)."""
    real = tokens.ne(pad)
    starts = real.int().argmax(dim=1).tolist()
    lengths = real.sum(dim=1).tolist()
    return [slice(start, start + length) for start, length in zip(starts, lengths)]


def layers_and_heads(models: Sequence[nn.Module]) -> tuple[int, int]:
    """The number of decoder layers and of heads in each, which the models of an ensemble must share.

    Raises:
        InputError: the models or the layers differ.
    """
    shapes = [[attention.num_heads for attention in norm_attentions(model)] for model in models]
    if not shapes[0]:
        raise InputError(
            f"model {type(models[0]).__name__} was not built by a norm task: expected --task translation_norm"
        )
    if any(shape != shapes[0] for shape in shapes) or len(set(shapes[0])) != 1:
        raise InputError(
            f"decoder layers differ in their heads (heads of each layer, a list a model: {shapes}): expected the "
            f"same number in every layer and model, since maps are stacked and averaged; record each model by itself"
        )
    return len(shapes[0]), shapes[0][0]
