"""Rollout: multiplies the maps of single blocks to maps between a layer and the model's inputs.

Encoder: R_l = C_l R_{l−1} with R_0 = 1 (Abnar and Zuidema 2020).  Decoder (ALTI+, Ferrando et al. 2022b): each row of a
layer is divided among source tokens, P_l [T, S], and the target prefix, Q_l [T, T], with P_0 = 0 and Q_0 = 1.  D_l is
the map of self-attention; that of encoder-decoder attention has source columns X_l and a residual column r_l:

    P_l = X_l R + r_l ⊙ (D_l P_{l−1}),   Q_l = r_l ⊙ (D_l Q_{l−1}).

If the rows of every block's map sum to 1, so do those of R_l and of [P_l Q_l].  Maps are fractions.  Axes: B
batch, T target positions, S source positions.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def encoder_rollout(maps: Sequence[Tensor]) -> Tensor:
    """R of the last layer, [B, S, S], from the self-attention ``maps`` of all encoder layers, [B, S, S] each."""
    rollout = torch.eye(maps[0].size(-1), dtype=maps[0].dtype, device=maps[0].device).expand_as(maps[0])
    for map_ in maps:
        rollout = torch.matmul(map_, rollout)
    return rollout


def decoder_rollout(
    self_maps: Sequence[Tensor], cross_maps: Sequence[Tensor], encoder: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """P_l, [B, T, S], and Q_l, [B, T, T], of every decoder layer.

    ``self_maps`` are [B, T, T] each, ``cross_maps`` with the residual in the last column [B, T, S + 1] each, and
    ``encoder`` is :func:`encoder_rollout`.
    """
    prefix = torch.eye(self_maps[0].size(-1), dtype=encoder.dtype, device=encoder.device).expand_as(self_maps[0])
    source = torch.zeros_like(cross_maps[0][..., :-1])
    layers = []
    for self_map, cross_map in zip(self_maps, cross_maps):
        residual = cross_map[..., -1:]
        source = torch.matmul(cross_map[..., :-1], encoder) + residual * torch.matmul(self_map, source)
        prefix = residual * torch.matmul(self_map, prefix)
        layers.append((source, prefix))
    return layers
