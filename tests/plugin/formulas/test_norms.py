"""The fast norms against the definition, which materialises every vector, in float64."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_norm_plugin.formulas import block as norms
from tests.plugin.formulas.blocks import head_vectors


def slow_maps(alpha, values, w_o):
    """Head and layer norms by their definition, and the size of what each layer norm sums."""
    vectors = head_vectors(alpha, values, w_o)
    head_map = vectors.norm(dim=-1)
    return head_map, vectors.sum(1).norm(dim=-1), head_map.sum(1)


def random_case(seed, batch=2, heads=3, target=4, source=5, head_dim=2, out=7, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    alpha = torch.rand(batch, heads, target, source, generator=generator, dtype=torch.float64)
    alpha = alpha / alpha.sum(-1, keepdim=True)
    values = torch.randn(batch, source, heads, head_dim, generator=generator, dtype=torch.float64)
    w_o = torch.randn(out, heads * head_dim, generator=generator, dtype=torch.float64)
    return alpha.to(dtype), values.to(dtype), w_o.to(dtype)


def fast_maps(alpha, values, w_o):
    factor = norms.gram_factor(values, norms.head_gram_basis(w_o, values.size(2)))
    return alpha * norms.transformed_norms(factor)[:, :, None, :], norms.layer_norms(alpha, factor)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    heads=st.integers(1, 5),
    target=st.integers(1, 4),
    source=st.integers(1, 4),
    head_dim=st.integers(1, 4),
    out=st.integers(1, 9),
)
def test_fast_maps_equal_the_definition(dtype, seed, heads, target, source, head_dim, out):
    case = random_case(seed, 2, heads, target, source, head_dim, out, dtype)
    head_map, layer_map, scale = slow_maps(*case)
    fast_head, fast_layer = fast_maps(*case)
    # The jitter of 1e-15 of the trace is 3e-8 of the norm where the heads cancel exactly.
    tolerance = 64 * torch.finfo(dtype).eps if dtype == torch.float32 else 1e-7
    assert (fast_head - head_map).abs().max() <= tolerance * scale.max()
    assert ((fast_layer - layer_map).abs() <= tolerance * scale.max()).all()


@pytest.mark.parametrize("kappa", [1e1, 1e2, 1e3, 1e4])
def test_cancelling_heads_keep_the_accuracy_of_the_direct_form(kappa):
    generator = torch.Generator().manual_seed(0)
    vector = torch.randn(1, 50, 1, 8, generator=generator)
    rest = torch.randn(1, 50, 2, 8, generator=generator) / kappa
    values = torch.cat([vector, -vector], dim=2) + rest
    w_o = torch.cat([torch.eye(8), torch.eye(8)], dim=1)  # both heads write the same way: their sum nearly vanishes
    alpha = torch.full((1, 2, 3, 50), 0.5)
    _, layer_map, _ = slow_maps(alpha, values, w_o)
    error = ((fast_maps(alpha, values, w_o)[1] - layer_map) / layer_map).abs().max()
    assert error <= 3e-7 * kappa  # a Gram matrix in float32 would be off by kappa² · 1e-7


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("dead", [(0,), (2,), (0, 2), (0, 1, 2)])
def test_a_dead_head_has_norm_zero_and_others_are_untouched(dtype, dead):
    alpha, values, w_o = random_case(1, dtype=dtype)
    values[:, :, dead] = 0
    head_map, layer_map, _ = slow_maps(alpha, values, w_o)
    factor = norms.gram_factor(values, norms.head_gram_basis(w_o, 3))
    found = alpha * norms.transformed_norms(factor)[:, :, None, :]
    assert not found[:, dead].any()
    torch.testing.assert_close(found.double(), head_map, atol=0, rtol=1e-6)
    assert not any(norms.layer_norms(alpha, factor, (head,)).any() for head in dead)
    torch.testing.assert_close(norms.layer_norms(alpha, factor).double(), layer_map, atol=1e-12, rtol=1e-5)


def test_a_vector_that_its_head_projects_to_zero_has_a_finite_norm():
    """Rounding takes the squares of some of these norms below 0."""
    generator = torch.Generator().manual_seed(0)
    w_o = torch.randn(1, 2, generator=generator, dtype=torch.float64)
    values = torch.randn(1, 1000, 1, 1, generator=generator, dtype=torch.float64) * torch.stack([w_o[0, 1], -w_o[0, 0]])
    basis = norms.head_gram_basis(w_o, 1)
    for found in (norms.vector_norms(values, basis), norms.transformed_norms(norms.gram_factor(values, basis))):
        assert ((found >= 0) & (found < 1e-6)).all()


@pytest.mark.parametrize(("batch", "target"), [(16, 4), (1, 64)])
def test_temporaries_are_as_large_as_a_chunk_and_chunks_change_nothing(monkeypatch, largest_tensor, batch, target):
    alpha, values, w_o = random_case(5, batch=batch, target=target, source=20, head_dim=8)
    whole = fast_maps(alpha, values, w_o)
    monkeypatch.setattr(norms, "CHUNK_BYTES", 10_000)
    basis = norms.head_gram_basis(w_o, 3)
    with largest_tensor() as largest:
        factor = norms.gram_factor(values, basis)
    assert largest.bytes <= max(10_000, factor.nbytes)  # the result itself
    with largest_tensor() as largest:
        map_ = norms.layer_norms(alpha, factor)
    assert largest.bytes <= map_.nbytes == 10_240
    for found, expected in zip(fast_maps(alpha, values, w_o), whole):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("heads", [(0, 2), (2, 0), (1,)])
def test_a_set_of_heads_is_their_sum(heads):
    alpha, values, w_o = random_case(2)
    factor = norms.gram_factor(values, norms.head_gram_basis(w_o, 3))
    expected = head_vectors(alpha, values, w_o)[:, heads].sum(1).norm(dim=-1)
    torch.testing.assert_close(norms.layer_norms(alpha, factor, heads), expected, atol=1e-8, rtol=1e-6)
    torch.testing.assert_close(norms.layer_weights(alpha, heads), alpha[:, heads].mean(1))
    torch.testing.assert_close(norms.layer_weights(alpha), alpha.mean(1))
    with pytest.raises(IndexError):
        norms.layer_norms(alpha, factor, (3,))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_tokens_that_are_not_real_have_norm_zero_and_others_are_untouched(dtype, share):
    _, values, w_o = random_case(4, batch=3, source=9, dtype=dtype)
    basis = norms.head_gram_basis(w_o, 3)
    real = torch.rand(3, 9, generator=torch.Generator().manual_seed(0)) < share
    for compute in (norms.gram_factor, norms.vector_norms):
        whole, found = compute(values, basis), compute(values, basis, real)
        kept = real[:, None] if compute is norms.vector_norms else real[..., None, None]
        torch.testing.assert_close(found, torch.where(kept, whole, 0.0))
        assert found.dtype == whole.dtype
    for tokens in (None, real):  # it lies in memory as it is read
        assert norms.gram_factor(values, basis, tokens).movedim(1, -1).is_contiguous()
