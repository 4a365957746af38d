import math
from types import SimpleNamespace

import pytest
import torch

from alignment_eval.extraction.method import MapName, MapNames
from fairseq_norm_plugin.hooks.criterion import GuidedAlignmentCriterion, map_loss

B, H, T, S = 2, 3, 4, 5
# (sentence, source, target): source 1 and 2 of target 0, source 4 of target 2, source 0 of target 1
LINKS = [(0, 1, 0), (0, 2, 0), (0, 4, 2), (1, 0, 1)]
SHARES = [0.5, 0.5, 1.0, 1.0]


@pytest.fixture
def weights():
    return torch.softmax(torch.randn(B, H, T, S, dtype=torch.float64, generator=torch.manual_seed(1)), dim=-1)


@pytest.fixture
def sample():
    return {
        "alignments": torch.tensor([[i, b * T + j] for b, i, j in LINKS]),
        "align_weights": torch.tensor(SHARES, dtype=torch.float64),
    }


@pytest.mark.parametrize(("name", "down"), [(MapName(0, 1, "awi"), 1), (MapName(0, 1), 1), (MapName(0, 1, "awo"), 0)])
def test_the_loss_is_that_of_the_row_of_the_setting(weights, sample, name, down):
    expected = -sum(w * math.log(weights[b, 1, j + down, i]) for (b, i, j), w in zip(LINKS, SHARES))
    assert map_loss(weights, name, sample).item() == pytest.approx(expected, rel=1e-12)


def test_a_whole_layer_is_the_mean_of_its_heads(weights, sample):
    mean = weights.mean(dim=1, keepdim=True)
    assert map_loss(weights, MapName(0), sample) == map_loss(mean, MapName(0, 0), sample)


def test_weights_of_zero_give_a_finite_loss(weights, sample):
    none = torch.zeros_like(weights).requires_grad_()
    loss = map_loss(none, MapName(0, 0), sample)
    loss.backward()
    assert loss.item() == pytest.approx(-math.log(1e-9) * sum(SHARES))
    assert torch.isfinite(none.grad).all()


def test_the_losses_of_several_maps_are_averaged(weights, sample):
    names, layers = MapNames("0.1:awi,1.0:awo"), [weights, weights.flip(1)]
    criterion = SimpleNamespace(_maps=names, _guided=SimpleNamespace(layers=(0, 1), take=lambda: layers))
    losses = [map_loss(of, name, sample).item() for of, name in zip(layers, names)]
    found = GuidedAlignmentCriterion.compute_alignment_loss(criterion, sample, None)
    assert found.item() == pytest.approx(sum(losses) / 2)
