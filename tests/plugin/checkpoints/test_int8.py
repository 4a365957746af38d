"""Products in 8 bits against the same sums in float64."""

import torch
from torch import nn

from fairseq_norm_plugin.checkpoints.build import Int8Linear


def slow_product(linear, inputs):
    """The product in float64, with weights in 127 steps of each output's largest, inputs in 63 of each token's."""
    weight, inputs = rounded(linear.weight.detach().double(), 127), rounded(inputs.double(), 63)
    return inputs @ weight.t() + linear.bias.detach().double()


def rounded(rows, steps):
    step = rows.abs().amax(dim=-1, keepdim=True) / steps
    return (rows / step).round() * step


def in_8_bits(inputs, outputs):
    linear = nn.Linear(inputs, outputs)
    linear.__class__ = Int8Linear
    linear.pack()
    return linear


@torch.no_grad()
def test_a_product_is_that_of_rounded_numbers_whatever_the_batch():
    torch.manual_seed(0)
    linear = in_8_bits(64, 48)
    inputs = torch.randn(5, 3, 64) * torch.logspace(-6, 6, 5)[:, None, None]  # tokens of any size
    found = linear(inputs)
    assert found.dtype == torch.float32
    expected = slow_product(linear, inputs)
    sizes = expected.abs().amax(dim=-1, keepdim=True)
    torch.testing.assert_close(found.double() / sizes, expected / sizes, rtol=0, atol=1e-6)
    for i in range(5):  # a token does not depend on its batch
        assert torch.equal(linear(inputs[i : i + 1, 1:]), found[i : i + 1, 1:])


def test_zeros_and_no_bias():
    linear = in_8_bits(8, 4)
    nn.init.zeros_(linear.weight)
    linear.pack()
    with torch.no_grad():
        torch.testing.assert_close(linear(torch.randn(2, 8)), linear.bias.expand(2, 4))
        torch.testing.assert_close(linear(torch.zeros(2, 8)), linear.bias.expand(2, 4))
        linear.bias = None
        assert not linear(torch.zeros(2, 8)).any()


@torch.no_grad()
def test_a_changed_tensor_is_scaled_again():
    torch.manual_seed(2)
    keys = in_8_bits(64, 48)
    inputs = torch.randn(5, 3, 64)
    before = keys(inputs)
    inputs[0] *= 3
    assert torch.equal(keys(inputs), keys(inputs.clone()))
    assert not torch.equal(keys(inputs)[0], before[0])
