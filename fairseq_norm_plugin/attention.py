"""Encoder-decoder attention that can be listened to, and its swap into a model that exists.

The swap changes the class of each decoder layer's ``encoder_attn`` and nothing else: same parameters, no
buffer, and the forward pass is fairseq's own, so outputs are bit-identical and checkpoints stay stock.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
from fairseq.models.nat import FairseqNATModel
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import TransformerDecoderLayer, TransformerDecoderLayerBase
from torch import Tensor, nn

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture import MapCapture
from fairseq_norm_plugin.norms import gram_factor, head_gram_basis

_FACTOR_KEY = "norm_factor"  # in the attention's incremental buffer, whose every entry fairseq reorders on dim 0


class NormAttention(MultiheadAttention):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's encoder-decoder attention, which hands α and the Gram factor to the ``captures`` attached to it."""

    layer_number: int  #: fairseq's, from 0
    captures: tuple[MapCapture[Any], ...]
    _basis: Optional[tuple[tuple[Any, ...], Tensor]]

    def forward(  # the signature is fairseq's
        self,
        query: Tensor,
        key: Optional[Tensor],
        value: Optional[Tensor],
        key_padding_mask: Optional[Tensor] = None,
        incremental_state: Optional[dict[str, dict[str, Optional[Tensor]]]] = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Optional[Tensor] = None,
        before_softmax: bool = False,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Optional[Tensor]]:
        """fairseq's forward; also feeds those of ``captures`` that want this layer."""
        captures = [capture for capture in self.captures if self.layer_number in capture.layers]
        listening = bool(captures) and not before_softmax
        output, weights = super().forward(
            query,
            key,
            value,
            key_padding_mask=key_padding_mask,
            incremental_state=incremental_state,
            need_weights=need_weights or listening,
            static_kv=static_kv,
            attn_mask=attn_mask,
            before_softmax=before_softmax,
            need_head_weights=need_head_weights or listening,
        )
        if not listening:
            return output, weights
        alpha = weights.transpose(0, 1)  # [B, H, T, S], float32 whatever the model's dtype
        factor = None
        if any(capture.needs_norms for capture in captures):
            factor = _share_values(self._factor(value, incremental_state), alpha.size(0))
        for capture in captures:
            capture.receive(self.layer_number, alpha, factor)
        if not need_weights:
            return output, None
        return output, weights if need_head_weights else weights.mean(dim=0)

    def _factor(
        self, value: Optional[Tensor], incremental_state: Optional[dict[str, dict[str, Optional[Tensor]]]]
    ) -> Tensor:
        """The Gram factor [B, S, H, H]: a function of the source alone, so it is built once a sentence."""
        if incremental_state is None:
            assert value is not None
            # v is computed a second time here, with the very numbers of the first
            projected = self.v_proj(value)  # [S, B, D]
            values = projected.view(*projected.shape[:2], self.num_heads, self.head_dim).transpose(0, 1)
            return gram_factor(values, self._gram_basis())
        buffer = self._get_input_buffer(incremental_state)
        factor: Optional[Tensor] = buffer.get(_FACTOR_KEY)
        if factor is None:
            values = buffer["prev_value"].transpose(1, 2)  # [B, H, S, d] → [B, S, H, d]
            factor = gram_factor(values, self._gram_basis())
            buffer[_FACTOR_KEY] = factor
            self._set_input_buffer(incremental_state, buffer)
        return factor

    def _gram_basis(self) -> Tensor:
        weight = self.out_proj.weight
        version = (weight.data_ptr(), weight._version, weight.dtype, weight.device)
        if self._basis is None or self._basis[0] != version:
            self._basis = (version, head_gram_basis(weight, self.num_heads))
        return self._basis[1]


def _share_values(factor: Tensor, batch: int) -> Tensor:
    """Repeat the factor where several hypotheses share one sentence's values (BART's beam-wise attention)."""
    return factor if factor.size(0) == batch else factor.repeat_interleave(batch // factor.size(0), dim=0)


def swap_attention(model: nn.Module) -> None:
    """Turn the encoder-decoder attention of every decoder layer of ``model`` into :class:`NormAttention`, in place.

    Raises:
        InputError: the model is no fairseq encoder-decoder Transformer with autoregressive decoder, or has
            an option that changes the sums; the text names it.
    """
    for number, layer in enumerate(_decoder_layers(model)):
        _check_layer(layer, number, model)
        attention = layer.encoder_attn
        attention.__class__ = NormAttention
        attention.layer_number = number
        attention.captures = ()
        attention._basis = None


def disable_encoder_fast_path(model: nn.Module) -> None:
    """Make fairseq 0.12.2's encoder take its ordinary path, in place; its main branch has no other.

    Its fast path calls a private torch function that torch 2 gave another signature ("Mask Type should be defined").
    """
    layer: Any
    for layer in model.modules():
        if hasattr(layer, "can_use_fastpath"):
            layer.can_use_fastpath = False


def restore_attention(model: nn.Module) -> None:
    """Undo :func:`swap_attention` (before TorchScript export, for example)."""
    for attention in norm_attentions(model):
        attention.__class__ = MultiheadAttention
        for name in ("layer_number", "captures", "_basis"):
            delattr(attention, name)


def norm_attentions(model: nn.Module) -> list[NormAttention]:
    """The swapped attention modules of ``model``, by layer."""
    return [module for module in model.modules() if isinstance(module, NormAttention)]


def _decoder_layers(model: Any) -> Any:
    name = type(model).__name__
    if isinstance(model, FairseqNATModel):
        raise InputError(f"model {name} decodes non-autoregressively: expected a left-to-right Transformer decoder")
    layers = getattr(getattr(model, "decoder", None), "layers", None)
    if layers is None or len(layers) == 0:
        raise InputError(
            f"model {name} has no decoder layers: expected a fairseq encoder-decoder Transformer (--arch transformer…)"
        )
    return layers


def _check_layer(layer: Any, number: int, model: nn.Module) -> None:
    where = f"model {type(model).__name__}, decoder layer {number}"
    if type(layer) not in (TransformerDecoderLayerBase, TransformerDecoderLayer):
        raise InputError(
            f"{where}: is a {type(layer).__name__}: expected fairseq's TransformerDecoderLayer; "
            f"recurrent and convolutional decoders have no such attention"
        )
    # NormFormer's options and merged self- and encoder-decoder attention: other sums than the maps' equations
    options = {
        "attn_ln": "--scale-attn",
        "c_attn": "--scale-heads",
        "ffn_layernorm": "--scale-fc",
        "w_resid": "--scale-resids",
    }
    for attribute, option in options.items():
        if getattr(layer, attribute, None) is not None:
            raise InputError(f"{where}: trained with {option}, which changes the sums that the maps decompose")
    if getattr(layer, "cross_self_attention", False):
        raise InputError(
            f"{where}: trained with --cross-self-attention: it has no encoder-decoder attention of its own"
        )
    attention = layer.encoder_attn
    if attention is None:
        raise InputError(f"{where}: has no encoder-decoder attention (--no-cross-attention): expected one a layer")
    if type(attention) not in (MultiheadAttention, NormAttention):
        raise InputError(
            f"{where}: its attention is a {type(attention).__name__}: expected fairseq's MultiheadAttention"
        )
    if attention.bias_k is not None or attention.add_zero_attn:
        raise InputError(f"{where}: its attention adds a key (add_bias_kv, add_zero_attn) that is no source token")
    if getattr(attention, "use_xformers", False):
        raise InputError(
            f"{where}: its attention runs in xFormers (--encoder-xformers-att-config), which keeps no weights"
        )
    weight = getattr(attention.out_proj, "weight", None)
    if not isinstance(weight, torch.Tensor) or weight.dim() != 2:
        raise InputError(
            f"{where}: the output projection is a {type(attention.out_proj).__name__} without a weight matrix: "
            f"expected a linear layer; use the checkpoint from before quantisation"
        )
