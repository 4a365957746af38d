"""Builds the model of a checkpoint, in 16 or 32 bits.

fairseq reads a whole checkpoint into memory, fills a new model with random numbers, and copies.  Here a model is built
without random numbers, and its parameters are copied from the mapped file, in their type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.multilingual_transformer import MultilingualTransformerModel
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from alignment_eval.errors import InputError, printable
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.checkpoints.read import NOT_SAVED, fairseq_errors

#: What fills a tensor, of tensors and of torch.nn.init.
_FILLS = frozenset(
    (
        *("uniform_", "normal_", "fill_", "zero_", "constant_", "ones_", "zeros_", "trunc_normal_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
    )
)
#: The matrices that have a row for each token of a side.
_EMBEDDINGS = {"encoder.embed_tokens.weight": "source", "decoder.embed_tokens.weight": "target"}


def build_model(
    task: Any,
    state: dict[str, Any],
    name: str,
    dtype: str = "float32",
    see: Callable[[str, Tensor], object] | None = None,
    swapped: str | None = None,
) -> nn.Module:
    """Build the model of a checkpoint, in evaluation mode; its weights are taken out of ``state``.

    ``see`` is called with the name and the values of each entry of the model's state dictionary, in the order of the
    names, as they are in the file.  ``swapped`` is the block type that the model must show maps of; None: of none.

    Raises:
        InputError: fairseq cannot build it, its parts do not fit dictionaries or options, or it shows no such maps.
    """
    cfg: DictConfig = state["cfg"].model
    weights = state.pop("model")
    # fairseq does not say so where both sides share them
    _check_sizes({entry: len(getattr(task, f"{side}_dictionary")) for entry, side in _EMBEDDINGS.items()}, weights)
    with fairseq_errors(f"{name}: fairseq cannot build the model of its options", NOT_SAVED), _Unfilled():
        check_architecture(cfg)
        model: nn.Module = task.build_model(cfg, from_checkpoint=True)
        if swapped is not None:
            swap_attention(model, swapped)
    model.upgrade_state_dict(weights)  # type: ignore[operator]
    weights = checkpoint_utils.prune_state_dict(weights, cfg)
    if see is not None:
        for entry in sorted(weights):
            see(entry, weights[entry])
    model.to(getattr(torch, dtype))  # before they have numbers, so that no two copies of all are in memory
    try:
        nn.Module.load_state_dict(model, weights, strict=True)
    except (RuntimeError, KeyError) as error:  # fairseq 0.12.2 looks some up itself
        reasons = [line.strip() for line in str(error).splitlines() if line.startswith("\t")]
        raise InputError(
            f"{name}: its parameters do not fit the dictionaries or the options of the model "
            f"({printable(next(iter(reasons), str(error)), 120)}): expected all of its parts, and its own dictionaries"
        ) from error
    return model.eval()


class _Unfilled(TorchFunctionMode):
    """Parameters that are made inside are not filled, so their memory is not touched."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        filled = args[0] if args else named.get("tensor")  # torch.nn.init names it
        if getattr(func, "__name__", "") in _FILLS and isinstance(filled, nn.Parameter):
            return filled
        return func(*args, **named)


def check_architecture(cfg: Any) -> None:
    """Refuse the options of a model that has several Transformers."""
    architecture = ARCH_MODEL_REGISTRY.get(str(getattr(cfg, "arch", None)))
    if architecture is not None and issubclass(architecture, MultilingualTransformerModel):
        raise InputError(
            f"model {cfg.arch} has a Transformer for each pair, and gives no maps; translate with --task "
            f"multilingual_translation; for maps train with --task translation_multi_simple_epoch"
        )


def check_vocabulary(model: nn.Module) -> None:
    """Make ``model`` refuse weights that belong to other dictionaries than its own, with a clear message."""

    def compare(model: nn.Module, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
        own = model.state_dict()
        _check_sizes({name: len(own[name]) for name in _EMBEDDINGS if name in own}, state, prefix)

    model.register_load_state_dict_pre_hook(compare)  # type: ignore[no-untyped-call]


def _check_sizes(own: Mapping[str, int], trained: Mapping[str, Any], prefix: str = "") -> None:
    """Check that embeddings have as many rows as the task has tokens, ``own``."""
    for name, size in own.items():
        embeddings = trained.get(prefix + name)
        if embeddings is not None and len(embeddings) != size:
            side = _EMBEDDINGS[name]
            raise InputError(
                f"the checkpoint has {len(embeddings)} {side} tokens, but the task has {size}; give the dictionaries, "
                f"languages and task of the training (multilingual tasks add a token per language, docs/models.md)"
            )
