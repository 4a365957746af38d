"""The functions of the map kinds: maps and mixing ratios of one block, and rollout over blocks (docs/maps.md).

The kinds themselves are rows of :mod:`alignment_eval.maps.sentence`; :data:`LAYER_MAPS`, :data:`HEAD_MAPS` and the
others say how each is computed.

======================================= ======================================================================
``attn_w``                              α (baseline)
``attn_n``                              ‖α f(x)‖ (Kobayashi et al. 2020)
``attnres_w``                           0.5·α + 0.5 at the own position (Abnar and Zuidema 2020; baseline)
``attnres_n``, ``attnresln_n``          with the residual connection, and the layer norm (Kobayashi et al. 2021)
``ff_n``, ``ffres_n``, ``ffresln_n``    through the feed-forward network (Kobayashi et al. 2024)
``alti``                                contribution of Ferrando et al. (2022), rows normalised to 1
======================================= ======================================================================

Norms are in the unit of the model's hidden states; ``attn_w``, ``attnres_w``, ``alti`` and mixing ratios are fractions.
Axes as in block.py.  In encoder-decoder attention, kinds with the residual have an extra last column for the target's
own part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor

from alignment_eval.errors import InputError
from fairseq_norm_plugin.formulas.block import Block, layer_norms, layer_weights, transformed_norms

#: A map or a mixing ratio of a block, for every sentence of a batch.
MapFunction = Callable[[Block], Tensor]


def head_map(block: Block, kind: str) -> Tensor:
    """The maps of single heads of a batch, [B, H, T, S]."""
    return _of_kind(HEAD_MAPS, kind, "maps of single heads")(block)


def layer_map(block: Block, kind: str) -> Tensor:
    """The map of the whole block of a batch (the papers of the kinds: module docstring).

    It is [B, T, S]; [B, T, S + 1] for kinds with the residual in encoder-decoder attention.
    """
    return _of_kind(LAYER_MAPS, kind, "map of a block")(block)


def mixing_ratio(block: Block, kind: str) -> Tensor:
    """The share of a position's new vector that comes from other positions (Kobayashi et al. 2021), [B, T].

    ‖Σ_{j≠i} z_ij‖ / (‖Σ_{j≠i} z_ij‖ + ‖own part‖), with the vectors carried to the stage of the kind; 0 where both
    parts are 0.  The own part is what position i takes from itself and, depending on the kind, its residual; in
    encoder-decoder attention it is the residual only.
    """
    return _of_kind(MIXING_RATIOS, kind, "mixing ratio")(block)


def head_mixing_ratio(block: Block, kind: str) -> Tensor:
    """The mixing ratio of each head of self-attention (Kobayashi et al. 2021), [B, H, T]."""
    return _of_kind(HEAD_MIXING_RATIOS, kind, "mixing ratio of single heads")(block)


def _of_kind(functions: Mapping[str, MapFunction], kind: str, what: str) -> MapFunction:
    if kind not in functions:
        raise InputError(f"kind {kind!r} has no {what}; choose one of {', '.join(functions)}")
    return functions[kind]


# ---- maps


def _head_norms(block: Block, factor: Tensor) -> Tensor:
    """‖α^h_ij f^h(x_j)‖ = α^h_ij ‖f^h(x_j)‖, [B, H, T, S]: the norm of what a head takes from a source token."""
    return block.alpha * transformed_norms(factor)[:, :, None, :]


def _attnres_w(block: Block) -> Tensor:
    weights = 0.5 * layer_weights(block.alpha)
    return _with_own(weights, torch.full_like(weights[..., 0], 0.5), block, add=True)


def _with_residual(block: Block, norms: Tensor, stage: str) -> Tensor:
    own = block.carry(block.own + block.residual, stage)
    return _with_own(norms, torch.linalg.vector_norm(own, dim=-1), block)


def _with_own(map_: Tensor, own: Tensor, block: Block, add: bool = False) -> Tensor:
    """``map_`` [B, T, S] with the own part [B, T]: as an extra column in cross-attention, else on the diagonal."""
    if block.weights.cross:
        return torch.cat([map_, own[..., None]], dim=-1)
    diagonal = map_.diagonal(dim1=-2, dim2=-1)
    diagonal.copy_(diagonal + own if add else own)
    return map_


def _scaled(norms: Tensor, block: Block, heads: bool = False) -> Tensor:
    """``norms`` [B, (H,) T, S] divided by the layer norm's s_i."""
    if block.weights.norm is None or block.scale is None:
        return norms
    return norms / (block.scale[:, None] if heads else block.scale)


def _ff_norms(stage: str, block: Block) -> Tensor:
    """The norms of vectors that are carried through the feed-forward network."""
    sentences = (block.sentence(b).vectors(stage) for b in range(len(block.alpha)))
    return torch.stack(
        [torch.cat([torch.linalg.vector_norm(part, dim=-1) for part in parts]).t() for parts in sentences]
    )


def _alti(block: Block) -> Tensor:
    """max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), rows divided by their sum; y_i with all biases (Ferrando et al. 2022)."""
    maps = []
    for sentence in map(block.sentence, range(len(block.alpha))):
        whole = sentence.whole("attnresln")
        size = whole.abs().sum(-1)
        parts = [size - (whole - part).abs().sum(-1) for part in sentence.vectors("attnresln")]
        contribution = torch.cat(parts).t().clamp_min(0.0)
        total = contribution.sum(dim=-1, keepdim=True)
        maps.append(contribution / torch.where(total == 0, 1.0, total))  # rows of zeros stay zero
    return torch.stack(maps)


# ---- mixing ratios


def _mixing_w(block: Block) -> Tensor:
    weights = layer_weights(block.alpha)
    own = 0.0 * block.alpha[:, 0, :, 0] if block.weights.cross else weights.diagonal(dim1=-2, dim2=-1)
    return weights.sum(-1) - own


def _mixing_n(stage: str, block: Block) -> Tensor:
    own = block.own if stage == "attn" else block.own + block.residual
    return _ratio(block.carry(block.others, stage), block.carry(own, stage))


def _mixing_n_heads(block: Block) -> Tensor:
    triangles = block.weights.head_triangles
    return _ratio(*(torch.einsum("hed,bthd->bhte", triangles, u) for u in (block.others_by_head, block.own_by_head)))


def _ratio(others: Tensor, own: Tensor) -> Tensor:
    others_norm, own_norm = torch.linalg.vector_norm(others, dim=-1), torch.linalg.vector_norm(own, dim=-1)
    total = others_norm + own_norm
    ratio: Tensor = others_norm / torch.where(total == 0, 1.0, total)
    return ratio


#: Kind -> the map of the whole block: [B, T, S], with the own part as in :func:`layer_map`.
LAYER_MAPS: dict[str, MapFunction] = {
    "attn_w": lambda block: layer_weights(block.alpha),
    "attn_n": lambda block: block.sum_norms,
    "attn_p": lambda block: block.projections.sum(1).clamp_min_(0),
    "attn_logit": lambda block: block.logits.sum(1).clamp_min_(0),
    "attnres_w": _attnres_w,
    "attnres_n": lambda block: _with_residual(block, block.sum_norms.clone(), "attnres"),
    "attnresln_n": lambda block: _with_residual(
        block, _scaled(layer_norms(block.alpha, block.norm_factor), block), "attnresln"
    ),
    "ff_n": partial(_ff_norms, "ff"),
    "ffres_n": partial(_ff_norms, "ffres"),
    "ffresln_n": partial(_ff_norms, "ffresln"),
    "alti": _alti,
}
#: Kind -> the maps of single heads: [B, H, T, S].
HEAD_MAPS: dict[str, MapFunction] = {
    "attn_w": lambda block: block.alpha,
    "attn_n": lambda block: _head_norms(block, block.factor),
    "attn_p": lambda block: block.projections.clamp_min(0),
    "attn_logit": lambda block: block.logits.clamp_min(0),
    # the maps of 2021, without the residual
    "attnresln_n": lambda block: _scaled(_head_norms(block, block.norm_factor), block, heads=True),
}
#: Kind -> the mixing ratio of the block: [B, T].
MIXING_RATIOS: dict[str, MapFunction] = {
    "attn_w": _mixing_w,
    "attn_n": partial(_mixing_n, "attn"),
    "attnres_w": lambda block: 0.5 * _mixing_w(block),
    "attnres_n": partial(_mixing_n, "attnres"),
    "attnresln_n": partial(_mixing_n, "attnresln"),
    "ff_n": partial(_mixing_n, "ff"),
    "ffres_n": partial(_mixing_n, "ffres"),
    "ffresln_n": partial(_mixing_n, "ffresln"),
}
#: Kind -> the mixing ratio of each head of self-attention: [B, H, T].
HEAD_MIXING_RATIOS: dict[str, MapFunction] = {
    "attn_w": lambda block: block.alpha.sum(-1) - block.alpha.diagonal(dim1=-2, dim2=-1),
    "attn_n": _mixing_n_heads,
}


# ---- rollout: the maps of single blocks, multiplied to maps between a layer and the model's inputs


def encoder_rollout(maps: Sequence[Tensor]) -> Tensor:
    """R_l = C_l R_{l−1} with R_0 = 1 of the last layer, from the self-attention ``maps`` C of all, [B, S, S] each.

    (Abnar and Zuidema 2020).  If the rows of every block's map sum to 1, so do those of R_l.
    """
    rollout = torch.eye(maps[0].size(-1), dtype=maps[0].dtype, device=maps[0].device).expand_as(maps[0])
    for map_ in maps:
        rollout = torch.matmul(map_, rollout)
    return rollout


def decoder_rollout(self_maps: Sequence[Tensor], cross_maps: Sequence[Tensor], encoder: Tensor) -> list[Tensor]:
    """P_l, [B, T, S], of every decoder layer: what comes from source tokens (ALTI+, Ferrando et al. 2022b).

    The rest of a row comes from the target prefix.  ``self_maps`` are D_l, [B, T, T]; ``cross_maps`` are X_l with the
    residual r_l in the last column, [B, T, S + 1]; ``encoder`` is R, :func:`encoder_rollout`; P_0 = 0:

        P_l = X_l R + r_l ⊙ (D_l P_{l−1}).
    """
    source = torch.zeros_like(cross_maps[0][..., :-1])
    layers = []
    for self_map, cross_map in zip(self_maps, cross_maps):
        source = torch.matmul(cross_map[..., :-1], encoder) + cross_map[..., -1:] * torch.matmul(self_map, source)
        layers.append(source)
    return layers
