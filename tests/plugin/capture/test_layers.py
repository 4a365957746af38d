"""fairseq's layers as blocks: which attentions there are, what is around each, and what is refused."""

import pytest
import torch
from fairseq.modules import MultiheadAttention

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import (
    BLOCK_TYPES,
    DECODER_CROSS,
    DECODER_SELF,
    sites,
)
from tests.facts import facts


def site_of(model, block, number=0):
    return next(site for site in sites(model) if (site.block, site.number) == (block, number))


def test_all_layers_are_found_in_training_with_layer_drop(build):
    """Iterating over fairseq's list of layers leaves some out then."""
    model = build(swap=False, encoder_layerdrop=0.9, decoder_layerdrop=0.9).train()
    assert sum(1 for _ in sites(model)) == 2 + 2 * 3


def test_the_network_follows_self_attention_in_a_decoder_without_encoder_attention(build):
    model = build(swap=False, no_cross_attention=True)
    assert site_of(model, DECODER_SELF).weights().feed_forward is not None
    assert "--no-cross-attention" in site_of(model, DECODER_CROSS).problem()


@pytest.mark.parametrize("block", BLOCK_TYPES)
def test_parameters_are_all_that_the_weights_are_made_of(build, block):
    """A cache of the weights is as fresh as these are."""
    site = site_of(build(swap=False), block)
    weights, network = site.weights(), site.weights().feed_forward
    tensors = [weights.w_o, weights.b_o, weights.norm.weight, weights.norm.bias]
    if network is not None:
        tensors += [network.w_1, network.b_1, network.w_2, network.b_2]
        tensors += [network.final_norm.weight, network.final_norm.bias]
    known = {parameter.data_ptr() for parameter in site.parameters()}
    assert {tensor.data_ptr() for tensor in tensors} <= known


# -- what the maps' equations do not say is refused by what differs


@pytest.mark.parametrize("option", ["scale_attn", "scale_heads", "scale_fc", "scale_resids"])
def test_options_that_change_the_sums(build, option):
    with pytest.raises(InputError, match=facts(f"TransformerModel … decoder layer 0 … --{option.replace('_', '-')}")):
        swap_attention(build(swap=False, **{option: True}))


class RotaryAttention(MultiheadAttention):
    """Another attention under another name."""


class RMSNorm(torch.nn.LayerNorm):
    """Another norm under another name."""


def without_fc1(layer):
    """A GLU of three matrices, as some forks have it; others have both of the first in ``fc1``."""
    layer.gate, layer.up = layer.fc1, torch.nn.Linear(16, 24)
    del layer.fc1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda layer: setattr(layer.encoder_attn, "bias_k", torch.zeros(1)), "add_bias_kv"),
        (lambda layer: setattr(layer.encoder_attn, "add_zero_attn", True), "add_zero_attn"),
        (lambda layer: setattr(layer.encoder_attn, "use_xformers", True), "xformers"),
        (lambda layer: setattr(layer, "encoder_attn", torch.nn.Identity()), "Identity … MultiheadAttention"),
        (lambda layer: setattr(layer.encoder_attn, "out_proj", torch.nn.ReLU()), "ReLU … weight matrix"),
        (lambda layer: setattr(layer.encoder_attn, "__class__", RotaryAttention), "RotaryAttention"),
        (lambda layer: setattr(layer.encoder_attn, "q_norm", torch.nn.LayerNorm(4)), "q_norm.weight"),
        (lambda layer: setattr(layer.final_layer_norm, "__class__", RMSNorm), "final_layer_norm is a RMSNorm"),
        (lambda layer: setattr(layer, "fc1", torch.nn.Linear(16, 40)), "fc1 and fc2"),
        (lambda layer: setattr(layer, "fc1", torch.nn.Linear(16, 48)), "gated (SwiGLU, GEGLU) … fc1 and fc2"),
        (without_fc1, "gated (SwiGLU, GEGLU)"),
    ],
)
def test_a_layer_of_other_parts(build, change, named):
    model = build(swap=False)
    change(model.decoder.layers[1])
    with pytest.raises(InputError, match=facts(f"model TransformerModel, decoder layer 1: … {named}")):
        swap_attention(model)


def test_a_norm_without_weights_is_refused_when_it_is_needed(build):
    model = build(swap=False)
    model.decoder.layers[0].encoder_attn_layer_norm = torch.nn.Identity()
    with pytest.raises(InputError, match=facts("decoder layer 0 … Identity … attn_w and attn_n")):
        site_of(model, DECODER_CROSS).weights()
