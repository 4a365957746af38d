"""The vectors of a block: those of slow loops, complete, and what fairseq's modules give."""

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.formulas.block import STAGES, Block, BlockWeights, FeedForward
from tests.plugin.formulas.blocks import bias_contribution, capture_blocks, random_block, slow_vectors


def module_at(layer, block):
    """Stages of a block, and the module of the layer whose output, or else first input, is the vector there."""
    cross = block == DECODER_CROSS
    yield "attn", layer.encoder_attn if cross else layer.self_attn, True
    if not layer.normalize_before:
        norm = layer.encoder_attn_layer_norm if cross else layer.self_attn_layer_norm
        yield "attnres", norm, False
        yield "attnresln", norm, True
    if block == DECODER_SELF:
        return
    if layer.normalize_before:
        yield "attnres", layer.final_layer_norm, False
        yield "attnresln", layer.final_layer_norm, False
        yield "ffres", layer, True
    else:
        yield "ffres", layer.final_layer_norm, False
    yield "ff", layer.fc2, True
    yield "ffresln", layer, True


def blocks_and_module_outputs(model, sample):
    """The blocks of the first layers, and what the model's own modules give there: {(block, stage): [B, T, D]}."""
    found = {}

    def keep(key, is_output):
        def hook(module, inputs, result):
            value = result if is_output else inputs[0]
            value = value[0] if isinstance(value, tuple) else value
            found[key] = value.detach().transpose(0, 1)

        return hook

    for stack, block in ((model.encoder, ENCODER_SELF), (model.decoder, DECODER_SELF), (model.decoder, DECODER_CROSS)):
        for stage, module, is_output in module_at(stack.layers[0], block):
            module.register_forward_hook(keep((block, stage), is_output))
    return capture_blocks(model, sample), found


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_accurate", "tanh", "linear"])
def test_complete_and_equal_to_slow_loops_on_a_fairseq_model(build, make_sample, before, activation):
    model = build(encoder_layers=1, decoder_layers=1, before=before, activation_fn=activation).double()
    sample = make_sample([(3, 2), (2, 3)])
    blocks, outputs = blocks_and_module_outputs(model, sample)
    for (type_, _), block in blocks.items():
        for stage in STAGES if block.weights.feed_forward else STAGES[:3]:
            whole = block.whole(stage)
            if not (type_ == DECODER_SELF and before and stage != "attn"):  # no module of its own gives that
                torch.testing.assert_close(whole, outputs[type_, stage], rtol=1e-9, atol=1e-11)
            for b in range(2):
                sentence = block.sentence(b)
                slow = slow_vectors(sentence, stage)
                fast = torch.cat(list(sentence.vectors(stage, chunk_bytes=1)))
                scale = slow.norm(dim=-1).sum(0).clamp_min(1e-3)
                assert ((fast - slow).norm(dim=-1) / scale).max() < 1e-12, (type_, stage)
                biases = bias_contribution(sentence, stage)
                total, terms = fast.sum(0) + biases, scale + biases.norm(dim=-1)
                assert ((total - whole[b]).norm(dim=-1) / terms).max() < 1e-10, (type_, stage)


def test_a_factor_that_is_known_is_taken_and_a_sentence_makes_its_own():
    """In incremental decoding it is built once a sentence, whatever the number of steps."""
    block = random_block(cross=True)
    known = replace(block, known_factor=2 * block.factor)
    torch.testing.assert_close(known.sum_norms, 2 * block.sum_norms)
    torch.testing.assert_close(known.sentence(0).factor, block.factor[0])


@pytest.mark.parametrize("cross", [False, True])
def test_temporaries_are_as_large_as_a_chunk(cross, largest_tensor):
    block = random_block(cross, target=24, source=24).sentence(0)
    for stage in STAGES:
        for _ in block.vectors(stage):  # what is computed once a pass and kept
            pass
        with largest_tensor() as largest:
            for _ in block.vectors(stage, chunk_bytes=40_000):
                pass
        assert largest.bytes <= 40_000, stage


@pytest.mark.parametrize("activation", [torch.relu, functional.gelu, functional.silu, torch.tanh])
def test_the_closed_form_is_integrated_gradients(activation):
    """Shares p_j g(p)/p against the integral that they stand for: p_j ∫ g'(t p) dt over t from 0 to 1 (midpoints)."""
    torch.manual_seed(0)
    block = random_block(cross=True, activation=activation).sentence(0)
    network, steps = block.weights.network, 20_000
    pre = functional.linear(block.whole("attnresln"), network.w_1, network.b_1)
    path = ((torch.arange(steps, dtype=torch.float64) + 0.5) / steps)[:, None, None] * pre
    path.requires_grad_()
    slope = torch.autograd.grad(activation(path).sum(), path)[0].mean(0)
    torch.testing.assert_close(block.ratio, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("activation", "slope"), [(torch.tanh, 1.0), (functional.gelu, 0.5), (functional.silu, 0.5), (torch.relu, 0.0)]
)
def test_where_the_parts_of_a_pre_activation_cancel_each_has_the_slope_at_zero(activation, slope):
    one, none = torch.ones(1, 1), torch.zeros(1)
    network = FeedForward(w_1=one, b_1=none, w_2=3 * one, b_2=none, activation=activation)
    weights = BlockWeights(one, none, heads=1, cross=True, feed_forward=network)
    part = torch.tensor([[[0.5]]])
    block = Block(weights, part, part, output=part, residual=-part)  # p = 0.5 - 0.5
    assert block.carry(part, "ff").item() == pytest.approx(3 * 0.5 * slope)
    assert block.carry(-part, "ffres").item() == pytest.approx(-3 * 0.5 * slope - 0.5)
