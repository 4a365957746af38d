"""Matrix products in 8 bits, on a CPU.

The weights of each output are scaled to 8 bits once, the inputs of a product by their largest value when it is computed
(dynamic quantisation).  Parameters, layer norms, softmax and maps stay in float32.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

_LARGEST = 127  # of 8 bits with a sign


class Int8Linear(nn.Linear):
    """A linear layer whose product is computed in 8 bits; its parameters stay as they are."""

    packed: Any

    def pack(self) -> None:
        """Scale the weights; call it again after they have changed."""
        weight = self.weight.detach().float()
        scales = (weight.abs().amax(dim=1).double() / _LARGEST).clamp_min(torch.finfo(torch.float32).tiny)
        zeros = torch.zeros(len(weight), dtype=torch.int64)
        with warnings.catch_warnings():  # torch announces another interface, which needs one more package
            warnings.filterwarnings("ignore", category=UserWarning)
            quantised = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(quantised, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """The product of ``input`` [..., inputs] with the weights, and the bias: float32 [..., outputs]."""
        # 7 bits of inputs, because some CPUs add two products in 16 bits
        product: Tensor = torch.ops.quantized.linear_dynamic(input, self.packed, reduce_range=True)
        return product


def use_int8(model: nn.Module) -> None:
    """Compute the products of all layers of ``model`` in 8 bits, in place; embeddings and output stay in float32."""
    for name, module in model.named_modules():
        if ".layers." in name and type(module) is nn.Linear:
            _convert(module)
        elif isinstance(module, MultiheadAttention):
            module.skip_embed_dim_check = True  # torch's fused attention would multiply by the parameters themselves


def _convert(linear: Any) -> None:
    linear.__class__ = Int8Linear
    linear.pack()
