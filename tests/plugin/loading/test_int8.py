"""Products in 8 bits against the same sums in float64."""

import torch
from torch import nn

from fairseq_norm_plugin.loading.int8 import Int8Linear


def slow_product(linear, inputs):
    """The product with weights rounded to 127 steps of each output's largest, and exact inputs."""
    weight = linear.weight.detach().double()
    steps = weight.abs().amax(dim=1, keepdim=True) / 127
    return inputs.double() @ ((weight / steps).round() * steps).t() + linear.bias.double()


def test_a_product_is_that_of_rounded_weights():
    torch.manual_seed(0)
    linear = nn.Linear(64, 48)
    inputs = torch.randn(5, 3, 64)
    expected = slow_product(linear, inputs).detach()
    linear.__class__ = Int8Linear
    linear.pack()
    with torch.no_grad():
        found = linear(inputs)
    # inputs are rounded to 127 steps of their whole range, so each is wrong by half a step at most
    step = float(inputs.max() - inputs.min()) / 127
    bound = 0.5 * step * linear.weight.detach().double().abs().sum(dim=1)
    assert found.shape == (5, 3, 48)
    assert found.dtype == torch.float32
    assert bool(((found - expected).abs() <= bound * 1.01).all())
    assert float((found - expected).abs().max()) > 0


def test_weights_of_zero():
    linear = nn.Linear(8, 4)
    nn.init.zeros_(linear.weight)
    linear.__class__ = Int8Linear
    linear.pack()
    with torch.no_grad():
        torch.testing.assert_close(linear(torch.randn(2, 8)), linear.bias.expand(2, 4))
