"""A block of a Transformer layer, from which every map is computed.

A block is an attention with its residual connection, its layer normalisation and, if one follows, the feed-forward
network.  Axes: B batch, H heads, T target positions, S source positions, d head dimension, D model dimension, F
feed-forward dimension.  Source position j reaches target position i as the vector

    z_ij = Σ_h α^h_ij f^h(x_j)  [+ x_i if j is i's own position],

which the steps after the attention (:class:`~fairseq_norm_plugin.maps.carrier.Carrier`) carry to one of the stages
:data:`~fairseq_norm_plugin.maps.weights.STAGES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from fairseq_norm_plugin.maps.carrier import Carrier
from fairseq_norm_plugin.maps.norms import gram_factor, layer_norms
from fairseq_norm_plugin.maps.weights import BlockWeights

#: Size of the temporary tensors of one chunk of vectors, in bytes: large enough for the network's matrix products.
VECTOR_CHUNK_BYTES = 8 * 2**20


@dataclass(frozen=True, eq=False)
class Block:
    """One block in one forward pass; the leading axis B may be missing (:meth:`sentence`).

    All tensors and maps have the same dtype, float32 or float64.  Padding is treated like any other position, unless
    ``real`` is given.

    Attributes:
        weights: the block's parameters.
        alpha: attention weights after softmax, before dropout, [B, H, T, S]; rows sum to 1.
        values: value vectors, bias included, [B, S, H, d].
        residual: the residual that is added to the attention's output, [B, T, D].
        output: the attention's output, b_O included, [B, T, D].
        known_factor: :attr:`factor` if it was built before (incremental decoding); then ``values`` is ignored.
        real: which source positions are not padding, bool [B, S]: the norms of the others, to which no position
            attends, are not computed, but zero.  None: all are computed.
    """

    weights: BlockWeights
    alpha: Tensor
    values: Tensor
    residual: Tensor
    output: Tensor
    known_factor: Tensor | None = None
    real: Tensor | None = None

    def sentence(self, index: int) -> Block:
        """Sentence ``index`` of the batch, without the batch axis."""
        names = ("alpha", "values", "residual", "output")
        return replace(self, known_factor=None, real=None, **{name: getattr(self, name)[index] for name in names})

    @cached_property
    def factor(self) -> Tensor:
        """:func:`~fairseq_norm_plugin.maps.norms.gram_factor` of the transformed vectors f^h(x_j), [B, S, H, H]."""
        if self.known_factor is not None:
            return self.known_factor
        return gram_factor(self.values, self.weights.gram_basis, self.real)

    @cached_property
    def norm_factor(self) -> Tensor:
        """The same for the vectors γ ⊙ (f − mean(f)), [B, S, H, H]; in a pre-norm layer :attr:`factor` itself."""
        if self.weights.norm is None:
            return self.factor
        return gram_factor(self.values, self.weights.norm_gram_basis, self.real)

    @cached_property
    def sum_norms(self) -> Tensor:
        """‖Σ_h α^h_ij f^h(x_j)‖, [B, T, S] (Kobayashi et al. 2020)."""
        return layer_norms(self.alpha, self.factor)

    @cached_property
    def own_by_head(self) -> Tensor:
        """α^h_ii v^h_i: the part that each head takes from i itself, before W_O, [B, T, H, d]; 0 in cross-attention."""
        if self.weights.cross:
            return torch.zeros_like(self.others_by_head)
        return self.alpha.diagonal(dim1=-2, dim2=-1).transpose(-2, -1)[..., None] * self.values

    @cached_property
    def others_by_head(self) -> Tensor:
        """Σ_{j≠i} α^h_ij v^h_j: the part that each head takes from other positions, before W_O, [B, T, H, d]."""
        alpha = self.alpha
        if not self.weights.cross:
            alpha = alpha.masked_fill(torch.eye(alpha.size(-1), dtype=torch.bool, device=alpha.device), 0.0)
        return torch.matmul(alpha, self.values.transpose(-3, -2)).transpose(-3, -2)

    @cached_property
    def own(self) -> Tensor:
        """Σ_h α^h_ii f^h(x_i), [B, T, D]; zeros in cross-attention."""
        return torch.matmul(self.own_by_head.flatten(-2), self.weights.w_o.t())

    @cached_property
    def others(self) -> Tensor:
        """Σ_{j≠i} Σ_h α^h_ij f^h(x_j), [B, T, D]."""
        return torch.matmul(self.others_by_head.flatten(-2), self.weights.w_o.t())

    @cached_property
    def carrier(self) -> Carrier:
        """The steps after the attention, with the scales of this forward pass."""
        return Carrier(self.weights, self.output, self.residual)


def vectors(block: Block, stage: str, chunk_bytes: int = VECTOR_CHUNK_BYTES) -> Iterator[tuple[slice, Tensor]]:
    """The vectors z_ij of one sentence, carried to ``stage``, in chunks of source positions.

    No tensor of T·S·D elements is built.  W_O and W_1 are multiplied once per head, so a pair of positions costs only
    the network's second projection (Kobayashi et al. 2024; docs/maps.md has the closed form).

    Args:
        block: one sentence (:meth:`Block.sentence`).
        stage: one of :data:`~fairseq_norm_plugin.maps.weights.STAGES`.
        chunk_bytes: size of the temporary tensors of a chunk, in bytes.

    Yields:
        Source positions as a slice, and their vectors, [positions, T, D].  In cross-attention, from stage ``attnres``
        on, the residual follows as position S.
    """
    carrier, cross = block.carrier, block.weights.cross
    heads, target, source = block.alpha.shape
    weights = block.weights.folded(stage)
    residual: tuple[Tensor | None, Tensor | None] = (None, None)
    if stage != "attn":
        residual = (block.weights.stream(block.residual, stage), block.weights.pre_activation(block.residual, stage))
    width = max(len(block.weights.w_o), sum(weight.size(-1) for weight in weights if weight is not None))
    step = max(1, chunk_bytes // ((heads + 2 * target) * width * block.alpha.element_size()))
    for start in range(0, source, step):
        columns = slice(start, min(start + step, source))
        alpha = block.alpha[:, :, columns].permute(2, 1, 0)  # [s, T, H]
        values = block.values[columns].transpose(0, 1)  # [H, s, d]
        parts: list[Tensor | None] = []
        for weight, own in zip(weights, residual):
            part = None
            if weight is not None:
                part = torch.matmul(alpha, torch.bmm(values, weight).transpose(0, 1))  # [s, T, D or F]
                if own is not None and not cross:
                    part.diagonal(offset=columns.start, dim1=0, dim2=1).add_(own[columns].t())
            parts.append(part)
        yield columns, carrier.finish(parts[0], parts[1], stage)
    if cross and stage != "attn":
        column = [None if own is None else own[None] for own in residual]
        yield slice(source, source + 1), carrier.finish(column[0], column[1], stage)
