"""Builds the model of a checkpoint, in 16 or 32 bits, or with matrix products in 8 bits.

fairseq reads a whole checkpoint into memory, fills a new model with random numbers, and copies.  Here a model is built
without random numbers, and its parameters are copied from the mapped file, in their type.

In 8 bits, on a CPU, the weights of each output are scaled once, the inputs of each token by their largest value when a
product is computed (dynamic quantisation), so a token's product does not depend on the other tokens of the batch.
Parameters, layer norms, softmax and maps stay in float32.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch
from fairseq import checkpoint_utils
from fairseq.modules import MultiheadAttention
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from alignment_eval.errors import InputError, UsageError, printable
from fairseq_norm_plugin.checkpoints.read import NOT_SAVED, fairseq_errors
from fairseq_norm_plugin.environment import DTYPES

#: The type of a model's parameters; with ``int8`` only its products have 8 bits.
_TYPES = {name: torch.float32 if name == "int8" else getattr(torch, name) for name in DTYPES}
#: What fills a tensor, of tensors and of torch.nn.init.
_FILLS = frozenset(
    (
        *("uniform_", "normal_", "fill_", "zero_", "constant_", "ones_", "zeros_", "trunc_normal_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
    )
)
#: The matrices that have a row for each token of a side.
_EMBEDDINGS = {"encoder.embed_tokens.weight": "source", "decoder.embed_tokens.weight": "target"}
_LARGEST = 127  # of 8 bits with a sign
_LARGEST_INPUT = 63  # of 7 bits with a sign, because some CPUs add two products in 16 bits
_TINY = torch.finfo(torch.float32).tiny
_KEPT = "scaled_for_8_bits"


def build_model(
    task: Any,
    state: dict[str, Any],
    name: str,
    dtype: str = "float32",
    see: Callable[[str, Tensor], object] | None = None,
) -> nn.Module:
    """Build the model of a checkpoint, in evaluation mode; its weights are taken out of ``state``.

    ``see`` is called with the name and the values of each entry of the model's state dictionary, in the order of the
    names, as they are in the file.
    """
    cfg: DictConfig = state["cfg"].model
    weights = state.pop("model")
    # fairseq does not say so where both sides share them
    _check_sizes({entry: len(getattr(task, f"{side}_dictionary")) for entry, side in _EMBEDDINGS.items()}, weights)
    with fairseq_errors(f"{name}: fairseq cannot build the model of its options", NOT_SAVED), _Unfilled():
        model: nn.Module = task.build_model(cfg, from_checkpoint=True)
    model.upgrade_state_dict(weights)  # type: ignore[operator]
    weights = checkpoint_utils.prune_state_dict(weights, cfg)
    if see is not None:
        for entry in sorted(weights):
            see(entry, weights[entry])
    model.to(_TYPES[dtype])  # before they have numbers, so that no two copies of all are in memory
    try:
        nn.Module.load_state_dict(model, weights, strict=True)
    except (RuntimeError, KeyError) as error:  # fairseq 0.12.2 looks some up itself
        reasons = [line.strip() for line in str(error).splitlines() if line.startswith("\t")]
        raise InputError(
            f"{name}: its parameters do not fit the dictionaries or the options of the model "
            f"({printable(next(iter(reasons), str(error)), 120)}): expected all of its parts, and its own dictionaries"
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


def use_int8(model: nn.Module) -> None:
    """Compute the products of all layers of ``model`` in 8 bits, in place; embeddings and output stay in float32."""
    if "fbgemm" not in torch.backends.quantized.supported_engines:
        raise UsageError("--dtype int8: torch computes these products on x86 processors only; choose another type")
    for name, module in model.named_modules():
        if ".layers." in name and type(module) is nn.Linear:
            module.__class__ = Int8Linear
            cast(Int8Linear, module).pack()
        elif isinstance(module, MultiheadAttention):
            module.skip_embed_dim_check = True  # torch's fused attention would multiply by the parameters themselves


class Int8Linear(nn.Linear):
    """A linear layer whose product is computed in 8 bits; its parameters stay as they are."""

    packed: Any

    def pack(self) -> None:
        """Scale the weights; call it again after they have changed."""
        weight = self.weight.detach().float()
        scales = (weight.abs().amax(dim=1).double() / _LARGEST).clamp_min(_TINY)
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():  # torch announces another interface, which needs one more package
            warnings.filterwarnings("ignore", category=UserWarning)
            quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(quantised, None)

    def forward(self, input: Tensor) -> Tensor:
        """The product of ``input`` [..., inputs] with the weights, and the bias: float32 [..., outputs]."""
        scaled, largest = _scaled(input)
        # inputs are rounded as unsigned numbers with this zero; weights are scaled inside
        product: Tensor = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            scaled, 1 / _LARGEST_INPUT, _LARGEST_INPUT + 1, self.packed
        )
        if self.bias is None:
            return product.mul_(largest)
        return torch.addcmul(self.bias, product, largest)  # out= would fail where gradients are on


def _scaled(input: Tensor) -> tuple[Tensor, Tensor]:
    """Each token of ``input`` divided by its largest value, and these values.

    Both stay with the tensor until it changes: queries, keys and values are products of the same one.
    """
    version = None if input.is_inference() else input._version  # inference mode counts no changes
    kept: tuple[int, Tensor, Tensor] | None = getattr(input, _KEPT, None)
    if kept is not None and kept[0] == version:
        return kept[1:]
    # two passes over the numbers take half the time of abs(), which writes them all again
    largest = torch.maximum(input.amax(dim=-1, keepdim=True), input.amin(dim=-1, keepdim=True).neg_())
    largest.clamp_min_(_TINY)
    scaled = input / largest
    if version is not None:
        setattr(input, _KEPT, (version, scaled, largest))
    return scaled, largest
