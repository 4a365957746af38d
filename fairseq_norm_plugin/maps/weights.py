"""The parameters of a block (block.py): its output projection, layer norms and feed-forward network.

Axes: H heads, d head dimension, D = H·d model dimension, F feed-forward dimension.  Matrices are [outputs, inputs], as
in ``torch.nn.Linear.weight``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.norms import head_gram_basis

#: The stages that a vector can be carried to: the attention's sum, with the residual, with the layer norm after it,
#: through the feed-forward network, with its residual, with the layer norm after that.
STAGES = ("attn", "attnres", "attnresln", "ff", "ffres", "ffresln")


@dataclass(frozen=True)
class Norm:
    """A layer normalisation, γ ⊙ (y − mean(y)) / sqrt(var(y) + eps) + β: ``weight`` γ and ``bias`` β, [D]."""

    weight: Tensor
    bias: Tensor
    eps: float

    def centred(self, vectors: Tensor) -> Tensor:
        """γ ⊙ (v − mean(v)) for ``vectors`` v, [..., D]: the linear part, before the division by :meth:`scale`."""
        return (vectors - vectors.mean(dim=-1, keepdim=True)) * self.weight

    def scale(self, whole: Tensor) -> Tensor:
        """s = sqrt(var(y) + eps) for ``whole`` vectors y [..., D], with the biased variance: [..., 1]."""
        return (whole.var(dim=-1, unbiased=False, keepdim=True) + self.eps).sqrt()

    def __call__(self, whole: Tensor) -> Tensor:
        """Normalise ``whole`` vectors y, [..., D]."""
        return self.centred(whole) / self.scale(whole) + self.bias


@dataclass(frozen=True)
class FeedForward:
    """The network W_2 g(W_1 u + b_1) + b_2 and the layer norm that belongs to it."""

    w_1: Tensor  #: [F, D]
    b_1: Tensor  #: [F]
    w_2: Tensor  #: [D, F]
    b_2: Tensor  #: [D]
    activation: Callable[[Tensor], Tensor]  #: g, elementwise, with g(0) = 0 (:func:`check_activation`)
    norm: Norm | None = None  #: before the network; None in post-norm layers
    final_norm: Norm | None = None  #: after the network's residual connection; None in pre-norm layers


@dataclass(frozen=True, eq=False)
class BlockWeights:
    """The parameters of a block, and what depends only on them."""

    w_o: Tensor  #: output projection, [D, H·d]
    b_o: Tensor | None  #: its bias, [D]
    heads: int
    #: Encoder-decoder attention, where the residual is no source position, so that maps have an extra last column for
    #: it.  In self-attention it belongs to position j = i (T = S).
    cross: bool
    norm: Norm | None = None  #: after the attention's residual connection; None in pre-norm layers
    feed_forward: FeedForward | None = None  #: None: no network follows (decoder self-attention)

    @cached_property
    def network(self) -> FeedForward:
        """The feed-forward network, checked, in the type of the other parameters."""
        if self.feed_forward is None:
            raise InputError(
                "this block has no feed-forward network, which kinds ff_n, ffres_n and ffresln_n need; they exist for "
                "encoder self-attention and encoder-decoder attention"
            )
        check_activation(self.feed_forward.activation)
        parts = {name: getattr(self.feed_forward, name).to(self.w_o.dtype) for name in ("w_1", "b_1", "w_2", "b_2")}
        return replace(self.feed_forward, **parts)

    @property
    def input_norm(self) -> Norm | None:
        """The norm whose output the network reads: :attr:`norm`, or in pre-norm layers the network's own; or None."""
        return self.norm if self.norm is not None or self.feed_forward is None else self.feed_forward.norm

    @cached_property
    def gram_basis(self) -> Tensor:
        """:func:`~fairseq_norm_plugin.maps.norms.head_gram_basis` of W_O, float64 [H, d, H·d]."""
        return head_gram_basis(self.w_o, self.heads)

    @cached_property
    def norm_gram_basis(self) -> Tensor:
        """The same for W_O followed by :meth:`Norm.centred`; in a pre-norm layer :attr:`gram_basis` itself."""
        if self.norm is None:
            return self.gram_basis
        return head_gram_basis(self.norm.centred(self.w_o.t()).t(), self.heads)

    @cached_property
    def head_triangles(self) -> Tensor:
        """R_h with ‖R_h u‖ = ‖W_h u‖, [H, d, d]: gives the norm of a head's vector from d numbers instead of D."""
        w_h = self.w_o.view(len(self.w_o), self.heads, -1).transpose(0, 1)
        triangles: Tensor = torch.linalg.qr(w_h, mode="r").R
        return triangles

    def parts(self, vectors: Tensor, stage: str) -> tuple[Tensor | None, Tensor | None]:
        """What ``vectors`` of the attention's output space add to the residual stream and to the pre-activation.

        [..., D] and [..., F], not yet divided by s_i; None where they add nothing at ``stage``.
        """
        stream = pre = None
        if stage != "ff":
            stream = vectors if self.norm is None or stage in ("attn", "attnres") else self.norm.centred(vectors)
        if stage in ("ff", "ffres", "ffresln"):
            inner = vectors if self.input_norm is None else self.input_norm.centred(vectors)
            pre = torch.matmul(inner, self.network.w_1.t())
        return stream, pre

    @cached_property
    def _folded(self) -> dict[str, list[Tensor | None]]:
        return {}

    def folded(self, stage: str) -> list[Tensor | None]:
        """W_O of each head followed by :meth:`parts`, for vectors u W as rows: [H, d, D] and [H, d, F], or None."""
        if stage not in self._folded:
            images = self.parts(self.w_o.t(), stage)
            self._folded[stage] = [None if i is None else i.reshape(self.heads, -1, i.size(-1)) for i in images]
        return self._folded[stage]


def check_activation(activation: Callable[[Tensor], Tensor]) -> None:
    """Check that ``activation`` g is elementwise with g(0) = 0; its closed form needs this (docs/maps.md)."""
    probe = torch.tensor([0.0, -1.5, 0.75])
    together, alone = activation(probe.clone()), torch.cat([activation(x[None]) for x in probe])
    problem = None
    if together.shape != probe.shape or not torch.allclose(together, alone):
        problem = "is not elementwise"
    elif alone[0] != 0:
        problem = f"has g(0) = {float(alone[0]):g}"
    if problem:
        raise InputError(
            f"activation {getattr(activation, '__name__', repr(activation))} {problem}, but kinds ff_n, ffres_n and "
            f"ffresln_n need an elementwise one with g(0) = 0 (relu, gelu, swish, tanh, linear)"
        )
