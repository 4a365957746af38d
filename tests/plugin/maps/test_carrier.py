"""The closed form of the activation's shares.  test_block.py has the steps after an attention."""

import pytest
import torch
from torch.nn import functional

from fairseq_norm_plugin.maps.carrier import Carrier
from fairseq_norm_plugin.maps.weights import BlockWeights, FeedForward
from tests.plugin.maps.blocks import random_block


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
