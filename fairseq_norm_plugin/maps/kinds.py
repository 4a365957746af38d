"""The map kinds and mixing ratios of one block (docs/maps.md).

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

from collections.abc import Sequence

import torch
from torch import Tensor

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.block import Block, vectors
from fairseq_norm_plugin.maps.norms import head_norms, layer_norms, layer_weights
from fairseq_norm_plugin.maps.weights import STAGES

#: Kinds that are norms of vectors -> how far the vectors are carried (weights.STAGES).
NORM_KINDS = {f"{stage}_n": stage for stage in STAGES}
#: All kinds of block maps; rollout (rollout.py) multiplies them to maps of several blocks.
BLOCK_KINDS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n", "ff_n", "ffres_n", "ffresln_n", "alti")
#: Those with maps of single heads.
HEAD_KINDS = ("attn_w", "attn_n", "attnresln_n")
#: Kinds of mixing ratios: those of weights, and of vectors with a part of the token's own.
MIXING_KINDS = ("attn_w", "attn_n", "attnres_w", "attnres_n", "attnresln_n", "ff_n", "ffres_n", "ffresln_n")


def head_map(block: Block, kind: str) -> Tensor:
    """The maps of single heads of a batch, [B, H, T, S], of one of :data:`HEAD_KINDS`.

    ``attn_w`` and ``attn_n`` are those of 2020, ``attnresln_n`` that of 2021 without the residual.
    """
    if kind == "attn_w":
        return block.alpha
    if kind == "attn_n":
        return head_norms(block.alpha, block.factor)
    if kind == "attnresln_n":
        return _scaled(head_norms(block.alpha, block.norm_factor), block, heads=True)
    raise InputError(f"kind {kind!r} has no maps of single heads; choose one of {', '.join(HEAD_KINDS)}")


def layer_map(block: Block, kind: str) -> Tensor:
    """The map of the whole block of a batch, of one of :data:`BLOCK_KINDS` (the papers of the kinds: module docstring).

    It is [B, T, S]; [B, T, S + 1] for kinds with the residual in encoder-decoder attention.
    """
    if kind == "attn_w":
        return layer_weights(block.alpha)
    if kind == "attnres_w":
        weights = 0.5 * layer_weights(block.alpha)
        return _with_own(weights, torch.full_like(weights[..., 0], 0.5), block, add=True)
    if kind == "attn_n":
        return block.sum_norms
    if kind in ("attnres_n", "attnresln_n"):
        stage = NORM_KINDS[kind]
        if kind == "attnres_n":
            norms = block.sum_norms.clone()
        else:
            norms = _scaled(layer_norms(block.alpha, block.norm_factor), block)
        own = block.carrier.carry(block.own + block.residual, stage)
        return _with_own(norms, torch.linalg.vector_norm(own, dim=-1), block)
    if kind in NORM_KINDS:
        return torch.stack([_norms(block.sentence(b), NORM_KINDS[kind]) for b in range(len(block.alpha))])
    if kind == "alti":
        return torch.stack([_alti(block.sentence(b)) for b in range(len(block.alpha))])
    raise InputError(f"unknown map kind {kind!r}; choose one of {', '.join(BLOCK_KINDS)}")


def merged_map(block: Block, words: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Kind ``attn_n_merged``: ``attn_n`` with the vectors of a source word's subwords summed before the norm.

    The column of a word's first subword holds the word's norm, its other columns hold zeros.  So the sum over a word's
    columns, which merges the subwords of all kinds, gives this norm.  The block is of encoder-decoder attention;
    ``words`` gives for each sentence the word of each source token, from 0; -1 for a token that belongs to no word.

    Returns:
        Head maps [B, H, T, S] and layer map [B, T, S].
    """
    heads, layer = head_map(block, "attn_n").clone(), layer_map(block, "attn_n").clone()
    projection = block.weights.folded("attn")[0]
    assert projection is not None
    for b, numbers in enumerate(words):
        columns: dict[int, list[int]] = {}
        for column, word in enumerate(numbers):
            columns.setdefault(word, []).append(column)
        for word, of_word in columns.items():
            if word < 0 or len(of_word) == 1:
                continue
            transformed = torch.bmm(block.values[b, of_word].transpose(0, 1), projection)  # [H, subwords, D]
            summed = torch.bmm(block.alpha[b][:, :, of_word], transformed)  # [H, T, D]
            heads[b][:, :, of_word], layer[b][:, of_word] = 0.0, 0.0
            heads[b, :, :, of_word[0]] = torch.linalg.vector_norm(summed, dim=-1)
            layer[b, :, of_word[0]] = torch.linalg.vector_norm(summed.sum(0), dim=-1)
    return heads, layer


def mixing_ratio(block: Block, kind: str) -> Tensor:
    """The share of a position's new vector that comes from other positions (Kobayashi et al. 2021), [B, T].

    ‖Σ_{j≠i} z_ij‖ / (‖Σ_{j≠i} z_ij‖ + ‖own part‖), with the vectors carried to the stage of the kind, one of
    :data:`MIXING_KINDS`; 0 where both parts are 0.  The own part is what position i takes from itself and, depending on
    the kind, its residual; in encoder-decoder attention it is the residual only.
    """
    if kind in ("attn_w", "attnres_w"):
        own = (
            layer_weights(block.alpha).diagonal(dim1=-2, dim2=-1)
            if not block.weights.cross
            else 0.0 * block.alpha[:, 0, :, 0]
        )
        others = layer_weights(block.alpha).sum(-1) - own
        return others if kind == "attn_w" else 0.5 * others
    if kind not in MIXING_KINDS:
        raise InputError(f"kind {kind!r} has no mixing ratio; choose one of {', '.join(MIXING_KINDS)}")
    stage = NORM_KINDS[kind]
    own_vector = block.own if stage == "attn" else block.own + block.residual
    return _ratio(block.carrier.carry(block.others, stage), block.carrier.carry(own_vector, stage))


def head_mixing_ratio(block: Block, kind: str) -> Tensor:
    """The mixing ratio of each head of self-attention, for ``attn_w`` or ``attn_n`` (Kobayashi et al. 2021), [B, H, T].
    """
    own_alpha = block.alpha.diagonal(dim1=-2, dim2=-1)
    if kind == "attn_w":
        return block.alpha.sum(-1) - own_alpha
    if kind != "attn_n":
        raise InputError(f"kind {kind!r} has no mixing ratio of single heads; choose attn_w or attn_n")
    triangles = block.weights.head_triangles
    return _ratio(*(torch.einsum("hed,bthd->bhte", triangles, u) for u in (block.others_by_head, block.own_by_head)))


def _ratio(others: Tensor, own: Tensor) -> Tensor:
    others_norm, own_norm = torch.linalg.vector_norm(others, dim=-1), torch.linalg.vector_norm(own, dim=-1)
    total = others_norm + own_norm
    ratio: Tensor = others_norm / torch.where(total == 0, 1.0, total)
    return ratio


def _scaled(norms: Tensor, block: Block, heads: bool = False) -> Tensor:
    """``norms`` [B, (H,) T, S] divided by the layer norm's s_i."""
    if block.weights.norm is None:
        return norms
    scale = block.weights.norm.scale(block.residual + block.output)
    return norms / (scale[:, None] if heads else scale)


def _with_own(map_: Tensor, own: Tensor, block: Block, add: bool = False) -> Tensor:
    """``map_`` [B, T, S] with the own part [B, T]: as an extra column in cross-attention, else on the diagonal."""
    if block.weights.cross:
        return torch.cat([map_, own[..., None]], dim=-1)
    diagonal = map_.diagonal(dim1=-2, dim2=-1)
    diagonal.copy_(diagonal + own if add else own)
    return map_


def _norms(sentence: Block, stage: str) -> Tensor:
    parts = [torch.linalg.vector_norm(part, dim=-1) for _, part in vectors(sentence, stage)]
    return torch.cat(parts).t()


def _alti(sentence: Block) -> Tensor:
    """max(0, ‖y_i‖₁ − ‖y_i − T_i(x_j)‖₁), rows divided by their sum; y_i with all biases (Ferrando et al. 2022)."""
    whole = sentence.carrier.whole("attnresln")
    size = whole.abs().sum(-1)
    parts = [size - (whole - part).abs().sum(-1) for _, part in vectors(sentence, "attnresln")]
    contribution = torch.cat(parts).t().clamp_min(0.0)
    total = contribution.sum(dim=-1, keepdim=True)
    return contribution / torch.where(total == 0, 1.0, total)  # rows of zeros stay zero
