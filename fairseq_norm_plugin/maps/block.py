"""A block of a Transformer layer, described once: every map of every block is computed from this description.

A block is an attention with its residual connection, its layer normalisation and, where one follows, the
feed-forward network.  Axes: B batch, H heads, T target positions, S source positions, d head dimension, D model
dimension, F feed-forward dimension.  Source position j reaches target position i as the vector

    z_ij = Σ_h α^h_ij f^h(x_j)  [+ x_i where j is i's own position],

and everything after the attention acts on z_ij linearly once the whole vectors are known (:class:`Carrier`):
the layer norm of y_i = Σ_j z_ij + b_O is g_i(v) = γ ⊙ (v − mean(v)) / s_i, s_i = sqrt(var(y_i) + eps), plus β; the
activation g of the pre-activation p_i = Σ_j p_ij + … gives each share of p the part p_ij · g(p_i) / p_i
(docs/maps.md).  The stages of that way are :data:`STAGES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Optional

import torch
from torch import Tensor

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.norms import gram_factor, head_gram_basis, layer_norms

#: How far a vector is carried: the attention's sum, with the residual, with the layer norm after it, through the
#: feed-forward network, with its residual, with the layer norm after that.
STAGES = ("attn", "attnres", "attnresln", "ff", "ffres", "ffresln")
#: Size of the temporaries of one chunk of vectors, in bytes: large enough for the network's matrix products.
VECTOR_CHUNK_BYTES = 8 * 2**20


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


@dataclass(frozen=True, eq=False)
class Block:
    """One block in one forward pass; the leading axis B may be missing (:meth:`sentence`).

    Attributes:
        weights: the block's parameters.
        alpha: attention weights after softmax, before dropout, [B, H, T, S].
        values: value vectors, bias included, [B, S, H, d].
        residual: what the residual connection adds to the attention's output, [B, T, D].
        output: the attention's output, b_O included, [B, T, D].
        known_factor: :attr:`factor` where it was built before (incremental decoding); ``values`` is not read then.
    """

    weights: BlockWeights
    alpha: Tensor
    values: Tensor
    residual: Tensor
    output: Tensor
    known_factor: Optional[Tensor] = None

    def sentence(self, index: int) -> Block:
        """Sentence ``index`` of the batch alone, without the batch axis."""
        names = ("alpha", "values", "residual", "output")
        return replace(self, known_factor=None, **{name: getattr(self, name)[index] for name in names})

    @cached_property
    def factor(self) -> Tensor:
        """Gram factor of the transformed vectors f^h(x_j), [B, S, H, H] (norms.py)."""
        if self.known_factor is not None:
            return self.known_factor
        return gram_factor(self.values, self.weights.gram_basis)

    @cached_property
    def norm_factor(self) -> Tensor:
        """Gram factor of γ ⊙ (f − mean(f)), [B, S, H, H]; :attr:`factor` in a pre-norm layer."""
        return self.factor if self.weights.norm is None else gram_factor(self.values, self.weights.norm_gram_basis)

    @cached_property
    def sum_norms(self) -> Tensor:
        """‖Σ_h α^h_ij f^h(x_j)‖, [B, T, S]."""
        return layer_norms(self.alpha, self.factor)

    @cached_property
    def own_by_head(self) -> Tensor:
        """α^h_ii v^h_i: what each head takes from i itself, before W_O, [B, T, H, d]; 0 in cross-attention."""
        if self.weights.cross:
            return torch.zeros_like(self.others_by_head)
        return self.alpha.diagonal(dim1=-2, dim2=-1).transpose(-2, -1)[..., None] * self.values

    @cached_property
    def others_by_head(self) -> Tensor:
        """Σ_{j≠i} α^h_ij v^h_j: what each head takes from the other positions, before W_O, [B, T, H, d]."""
        alpha = self.alpha
        if not self.weights.cross:
            alpha = alpha.masked_fill(torch.eye(alpha.size(-1), dtype=torch.bool, device=alpha.device), 0.0)
        return torch.matmul(alpha, self.values.transpose(-3, -2)).transpose(-3, -2)

    @cached_property
    def own(self) -> Tensor:
        """Σ_h α^h_ii f^h(x_i), [B, T, D]."""
        return torch.matmul(self.own_by_head.flatten(-2), self.weights.w_o.t())

    @cached_property
    def others(self) -> Tensor:
        """Σ_{j≠i} Σ_h α^h_ij f^h(x_j), [B, T, D]."""
        return torch.matmul(self.others_by_head.flatten(-2), self.weights.w_o.t())

    @cached_property
    def carrier(self) -> Carrier:
        """What the whole vectors of this pass make of the steps after the attention."""
        return Carrier(self)


class Carrier:
    """Carries vectors of the attention's output space through the steps after it, by the stage asked for.

    Linear: the vectors of all source positions, of the residual and of :meth:`tokenless` add up to :meth:`whole`.
    """

    def __init__(self, block: Block) -> None:
        self._weights = block.weights
        self._output = block.output
        self._sum = block.residual + block.output

    @cached_property
    def _scale(self) -> Optional[Tensor]:
        """s_i of the layer norm that makes the block's output, or of pre-norm layers the network's input."""
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
        """g(p) / p of every unit, [B, T, F]; where p = 0 its limit g'(0)."""
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

    def finish(self, stream: Optional[Tensor], pre: Optional[Tensor], stage: str) -> Tensor:
        """Vectors at ``stage``, from their :meth:`BlockWeights.stream` [..., T, D] and ``pre_activation`` [..., T, F].

        Overwrites both.
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
        """The linear part of the layer norm after the network, if there is one."""
        norm = self._weights.network.final_norm
        return vectors if norm is None else norm.centred(vectors).div_(self._final_scale)

    def carry(self, vectors: Tensor, stage: str) -> Tensor:
        """``vectors`` [..., T, D] of the attention's output space (B first, if there is a batch) at ``stage``."""
        stream, pre = self._weights.stream(vectors, stage), self._weights.pre_activation(vectors, stage)
        return self.finish(None if stream is None else stream.clone(), pre, stage)

    def tokenless(self, stage: str) -> Tensor:
        """What no token owns at ``stage``: b_O, β, b_1 and b_2 on their way, [B, T, D]."""
        weights = self._weights
        b_o = torch.zeros_like(weights.w_o[:, 0]) if weights.b_o is None else weights.b_o
        result = self.carry(b_o.expand_as(self._output), stage)
        added = torch.zeros_like(result)
        if stage in ("attnresln", "ffres", "ffresln") and weights.norm is not None:
            added += weights.norm.bias
        if stage in ("ff", "ffres", "ffresln"):
            network, norm = weights.network, weights.input_norm
            inner = network.b_1 if norm is None else network.b_1 + torch.mv(network.w_1, norm.bias)
            added += torch.matmul(self._ratio * inner, network.w_2.t()) + network.b_2
            if stage == "ffresln" and network.final_norm is not None:
                added = self._final(added) + network.final_norm.bias
        return result + added


def vectors(block: Block, stage: str, chunk_bytes: int = VECTOR_CHUNK_BYTES) -> Iterator[tuple[slice, Tensor]]:
    """The vectors of one sentence at ``stage``, over chunks of source positions (no tensor of T·S·D elements).

    W_1 W_O is folded per head, so that a pair costs the network's second projection only.

    Args:
        block: one sentence (:meth:`Block.sentence`).
        stage: one of :data:`STAGES`.
        chunk_bytes: size of the temporaries of a chunk, in bytes.

    Yields:
        Source positions as a slice, and their vectors [positions, T, D]; from stage ``attnres`` on the residual's
        column follows as position S in cross-attention.
    """
    carrier, cross = block.carrier, block.weights.cross
    heads, target, source = block.alpha.shape
    weights = block.weights.folded(stage)
    residual: tuple[Optional[Tensor], Optional[Tensor]] = (None, None)
    if stage != "attn":
        residual = (block.weights.stream(block.residual, stage), block.weights.pre_activation(block.residual, stage))
    width = sum((heads + 2 * target) * weight.size(-1) for weight in weights if weight is not None)
    step = max(1, chunk_bytes // (width * block.alpha.element_size()))
    for start in range(0, source, step):
        columns = slice(start, min(start + step, source))
        alpha = block.alpha[:, :, columns].permute(2, 1, 0)  # [s, T, H]
        values = block.values[columns].transpose(0, 1)  # [H, s, d]
        parts: list[Optional[Tensor]] = []
        for weight, own in zip(weights, residual):
            part = None
            if weight is not None:
                part = torch.matmul(alpha, torch.bmm(values, weight).transpose(0, 1))  # [s, T, D or F]
                if own is not None and not cross:
                    part.diagonal(offset=columns.start, dim1=0, dim2=1).add_(own[columns].t())
            parts.append(part)
        yield columns, carrier.finish(parts[0], parts[1], stage)
    if cross and stage != "attn":
        column = [None if own is None else own[None].clone() for own in residual]
        yield slice(source, source + 1), carrier.finish(column[0], column[1], stage)


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
