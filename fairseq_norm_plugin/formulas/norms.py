"""The norms of Kobayashi et al. (2020, "Attention is Not Only a Weight") as functions on tensors.

Axes: B batch, H heads, T target positions, S source positions, d head dimension, D = H·d.
α is the attention weight after softmax and before dropout, v^h_j the value vector of source token j
in head h (bias included), W_h = W_O[:, h·d:(h+1)·d] the head's slice of the output projection (as in
``torch.nn.Linear.weight``), f^h(x_j) = W_h v^h_j the transformed vector.  The output bias belongs to
no source token and is omitted.  Norms are Euclidean, in the unit of the model's hidden states.

‖Σ_h α^h_ij f^h(x_j)‖² = Σ_hk α^h_ij α^k_ij G_j[h,k] with the Gram matrix G_j[h,k] = f^h(x_j)·f^k(x_j), one H×H
matrix per source token.  From its Cholesky factor, G_j = L_j L_jᵀ, the norm is ‖Σ_h α^h_ij L_j[h,:]‖: never negative,
and as accurate as the norm of the summed vectors.  (A stored Gram matrix would lose digits with the square of the
cancellation between heads.)  No tensor of B·T·S·D elements is built.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

#: Size of the temporary tensors of one chunk, in bytes: about the size of a core's caches.
CHUNK_BYTES = 2 * 2**20
# Added to the diagonal before factoring.  The first is relative to each head's own ‖f‖² (times H), so small heads are
# as accurate as large ones.  The second, relative to the sum over heads, is for matrices made indefinite by rounding.
_JITTER, _LAST_JITTER = 1e-15, 1e-12


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


def head_norms(alpha: Tensor, factor: Tensor) -> Tensor:
    """‖α^h_ij f^h(x_j)‖ = α^h_ij ‖f^h(x_j)‖, [B, H, T, S]: the norm of what a head takes from a source token.

    ``alpha`` are attention weights, [B, H, T, S]; ``factor`` is the :func:`gram_factor` of the values, [B, S, H, H].
    """
    return alpha * transformed_norms(factor)[:, :, None, :]


def layer_norms(alpha: Tensor, factor: Tensor, heads: Sequence[int] | None = None) -> Tensor:
    """‖Σ_h α^h_ij f^h(x_j)‖, [B, T, S]: the sum over heads (all, or the named ones), then the norm.

    ``alpha`` and ``factor`` are as for :func:`head_norms`.  Temporary tensors have the size of a chunk of
    :data:`CHUNK_BYTES`.
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
