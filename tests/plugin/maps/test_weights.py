"""The parameters of a block, and what follows from them alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from alignment_eval.errors import InputError
from fairseq_norm_plugin.maps.kinds import layer_map
from fairseq_norm_plugin.maps.norms import head_gram_basis
from fairseq_norm_plugin.maps.weights import STAGES, Norm, check_activation
from tests.plugin.maps.blocks import random_block


def test_a_norm_is_torchs_layer_norm_and_its_linear_part_with_scale_and_bias():
    torch.manual_seed(0)
    vectors, weight, bias = (torch.randn(*shape, dtype=torch.float64) for shape in ((2, 3, 5), (5,), (5,)))
    norm = Norm(weight, bias, 0.1)
    expected = functional.layer_norm(vectors, (5,), weight, bias, eps=0.1)
    torch.testing.assert_close(norm(vectors), expected)
    torch.testing.assert_close(norm.centred(vectors) / norm.scale(vectors) + bias, expected)
    assert norm.scale(vectors).shape == (2, 3, 1)


@pytest.mark.parametrize("before", [False, True])
def test_projections_folded_per_head_are_those_of_each_heads_vectors(before):
    torch.manual_seed(1)
    weights, values = random_block(before=before).weights, torch.randn(4, 3, 5, dtype=torch.float64)
    for head in range(3):
        vectors = values[:, head] @ weights.w_o[:, 5 * head : 5 * head + 5].t()
        for stage in STAGES:
            images = weights.stream(vectors, stage), weights.pre_activation(vectors, stage)
            for folded, image in zip(weights.folded(stage), images):
                assert (folded is None) == (image is None), stage
                if image is not None:
                    torch.testing.assert_close(values[:, head] @ folded[head], image)
    assert [weights.folded(stage)[0] is None for stage in STAGES] == [False] * 3 + [True] + [False] * 2
    assert [weights.folded(stage)[1] is None for stage in STAGES] == [True] * 3 + [False] * 3


def test_triangles_keep_the_norms_of_each_heads_vectors():
    torch.manual_seed(2)
    weights, values = random_block().weights, torch.randn(4, 3, 5, dtype=torch.float64)
    for head in range(3):
        vectors = values[:, head] @ weights.w_o[:, 5 * head : 5 * head + 5].t()
        short = values[:, head] @ weights.head_triangles[head].t()
        assert short.shape == (4, 5)
        torch.testing.assert_close(short.norm(dim=-1), vectors.norm(dim=-1))


def test_the_norm_is_part_of_its_gram_basis_in_post_norm_layers_only():
    weights = random_block().weights
    normed = torch.stack([weights.norm.centred(column) for column in weights.w_o.t()], dim=1)
    torch.testing.assert_close(weights.norm_gram_basis, head_gram_basis(normed, 3))
    before = random_block(before=True).weights
    assert before.norm_gram_basis is before.gram_basis
    assert before.input_norm is before.feed_forward.norm
    assert weights.input_norm is weights.norm
    assert replace(before, feed_forward=None).input_norm is None


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
