"""Activations that can be carried through."""

import pytest
import torch
from torch.nn import functional

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.kinds import layer_map
from fairseq_norm_plugin.maps.weights import check_activation
from tests.plugin.maps.blocks import random_block


def test_activations_without_a_closed_form_are_refused_by_name():
    def sigmoid(x):
        return torch.sigmoid(x)

    def softmax(x):
        return torch.softmax(x, -1)

    with pytest.raises(InputError, match=r"activation sigmoid .*0\.5.*relu, gelu"):
        check_activation(sigmoid)
    with pytest.raises(InputError, match=r"activation softmax .*elementwise"):
        check_activation(softmax)
    with pytest.raises(InputError, match=r"activation sigmoid"):
        layer_map(random_block(activation=sigmoid), "ff_n")
    for activation in (torch.relu, functional.gelu, functional.silu, torch.tanh, lambda x: x, lambda x: x.relu() ** 2):
        check_activation(activation)
