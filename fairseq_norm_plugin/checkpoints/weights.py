"""Reads checkpoints into models.

fairseq reads a whole checkpoint into memory, fills a new model with random numbers, and copies.  Here a model is built
without random numbers, and its parameters are copied from the mapped file, in their type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from fairseq import checkpoint_utils
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from alignment_eval.errors import InputError, printable
from fairseq_norm_plugin.checkpoints.int8 import use_int8
from fairseq_norm_plugin.checkpoints.read import read_checkpoint
from fairseq_norm_plugin.choices import DTYPES

#: The type of a model's parameters; with ``int8`` only its products have 8 bits.
_TYPES = {name: torch.float32 if name == "int8" else getattr(torch, name) for name in DTYPES}
#: What fills a tensor, of tensors and of torch.nn.init.
_FILLS = frozenset(
    f"{name}_"
    for name in (
        *("uniform", "normal", "fill", "zero", "constant", "ones", "zeros", "trunc_normal"),
        *("xavier_uniform", "xavier_normal", "kaiming_uniform", "kaiming_normal"),
    )
)


def read_parts(paths: Sequence[str]) -> dict[str, Any]:
    """The content of a checkpoint, whose weights may be in several files; its tensors are mapped.

    Raises:
        InputError: a file cannot be read safely, or its weights are parts of tensors.
    """
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
        state: the checkpoint's content; its weights are taken out of it.
        name: the file, for messages.
        dtype: one of :data:`~fairseq_norm_plugin.choices.DTYPES`.
        see: called with the name and the values of each entry of the model's state dictionary, in the order of the
            names, as they are in the file.

    Raises:
        InputError: the weights do not fit the model.
    """
    cfg: DictConfig = state["cfg"].model
    with _Unfilled():
        model: nn.Module = task.build_model(cfg, from_checkpoint=True)
    weights = state.pop("model")
    model.upgrade_state_dict(weights)  # type: ignore[operator]
    weights = checkpoint_utils.prune_state_dict(weights, cfg)
    if see is not None:
        for entry, tensor in sorted(weights.items()):
            see(entry, tensor)
    model.to(_TYPES[dtype])  # before they have numbers, so that no two copies of all are in memory
    try:
        nn.Module.load_state_dict(model, weights, strict=True)
    except RuntimeError as error:
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
