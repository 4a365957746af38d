"""Matrix products in 8 bits, on a CPU.

The weights of each output are scaled to 8 bits once, the inputs of each token by their largest value when a product is
computed (dynamic quantisation), so a token's product does not depend on the other tokens of the batch.  Parameters,
layer norms, softmax and maps stay in float32.
"""

from __future__ import annotations

import warnings
from typing import Any, cast

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from alignment_eval.errors import UsageError

_LARGEST = 127  # of 8 bits with a sign
_LARGEST_INPUT = 63  # of 7 bits with a sign, because some CPUs add two products in 16 bits
_TINY = torch.finfo(torch.float32).tiny
_KEPT = "scaled_for_8_bits"


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
