"""Whether fairseq's layers compute what the maps' equations say; a fork may compute something else with the same names.

A tiny layer of each kind is run once, when the plugin is loaded, and compared with its equations.
"""

from __future__ import annotations

from typing import Any

import torch
from fairseq.models.transformer import TransformerConfig
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase
from torch import Tensor, nn

from alignment_eval.errors import InputError
from fairseq_norm_plugin.process import enough_threads

_WIDTH, _HEADS, _NETWORK = 8, 2, 12


def check_layers() -> None:
    """Compare fairseq's encoder and decoder layers, with norms after and before, with their equations."""
    with torch.random.fork_rng(devices=[]), torch.no_grad(), enough_threads([], 0):
        torch.manual_seed(1)
        for before in (False, True):
            for kind in (TransformerEncoderLayerBase, TransformerDecoderLayerBase):
                layer = kind(_config(before)).eval()
                for parameter in layer.parameters():
                    parameter.normal_()
                x, source = torch.randn(3, 1, _WIDTH), torch.randn(4, 1, _WIDTH)
                decodes = kind is TransformerDecoderLayerBase
                output = layer(x, source, None)[0] if decodes else layer(x, None)
                if not torch.allclose(output, _equations(layer, x, source if decodes else None), rtol=1e-3, atol=1e-4):
                    raise InputError(
                        f"fairseq's {kind.__name__} computes something else than attention, residual sums, layer norms "
                        f"and a network of fc1 and fc2, so maps would be wrong; install a fairseq without this change"
                    )


def _config(before: bool) -> TransformerConfig:
    config = TransformerConfig()
    for stack in (config.encoder, config.decoder):
        stack.embed_dim, stack.ffn_embed_dim, stack.attention_heads = _WIDTH, _NETWORK, _HEADS
        stack.normalize_before = before
    return config


def _equations(layer: Any, x: Tensor, source: Tensor | None) -> Tensor:
    def add(x: Tensor, norm: nn.Module, update: Any) -> Tensor:
        result: Tensor = x + update(norm(x)) if layer.normalize_before else norm(x + update(x))
        return result

    x = add(x, layer.self_attn_layer_norm, lambda x: _attention(layer.self_attn, x, x))
    if source is not None:
        x = add(x, layer.encoder_attn_layer_norm, lambda x: _attention(layer.encoder_attn, x, source))
    return add(x, layer.final_layer_norm, lambda x: layer.fc2(torch.relu(layer.fc1(x))))


def _attention(attention: Any, query: Tensor, memory: Tensor) -> Tensor:
    """Of [T, 1, D] to [S, 1, D]: the sum over heads and source positions of weights times values, projected."""
    q, k, v = (
        projection(x)[:, 0].view(len(x), _HEADS, -1).transpose(0, 1)
        for projection, x in ((attention.q_proj, query), (attention.k_proj, memory), (attention.v_proj, memory))
    )
    weights = torch.softmax(q @ k.transpose(1, 2) / q.size(-1) ** 0.5, dim=-1)
    projected: Tensor = attention.out_proj((weights @ v).transpose(0, 1).reshape(len(query), 1, -1))
    return projected
