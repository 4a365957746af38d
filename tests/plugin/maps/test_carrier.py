"""The steps after an attention, against integrals and sums."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

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
