"""fairseq's layers as blocks: which attentions there are, what is around each, and what is refused."""

import pytest
import torch
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import TransformerDecoderLayerBase, TransformerEncoderLayerBase

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import swap_attention
from fairseq_norm_plugin.capture.layers import (
    BLOCK_TYPES,
    DECODER_CROSS,
    DECODER_SELF,
    ENCODER_SELF,
    check_layers,
    mixing_positions,
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
    with pytest.raises(InputError, match=r"decoder layer 0.*--no-cross-attention"):
        site_of(model, DECODER_CROSS).check()


@pytest.mark.parametrize("block", BLOCK_TYPES)
def test_parameters_are_all_that_the_weights_are_made_of(build, block):
    """A cache of the weights is as fresh as these are."""
    site = site_of(build(swap=False), block)
    weights = site.weights()
    tensors = [weights.w_o, weights.b_o, weights.norm.weight, weights.norm.bias]
    if weights.feed_forward is not None:
        network = weights.feed_forward
        tensors += [network.w_1, network.b_1, network.w_2, network.b_2]
        tensors += [network.final_norm.weight, network.final_norm.bias]
    known = {parameter.data_ptr() for parameter in site.parameters()}
    assert {tensor.data_ptr() for tensor in tensors} <= known


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda layer: setattr(layer.self_attn, "bias_k", torch.zeros(1)), "add_bias_kv"),
        (lambda layer: setattr(layer.self_attn, "add_zero_attn", True), "add_zero_attn"),
        (lambda layer: setattr(layer.self_attn, "use_xformers", True), "xformers"),
        (lambda layer: setattr(layer, "self_attn", torch.nn.Identity()), "Identity.*MultiheadAttention"),
        (lambda layer: setattr(layer.self_attn, "out_proj", torch.nn.ReLU()), "ReLU.*weight matrix"),
    ],
)
def test_attentions_of_other_sums_are_refused_by_name(build, change, named):
    model = build(swap=False)
    change(model.encoder.layers[1])
    site_of(model, ENCODER_SELF, 0).check()
    with pytest.raises(InputError, match=f"(?i)model TransformerModel, encoder layer 1: .*{named}"):
        site_of(model, ENCODER_SELF, 1).check()


def test_a_norm_without_weights_is_refused_when_it_is_needed(build):
    model = build(swap=False)
    model.decoder.layers[0].encoder_attn_layer_norm = torch.nn.Identity()
    with pytest.raises(InputError, match=facts("decoder layer 0 … Identity … attn_w and attn_n")):
        site_of(model, DECODER_CROSS).weights()


def test_positions_that_have_something_to_mix():
    real = torch.tensor([[0, 1, 1, 1], [1, 0, 0, 0], [1, 1, 0, 0]], dtype=torch.bool)
    assert torch.equal(mixing_positions(DECODER_CROSS, real), real)
    alone = real & torch.tensor([[True], [False], [True]])  # the second sentence has one position
    assert torch.equal(mixing_positions(ENCODER_SELF, real), alone)
    first = torch.tensor([[0, 1, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]], dtype=torch.bool)
    assert torch.equal(mixing_positions(DECODER_SELF, real), real & ~first)


def gated(layer):
    """A GLU without fc1, as some forks have it."""
    layer.gate, layer.up = layer.fc1, torch.nn.Linear(16, 24)
    del layer.fc1


def wide(layer):
    """A GLU whose gate and input are one matrix."""
    layer.fc1 = torch.nn.Linear(16, 48)


def rotated(layer):
    layer.encoder_attn.q_norm = torch.nn.LayerNorm(4)


class RotaryAttention(MultiheadAttention):
    """Another attention under another name."""


def replaced(layer):
    layer.encoder_attn.__class__ = RotaryAttention


class RMSNorm(torch.nn.LayerNorm):
    """Another norm under another name."""


def normed(layer):
    layer.final_layer_norm.__class__ = RMSNorm


@pytest.mark.parametrize(
    ("fork", "named"),
    [
        (normed, "final_layer_norm is a RMSNorm"),
        (gated, "gate.weight"),
        (wide, "fc1 and fc2"),
        (rotated, "q_norm.weight"),
        (replaced, "RotaryAttention"),
    ],
)
def test_a_layer_of_a_fork_is_refused_by_what_differs(build, fork, named):
    model = build(swap=False)
    fork(model.decoder.layers[1])
    with pytest.raises(InputError, match=f"decoder layer 1: .*{named}"):
        swap_attention(model)


@pytest.mark.parametrize("kind", [TransformerEncoderLayerBase, TransformerDecoderLayerBase])
def test_layers_that_compute_something_else_under_the_same_names_are_refused(monkeypatch, kind):
    state = torch.get_rng_state()
    check_layers()
    assert torch.equal(torch.get_rng_state(), state)  # training and sampling go on as without the plugin
    monkeypatch.setattr(kind, "residual_connection", lambda layer, x, residual: x + 0.9 * residual)
    with pytest.raises(InputError, match=kind.__name__):
        check_layers()
