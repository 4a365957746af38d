"""Rollout against sums over explicit paths."""

import itertools

import torch

from fairseq_norm_plugin.maps.rollout import decoder_rollout, encoder_rollout


def rows(*shape):
    return torch.rand(*shape, dtype=torch.float64).softmax(-1)


def test_encoder_rollout_sums_over_all_paths():
    torch.manual_seed(0)
    maps = [rows(1, 3, 3) for _ in range(3)]
    expected = torch.zeros(3, 3, dtype=torch.float64)
    for a, b, c, d in itertools.product(range(3), repeat=4):  # last layer's a ← b ← c ← input d
        expected[a, d] += maps[2][0, a, b] * maps[1][0, b, c] * maps[0][0, c, d]
    torch.testing.assert_close(encoder_rollout(maps)[0], expected)


def test_decoder_rollout_shares_every_row_out_over_source_and_prefix():
    torch.manual_seed(1)
    target, source, layers = 3, 4, 2
    causal = torch.ones(target, target).tril()
    self_maps = [rows(2, target, target) * causal for _ in range(layers)]
    self_maps = [m / m.sum(-1, keepdim=True) for m in self_maps]
    cross_maps, encoder = [rows(2, target, source + 1) for _ in range(layers)], rows(2, source, source)
    for parts in decoder_rollout(self_maps, cross_maps, encoder):
        torch.testing.assert_close(sum(part.sum(-1) for part in parts), torch.ones(2, target, dtype=torch.float64))
    source_part, prefix = decoder_rollout(self_maps, cross_maps, encoder)[1]
    for b, t in itertools.product(range(2), range(target)):
        for s in range(source):
            direct = sum(cross_maps[1][b, t, k] * encoder[b, k, s] for k in range(source))
            below = sum(
                cross_maps[1][b, t, source] * self_maps[1][b, t, u] * cross_maps[0][b, u, k] * encoder[b, k, s]
                for u in range(target)
                for k in range(source)
            )
            torch.testing.assert_close(source_part[b, t, s], direct + below)
        for v in range(target):
            path = sum(
                cross_maps[1][b, t, source]
                * self_maps[1][b, t, u]
                * cross_maps[0][b, u, source]
                * self_maps[0][b, u, v]
                for u in range(target)
            )
            torch.testing.assert_close(prefix[b, t, v], path)
