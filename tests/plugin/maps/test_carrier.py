"""The steps after an attention: linear, complete, and the closed form of the activation's shares."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.carrier import Carrier
from fairseq_norm_plugin.maps.weights import STAGES, BlockWeights, FeedForward
from tests.plugin.maps.blocks import bias_contribution, random_block


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("stage", STAGES)
def test_carrying_is_linear_and_complete(before, stage):
    torch.manual_seed(4)
    block = random_block(cross=True, before=before, activation=functional.gelu)
    carrier, weights = block.carrier, block.weights
    attended = block.output - weights.b_o
    halves = [0.25 * attended, 0.75 * attended]
    carried = [carrier.carry(half, stage) for half in halves]
    torch.testing.assert_close(sum(carried), carrier.carry(attended, stage))
    parts = [*carried, bias_contribution(block, stage)]
    if stage != "attn":
        parts.append(carrier.carry(block.residual, stage))
    torch.testing.assert_close(sum(parts), carrier.whole(stage))


@pytest.mark.parametrize("before", [False, True])
def test_carrying_leaves_its_input_alone(before):
    block = random_block(before=before)
    for stage in STAGES:
        vectors = block.own.clone()
        block.carrier.carry(vectors, stage)
        assert torch.equal(vectors, block.own), stage


@pytest.mark.parametrize("activation", [torch.relu, functional.gelu, functional.silu, torch.tanh])
def test_the_closed_form_is_integrated_gradients(activation):
    """Shares p_j g(p)/p against the integral that they stand for: p_j ∫ g'(t p) dt over t from 0 to 1 (midpoints)."""
    torch.manual_seed(0)
    block = random_block(cross=True, activation=activation).sentence(0)
    network, steps = block.weights.network, 20_000
    pre = functional.linear(block.carrier.whole("attnresln"), network.w_1, network.b_1)
    path = ((torch.arange(steps, dtype=torch.float64) + 0.5) / steps)[:, None, None] * pre
    path.requires_grad_()
    slope = torch.autograd.grad(activation(path).sum(), path)[0].mean(0)
    torch.testing.assert_close(block.carrier._ratio, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("activation", "slope"), [(torch.tanh, 1.0), (functional.gelu, 0.5), (functional.silu, 0.5), (torch.relu, 0.0)]
)
def test_where_the_parts_of_a_pre_activation_cancel_each_has_the_slope_at_zero(activation, slope):
    one, none = torch.ones(1, 1), torch.zeros(1)
    network = FeedForward(w_1=one, b_1=none, w_2=3 * one, b_2=none, activation=activation)
    weights = BlockWeights(one, none, heads=1, cross=True, feed_forward=network)
    part = torch.tensor([[[0.5]]])
    carrier = Carrier(weights, output=part, residual=-part)  # p = 0.5 - 0.5
    assert carrier.carry(part, "ff").item() == pytest.approx(3 * 0.5 * slope)
    assert carrier.carry(-part, "ffres").item() == pytest.approx(-3 * 0.5 * slope - 0.5)


def test_a_block_without_a_network_says_so():
    one = torch.ones(1, 1)
    carrier = Carrier(BlockWeights(one, None, heads=1, cross=False), one[None], one[None])
    for what in (carrier.whole, lambda stage: carrier.carry(one[None], stage)):
        with pytest.raises(InputError, match="this block has no feed-forward network"):
            what("ffres")
