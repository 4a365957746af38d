"""The steps after an attention (block.py), which carry the vector of each source position to the block's output.

If the whole vector is known, each step is linear in its parts (docs/maps.md):

- The layer norm of y_i = Σ_j z_ij + b_O maps a part v to g_i(v) = γ ⊙ (v − mean(v)) / s_i with
  s_i = sqrt(var(y_i) + eps); β belongs to no part (Kobayashi et al. 2021).
- The activation g of the pre-activation p_i = Σ_j p_ij + … gives a part p_ij the share p_ij · g(p_i) / p_i: integrated
  gradients from a zero baseline, in closed form (Kobayashi et al. 2024).

Axes: B batch, T target positions, D model dimension, F feed-forward dimension.
"""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from fairseq_norm_plugin.maps.weights import BlockWeights


class Carrier:
    """Carries vectors from the attention's output space through the steps after it, up to a stage (``STAGES``).

    This is linear: the carried vectors of all source positions, of the residual connection and of the biases sum to
    :meth:`whole`.  The leading axis B may be missing.

    Args:
        weights: the block's parameters.
        output: the attention's output, b_O included, [B, T, D].
        residual: the residual that is added to it, [B, T, D].
    """

    def __init__(self, weights: BlockWeights, output: Tensor, residual: Tensor) -> None:
        self._weights = weights
        self._output = output
        self._sum = residual + output

    @cached_property
    def _scale(self) -> Tensor | None:
        """s_i of the layer norm before the network, [B, T, 1]; None without that norm."""
        norm = self._weights.input_norm
        return None if norm is None else norm.scale(self._sum)

    @cached_property
    def _stream(self) -> Tensor:
        return self._sum if self._weights.norm is None else self._weights.norm(self._sum)

    @cached_property
    def _pre(self) -> Tensor:
        norm, network = self._weights.input_norm, self._weights.network
        return torch.nn.functional.linear(self._sum if norm is None else norm(self._sum), network.w_1, network.b_1)

    @cached_property
    def _ratio(self) -> Tensor:
        """g(p) / p of every unit, [B, T, F]; at p = 0 its limit g'(0)."""
        pre, activation = self._pre, self._weights.network.activation
        zero = torch.zeros(1, dtype=pre.dtype, device=pre.device, requires_grad=True)
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(activation(zero).sum(), zero)
        return torch.where(pre == 0, slope, activation(pre) / torch.where(pre == 0, 1.0, pre))

    @cached_property
    def _ratio_by_scale(self) -> Tensor:
        return self._ratio if self._scale is None else self._ratio / self._scale

    @cached_property
    def _network_output(self) -> Tensor:
        network = self._weights.network
        return torch.nn.functional.linear(network.activation(self._pre), network.w_2, network.b_2)

    @cached_property
    def _final_scale(self) -> Tensor:
        norm = self._weights.network.final_norm
        assert norm is not None
        return norm.scale(self.whole("ffres"))

    def whole(self, stage: str) -> Tensor:
        """The model's own vector at ``stage``, biases included, [B, T, D]."""
        if stage in ("attn", "attnres", "attnresln"):
            return {"attn": self._output, "attnres": self._sum, "attnresln": self._stream}[stage]
        if stage == "ff":
            return self._network_output
        whole = self._network_output + self._stream
        final = self._weights.network.final_norm
        return whole if stage == "ffres" or final is None else final(whole)

    def finish(self, stream: Tensor | None, pre: Tensor | None, stage: str) -> Tensor:
        """Divide by the scales of this pass and sum: the last step of :meth:`carry`, which overwrites its input.

        ``stream`` [..., T, D] and ``pre`` [..., T, F] are :meth:`BlockWeights.stream` and
        :meth:`BlockWeights.pre_activation` of the vectors at ``stage``; the result is the vectors there, [..., T, D].
        """
        if stream is not None and stage not in ("attn", "attnres") and self._weights.norm is not None:
            assert self._scale is not None
            stream = stream.div_(self._scale)
        if pre is None:
            assert stream is not None
            return stream
        result = torch.matmul(pre.mul_(self._ratio_by_scale), self._weights.network.w_2.t())
        if stream is not None:
            result = result.add_(stream)
        return self._final(result) if stage == "ffresln" else result

    def _final(self, vectors: Tensor) -> Tensor:
        """The linear part of the layer norm after the network, if the block has this norm."""
        norm = self._weights.network.final_norm
        return vectors if norm is None else norm.centred(vectors).div_(self._final_scale)

    def carry(self, vectors: Tensor, stage: str) -> Tensor:
        """Carry ``vectors`` [(B), ..., T, D] from the attention's output space to ``stage``."""
        return self.finish(self._weights.stream(vectors, stage), self._weights.pre_activation(vectors, stage), stage)
