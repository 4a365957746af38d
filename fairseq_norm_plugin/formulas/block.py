"""A block of a Transformer layer, from which every map is computed, and the norms of its vectors.

A block is an attention with its residual connection, its layer normalisation and, if one follows, the feed-forward
network.  Axes: B batch, H heads, T target positions, S source positions, d head dimension, D model dimension, F
feed-forward dimension.  α is the attention weight after softmax and before dropout, v^h_j the value vector of source
token j in head h (bias included), W_h = W_O[:, h·d:(h+1)·d] the head's slice of the output projection (as in
``torch.nn.Linear.weight``), f^h(x_j) = W_h v^h_j the transformed vector.  Source position j reaches position i as

    z_ij = Σ_h α^h_ij f^h(x_j)  [+ x_i if j is i's own position],

which the steps after the attention carry to one of the :data:`STAGES`.  If the whole vector is known, each step is
linear in its parts (docs/maps.md):

- The layer norm of y_i = Σ_j z_ij + b_O maps a part v to g_i(v) = γ ⊙ (v − mean(v)) / s_i with
  s_i = sqrt(var(y_i) + eps); β belongs to no part (Kobayashi et al. 2021).
- The activation g of the pre-activation p_i = Σ_j p_ij + … gives a part p_ij the share p_ij · g(p_i) / p_i: integrated
  gradients from a zero baseline, in closed form (Kobayashi et al. 2024).

So the carried vectors of all source positions, of the residual connection and of the biases sum to :meth:`Block.whole`.

Norms (Kobayashi et al. 2020, "Attention is Not Only a Weight") are Euclidean, in the unit of the model's hidden states,
and of no bias b_O.  ‖Σ_h α^h_ij f^h(x_j)‖² = Σ_hk α^h_ij α^k_ij G_j[h,k] with the Gram matrix
G_j[h,k] = f^h(x_j)·f^k(x_j), one H×H matrix per source token.  From its Cholesky factor, G_j = L_j L_jᵀ, the norm is
‖Σ_h α^h_ij L_j[h,:]‖: never negative, and as accurate as the norm of the summed vectors.  (A stored Gram matrix would
lose digits with the square of the cancellation between heads.)  No tensor of B·T·S·D elements is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional

from alignment_eval.errors import InputError

#: The stages that a vector can be carried to: the attention's sum, with the residual, with the layer norm after it,
#: through the feed-forward network, with its residual, with the layer norm after that.
STAGES = ("attn", "attnres", "attnresln", "ff", "ffres", "ffresln")
#: Size of the temporary tensors of one chunk, in bytes: about the size of a core's caches; of vectors, large enough for
#: the network's matrix products.
CHUNK_BYTES, VECTOR_CHUNK_BYTES = 2 * 2**20, 8 * 2**20
# Added to the diagonal before factoring.  The first is relative to each head's own ‖f‖² (times H), so small heads are
# as accurate as large ones.  The second, relative to the sum over heads, is for matrices made indefinite by rounding.
_JITTER, _LAST_JITTER = 1e-15, 1e-12


# ---- norms


def head_gram_basis(w_o: Tensor, num_heads: int) -> Tensor:
    """M[h] = W_hᵀ W, float64 [H, d, H·d], which gives G[h,k] = v^h · M[h,k] v^k; it depends on the parameters only.

    ``w_o`` is the output projection, [D_out, H·d] as ``torch.nn.Linear.weight``.
    """
    weight = w_o.detach().double()
    return torch.mm(weight.t(), weight).view(num_heads, -1, weight.size(1))


def gram_factor(values: Tensor, basis: Tensor, real: Tensor | None = None) -> Tensor:
    """The lower-triangular factor L of each source token's Gram matrix (module docstring).

    Built in float64 over chunks of source tokens (:data:`CHUNK_BYTES`), returned in float32 (float64 for
    float64 values).  The row of a head whose transformed vector is zero is exactly zero.

    Args:
        values: value vectors, [..., S, H, d].
        basis: :func:`head_gram_basis`, [H, d, H·d].
        real: the source tokens whose factors are computed, bool [..., S]; the factors of other tokens are zero.
            Default: all.  A GPU must wait for their number.

    Returns:
        [..., S, H, H]; S is innermost in memory, as :func:`layer_norms` reads it.
    """
    heads, head_dim = values.shape[-2:]
    tokens = values.reshape(-1, heads, head_dim) if real is None else values[real]
    chunk = max(1, CHUNK_BYTES // (8 * heads * (2 * head_dim + heads)))
    dtype = values.dtype if values.dtype == torch.float64 else torch.float32
    parts = [_cholesky(_gram(part.double(), basis)).to(dtype) for part in torch.split(tokens, chunk)]
    factor = _placed(torch.cat(parts), values.shape[:-2], real)
    return factor.movedim(-3, -1).contiguous().movedim(-1, -3)


def _placed(found: Tensor, shape: torch.Size, real: Tensor | None) -> Tensor:
    """What was ``found`` for the ``real`` source tokens, [N, …], at their places: [*shape, …], zeros elsewhere."""
    inner = found.shape[1:]
    return found.view(*shape, *inner) if real is None else found.new_zeros(*shape, *inner).index_put_((real,), found)


def _gram(values: Tensor, basis: Tensor) -> Tensor:
    """The lower triangle of the Gram matrices, zeros above it: [N, H, H] of values [N, H, d]."""
    tokens, heads, head_dim = values.shape
    gram = values.new_zeros(tokens, heads, heads)
    for k in range(heads):
        upto = k + 1
        # v^k · M[k,h] v^h for h ≤ k; the matrix is symmetric
        products = torch.mm(values[:, k], basis[k, :, : upto * head_dim]).view(tokens, upto, head_dim)
        gram[:, k, :upto] = products.mul_(values[:, :upto]).sum(-1)
    return gram


def _cholesky(gram: Tensor) -> Tensor:
    """L of the lower triangles [N, H, H]; a dead head (f = 0) has a row of exact zeros and does not change others."""
    squares = gram.diagonal(dim1=-2, dim2=-1)  # ‖f‖²
    total = squares.sum(-1, keepdim=True)
    dead = squares <= 0  # rounding may take ‖f‖² below 0
    result = torch.full_like(gram, float("nan"))  # a matrix that cannot be factored (NaN in the model) gives NaN
    for jitter in (_LAST_JITTER * total, _JITTER * gram.size(-1) * squares):
        factor, failed = torch.linalg.cholesky_ex(gram + torch.diag_embed(torch.where(dead, total, jitter)))
        result = torch.where(failed[:, None, None] == 0, factor, result)
    return result.masked_fill(dead[..., None], 0.0)


def transformed_norms(factor: Tensor) -> Tensor:
    """‖f^h(x_j)‖, the norms of the transformed vectors, [B, H, S], from their :func:`gram_factor`, [B, S, H, H]."""
    # vector_norm is ten times slower along an axis that is not innermost in memory
    return factor.square().sum(dim=-1).sqrt_().transpose(1, 2)


def vector_norms(values: Tensor, basis: Tensor, real: Tensor | None = None) -> Tensor:
    """:func:`transformed_norms` without the factor, for less than a tenth of its time, where no layer norms are read.

    ‖f^h(x_j)‖² = v^h · M[h,h] v^h in float64, over chunks of source tokens (:data:`CHUNK_BYTES`).  ``values`` are
    [B, S, H, d]; ``basis`` and ``real`` are as for :func:`gram_factor`.  The norms are [B, H, S], in float32 (float64
    for float64 values).
    """
    heads, head_dim = values.shape[-2:]
    squares = basis.view(heads, head_dim, heads, head_dim).diagonal(dim1=0, dim2=2).movedim(-1, 0)  # [H, d, d]
    chunk = max(1, CHUNK_BYTES // (16 * heads * head_dim))
    parts = []
    for part in torch.split(values.reshape(-1, heads, head_dim) if real is None else values[real], chunk):
        vectors = part.double().transpose(0, 1)  # [H, N, d]
        parts.append(torch.bmm(vectors, squares).mul_(vectors).sum(-1))
    norms = torch.cat(parts, dim=1).clamp_min_(0).sqrt_()  # rounding may take ‖f‖² below 0
    dtype = values.dtype if values.dtype == torch.float64 else torch.float32
    return _placed(norms.to(dtype).t(), values.shape[:2], real).transpose(1, 2)


def layer_norms(alpha: Tensor, factor: Tensor, heads: Sequence[int] | None = None) -> Tensor:
    """‖Σ_h α^h_ij f^h(x_j)‖, [B, T, S]: the sum over heads (all, or the named ones), then the norm.

    ``alpha`` are attention weights, [B, H, T, S]; ``factor`` is the :func:`gram_factor` of the values, [B, S, H, H].
    Temporary tensors have the size of a chunk of :data:`CHUNK_BYTES`.
    """
    batch, all_heads, target, source = alpha.shape
    # L is lower triangular: head h has the first h + 1 coordinates, so the last head comes first.
    wanted = range(all_heads) if heads is None else [range(all_heads)[head] for head in heads]
    last, *others = sorted(wanted, reverse=True)
    rows = max(1, CHUNK_BYTES // max(1, (last + 1) * source * alpha.element_size()))
    step = max(1, rows // max(1, target))
    coordinates = factor.movedim(1, -1).unsqueeze(-2)  # [B, H, H, 1, S]
    norms = alpha.new_empty(batch, target, source)
    for b in range(0, batch, step):
        for t in range(0, target, rows):
            sentences, positions = slice(b, b + step), slice(t, t + rows)
            weights, lower = alpha[sentences, :, positions], coordinates[sentences]
            sums = weights[:, last : last + 1] * lower[:, last, : last + 1]
            for h in others:
                sums[:, : h + 1].addcmul_(weights[:, h : h + 1], lower[:, h, : h + 1])
            norms[sentences, positions] = sums.square_().sum(dim=1).sqrt_()
    return norms


def layer_weights(alpha: Tensor, heads: Sequence[int] | None = None) -> Tensor:
    """The mean of ``alpha`` [B, H, T, S] over the heads (all, or the named ones), [B, T, S].

    It is the baseline of Kobayashi et al. (2020).
    """
    # stacked, because indexing with a list would make a GPU wait
    return (alpha if heads is None else torch.stack([alpha[:, h] for h in heads], dim=1)).mean(dim=1)


# ---- a block


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
    _folded: dict[str, list[Tensor | None]] = field(default_factory=dict, init=False)

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
        """:func:`head_gram_basis` of W_O, float64 [H, d, H·d]."""
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


@dataclass(frozen=True, eq=False)
class Block:
    """One block in one forward pass; the leading axis B may be missing (:meth:`sentence`).

    All tensors and maps have the same dtype, float32 or float64.  Padding is treated like any other position, unless
    ``real`` is given.
    """

    weights: BlockWeights
    alpha: Tensor  #: attention weights after softmax, before dropout, [B, H, T, S]; rows sum to 1
    values: Tensor  #: value vectors, bias included, [B, S, H, d]
    residual: Tensor  #: what the residual connection adds to the attention's output, [B, T, D]
    output: Tensor  #: the attention's output, b_O included, [B, T, D]
    known_factor: Tensor | None = None  #: :attr:`factor` from before (incremental decoding); ``values`` is ignored then
    #: Which source positions are not padding, bool [B, S]: the norms of the others, to which no position attends, are
    #: zero.  None: all are computed.
    real: Tensor | None = None
    #: Gives E[w_i] − mean(E), [B, T, D]: the output embedding of the token w_i that row i predicts, less the mean over
    #: the vocabulary.  None: the rows predict nothing (self-attention), or what they predict is not known.
    readout: Callable[[], Tensor] | None = None

    def sentence(self, index: int) -> Block:
        """Sentence ``index`` of the batch, without the batch axis."""
        parts = {name: getattr(self, name)[index] for name in ("alpha", "values", "residual", "output")}
        whole = self.readout
        readout = None if whole is None else lambda: whole()[index]
        return replace(self, known_factor=None, real=None, readout=readout, **parts)

    @cached_property
    def factor(self) -> Tensor:
        """:func:`gram_factor` of the transformed vectors f^h(x_j), [B, S, H, H]."""
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
    def projections(self) -> Tensor:
        """α^h_ij f^h(x_j) · y_i / ‖y_i‖, [B, H, T, S]: each vector along the sum y_i of the block and its residual."""
        return self._along(functional.normalize(self.whole("attnres"), dim=-1))

    @cached_property
    def logits(self) -> Tensor:
        """α^h_ij f^h(x_j) · (E[w_i] − mean(E)), [B, H, T, S]: see :attr:`readout`."""
        if self.readout is None:
            raise InputError(
                "kind attn_logit needs the token that each row predicts, which only encoder-decoder attention in "
                "records, maps and alignments has; choose another kind"
            )
        return self._along(self.readout())

    def _along(self, directions: Tensor) -> Tensor:
        """α^h_ij f^h(x_j) · u_i for ``directions`` u, [B, T, D]: [B, H, T, S].

        f^h · u = v^h · (u W_h), so u is carried back to each head once, and no vector of the size D a pair is built.
        """
        back = torch.matmul(directions, self.weights.w_o)
        by_head = back.view(*back.shape[:2], self.weights.heads, -1).transpose(1, 2)
        return torch.matmul(by_head, self.values.permute(0, 2, 3, 1)).mul_(self.alpha)

    # ---- what a position takes from itself and from the others

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

    # ---- the steps after the attention

    def whole(self, stage: str) -> Tensor:
        """The model's own vector at ``stage``, biases included, [B, T, D]."""
        if stage == "attn":
            return self.output
        stream = self.residual + self.output
        if stage == "attnres":
            return stream
        stream = stream if self.weights.norm is None else self.weights.norm(stream)
        if stage == "attnresln":
            return stream
        network = self.weights.network
        output = functional.linear(network.activation(self._pre), network.w_2, network.b_2)
        if stage == "ff":
            return output
        stream = output + stream
        return stream if stage == "ffres" or network.final_norm is None else network.final_norm(stream)

    @cached_property
    def scale(self) -> Tensor | None:
        """s_i of the layer norm before the network, [B, T, 1]; None without that norm."""
        norm = self.weights.input_norm
        return None if norm is None else norm.scale(self.whole("attnres"))

    @cached_property
    def _pre(self) -> Tensor:
        norm, network, inputs = self.weights.input_norm, self.weights.network, self.whole("attnres")
        return functional.linear(inputs if norm is None else norm(inputs), network.w_1, network.b_1)

    @cached_property
    def ratio(self) -> Tensor:
        """g(p) / p of every unit, [B, T, F]; at p = 0 its limit g'(0)."""
        pre, activation = self._pre, self.weights.network.activation
        zero = torch.zeros(1, dtype=pre.dtype, device=pre.device, requires_grad=True)
        with torch.enable_grad():
            (slope,) = torch.autograd.grad(activation(zero).sum(), zero)
        return torch.where(pre == 0, slope, activation(pre) / torch.where(pre == 0, 1.0, pre))

    @cached_property
    def _final_scale(self) -> Tensor | None:
        norm = self.weights.network.final_norm
        return None if norm is None else norm.scale(self.whole("ffres"))

    def carry(self, vectors: Tensor, stage: str) -> Tensor:
        """Carry ``vectors`` [(B), ..., T, D] from the attention's output space to ``stage``."""
        return self._finish(self.weights.parts(vectors, stage), stage)

    def _finish(self, parts: Sequence[Tensor | None], stage: str) -> Tensor:
        """Divide :meth:`BlockWeights.parts` by the scales of this pass, which overwrites them, and sum: [..., T, D]."""
        stream, pre = parts
        if stream is not None and stage not in ("attn", "attnres"):
            stream = stream if self.weights.norm is None or self.scale is None else stream.div_(self.scale)
        if pre is None:
            assert stream is not None
            return stream
        ratio = self.ratio if self.scale is None else self.ratio / self.scale
        result = torch.matmul(pre.mul_(ratio), self.weights.network.w_2.t())
        result = result if stream is None else result.add_(stream)
        return self.final(result) if stage == "ffresln" else result

    def final(self, vectors: Tensor) -> Tensor:
        """The linear part of the layer norm after the network, if the block has this norm."""
        norm, scale = self.weights.network.final_norm, self._final_scale
        return vectors if norm is None or scale is None else norm.centred(vectors).div_(scale)

    def vectors(self, stage: str, chunk_bytes: int = VECTOR_CHUNK_BYTES) -> Iterator[Tensor]:
        """The vectors z_ij of one :meth:`sentence`, carried to ``stage``, in chunks of source positions: [s, T, D].

        In cross-attention, from stage ``attnres`` on, the residual follows as position S.  No tensor of T·S·D elements
        is built.  W_O and W_1 are multiplied once per head, so a pair of positions costs only the network's second
        projection (Kobayashi et al. 2024).
        """
        cross, (heads, target, source) = self.weights.cross, self.alpha.shape
        weights = self.weights.folded(stage)
        residual = (None, None) if stage == "attn" else self.weights.parts(self.residual, stage)
        width = max(len(self.weights.w_o), sum(weight.size(-1) for weight in weights if weight is not None))
        step = max(1, chunk_bytes // ((heads + 2 * target) * width * self.alpha.element_size()))
        for start in range(0, source, step):
            columns = slice(start, min(start + step, source))
            alpha = self.alpha[:, :, columns].permute(2, 1, 0)  # [s, T, H]
            values = self.values[columns].transpose(0, 1)  # [H, s, d]
            parts: list[Tensor | None] = [None, None]
            for number, (weight, own) in enumerate(zip(weights, residual)):
                if weight is not None:
                    part = torch.matmul(alpha, torch.bmm(values, weight).transpose(0, 1))  # [s, T, D or F]
                    if own is not None and not cross:
                        part.diagonal(offset=columns.start, dim1=0, dim2=1).add_(own[columns].t())
                    parts[number] = part
            yield self._finish(parts, stage)
        if cross and stage != "attn":
            yield self._finish([None if own is None else own[None] for own in residual], stage)
