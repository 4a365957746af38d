"""The parameters of a block (block.py): its output projection, layer norms and feed-forward network.

Axes: H heads, d head dimension, D = H·d model dimension, F feed-forward dimension.  Matrices are those of
``torch.nn.Linear.weight``, [outputs, inputs].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import torch
from torch import Tensor

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.norms import head_gram_basis

#: How far a vector is carried: the attention's sum, with the residual, with the layer norm after it, through the
#: feed-forward network, with its residual, with the layer norm after that.
STAGES = ("attn", "attnres", "attnresln", "ff", "ffres", "ffresln")


@dataclass(frozen=True)
class Norm:
    """A layer normalisation: γ [D], β [D], eps (Ba et al. 2016)."""

    weight: Tensor
    bias: Tensor
    eps: float

    def centred(self, vectors: Tensor) -> Tensor:
        """γ ⊙ (v − mean(v)), the linear part without its scale, of ``vectors`` [..., D]."""
        return (vectors - vectors.mean(dim=-1, keepdim=True)) * self.weight

    def scale(self, whole: Tensor) -> Tensor:
        """s = sqrt(var(y) + eps) of ``whole`` vectors y [..., D], biased variance: [..., 1]."""
        return (whole.var(dim=-1, unbiased=False, keepdim=True) + self.eps).sqrt()

    def __call__(self, whole: Tensor) -> Tensor:
        """The layer normalisation itself."""
        return self.centred(whole) / self.scale(whole) + self.bias


@dataclass(frozen=True)
class FeedForward:
    """W_2 g(W_1 u + b_1) + b_2 with what stands around it.

    Attributes:
        w_1: [F, D].
        b_1: [F].
        w_2: [D, F].
        b_2: [D].
        activation: g, elementwise, with g(0) = 0 (:func:`check_activation`).
        norm: the layer norm before the network (pre-norm layers only).
        final_norm: the layer norm after its residual connection (post-norm layers only).
    """

    w_1: Tensor
    b_1: Tensor
    w_2: Tensor
    b_2: Tensor
    activation: Callable[[Tensor], Tensor]
    norm: Optional[Norm] = None
    final_norm: Optional[Norm] = None


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """The parameters of a block, and what follows from them alone.

    Attributes:
        w_o: output projection, [D, H·d] as ``torch.nn.Linear.weight``.
        b_o: its bias, [D], None for none.
        heads: number of heads H.
        cross: encoder-decoder attention: the residual is no source position and gets one extra, last column.  Else
            (self-attention, T = S) it belongs to position j = i.
        norm: the layer norm after the residual connection (post-norm layers; None in pre-norm layers).
        feed_forward: the network that follows, None where none does (decoder self-attention).
    """

    w_o: Tensor
    b_o: Optional[Tensor]
    heads: int
    cross: bool
    norm: Optional[Norm] = None
    feed_forward: Optional[FeedForward] = None

    @cached_property
    def network(self) -> FeedForward:
        """The feed-forward network.

        Raises:
            InputError: none follows the block, or its activation has no closed form.
        """
        if self.feed_forward is None:
            raise InputError(
                "no feed-forward network follows this block: expected encoder self-attention or encoder-decoder "
                "attention for kinds ff_n, ffres_n and ffresln_n"
            )
        check_activation(self.feed_forward.activation)
        return self.feed_forward

    @property
    def input_norm(self) -> Optional[Norm]:
        """The norm that makes the network's input: of post-norm layers the block's own, of pre-norm layers another."""
        return self.norm if self.norm is not None or self.feed_forward is None else self.feed_forward.norm

    @cached_property
    def gram_basis(self) -> Tensor:
        """norms.head_gram_basis of W_O."""
        return head_gram_basis(self.w_o, self.heads)

    @cached_property
    def norm_gram_basis(self) -> Tensor:
        """That of W_O followed by the linear part of the layer norm; :attr:`gram_basis` in a pre-norm layer."""
        if self.norm is None:
            return self.gram_basis
        return head_gram_basis(self.norm.centred(self.w_o.t()).t(), self.heads)

    @cached_property
    def head_triangles(self) -> Tensor:
        """R_h with ‖R_h u‖ = ‖W_h u‖, [H, d, d]: norms of a head's vectors without H·D numbers a position."""
        w_h = self.w_o.view(len(self.w_o), self.heads, -1).transpose(0, 1)
        triangles: Tensor = torch.linalg.qr(w_h, mode="r").R
        return triangles

    def stream(self, vectors: Tensor, stage: str) -> Optional[Tensor]:
        """What ``vectors`` [..., D] put on the residual stream at ``stage``, before the division by s_i, or None."""
        if stage == "ff":
            return None
        return vectors if self.norm is None or stage in ("attn", "attnres") else self.norm.centred(vectors)

    def pre_activation(self, vectors: Tensor, stage: str) -> Optional[Tensor]:
        """Their share of the pre-activation, [..., F], before the division by s_i; None before the network."""
        if stage not in ("ff", "ffres", "ffresln"):
            return None
        inner = vectors if self.input_norm is None else self.input_norm.centred(vectors)
        return torch.matmul(inner, self.network.w_1.t())

    @cached_property
    def _folded(self) -> dict[str, tuple[Optional[Tensor], Optional[Tensor]]]:
        return {}

    def folded(self, stage: str) -> tuple[Optional[Tensor], Optional[Tensor]]:
        """W_O a head followed by :meth:`stream` and by :meth:`pre_activation`: [H, d, D] and [H, d, F]."""
        if stage not in self._folded:
            images = (self.stream(self.w_o.t(), stage), self.pre_activation(self.w_o.t(), stage))
            stream, pre = (None if i is None else i.reshape(self.heads, -1, i.size(-1)) for i in images)
            self._folded[stage] = (stream, pre)
        return self._folded[stage]


def check_activation(activation: Callable[[Tensor], Tensor]) -> None:
    """Check that ``activation`` is elementwise with g(0) = 0, as the closed form of its shares asks for.

    Raises:
        InputError: it is not.
    """
    name = getattr(activation, "__name__", repr(activation))
    probe = torch.tensor([0.0, -1.5, 0.75])
    together, alone = activation(probe.clone()), torch.cat([activation(x[None]) for x in probe])
    if together.shape != probe.shape or not torch.allclose(together, alone):
        raise InputError(
            f"activation {name} is not elementwise: expected one that is, for kinds ff_n, ffres_n and ffresln_n"
        )
    if alone[0] != 0:
        raise InputError(
            f"activation {name} has g(0) = {float(alone[0]):g}: kinds ff_n, ffres_n and ffresln_n share g(p) out as "
            f"p·g(p)/p, which needs g(0) = 0 (relu, gelu, swish, tanh, linear)"
        )
