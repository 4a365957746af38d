"""Every kind of every block of a real fairseq Transformer: complete, and equal to slow loops over its own modules."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.capturing import MapCapture, capturing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.maps.block import STAGES, Block, BlockWeights, FeedForward, Norm, check_activation, vectors
from fairseq_norm_plugin.maps.kinds import (
    BLOCK_KINDS,
    HEAD_KINDS,
    MIXING_KINDS,
    NORM_KINDS,
    head_map,
    head_mixing_ratio,
    layer_map,
    merged_map,
    mixing_ratio,
)

FF_STAGES = ("ff", "ffres", "ffresln")
LENGTHS = [(6, 4), (3, 5), (1, 1)]


def capture_blocks(model, sample):
    """{(block type, layer): Block} of one forward pass."""
    captures = []
    for block in BLOCK_TYPES:
        layers = range(len(norm_attentions(model, block)))
        captures.append(MapCapture(block, layers, lambda block: block))
    with torch.no_grad(), capturing(norm_attentions(model), *captures):
        model(**sample["net_input"])
    return {
        (capture.block, layer): value for capture in captures for layer, value in zip(capture.layers, capture.take())
    }


def blocks_and_module_outputs(model, sample):
    """:func:`capture_blocks`, and what the model's own modules give in the same pass, by hooks.

    The latter is {(block type, layer, stage): [B, T, D]}.
    """
    found = {}

    def keep(key, output=True):
        def hook(module, inputs, result):
            value = result if output else inputs[0]
            value = value[0] if isinstance(value, tuple) else value
            found[key] = value.detach().transpose(0, 1)

        return hook

    handles = []
    for stack, block in ((model.encoder, ENCODER_SELF), (model.decoder, DECODER_SELF), (model.decoder, DECODER_CROSS)):
        for number, layer in enumerate(stack.layers):
            cross = block == DECODER_CROSS
            attention = layer.encoder_attn if cross else layer.self_attn
            norm = layer.encoder_attn_layer_norm if cross else layer.self_attn_layer_norm
            handles.append(attention.register_forward_hook(keep((block, number, "attn"))))
            if not layer.normalize_before:
                handles.append(norm.register_forward_hook(keep((block, number, "attnres"), output=False)))
                handles.append(norm.register_forward_hook(keep((block, number, "attnresln"))))
            if block != DECODER_SELF:
                if layer.normalize_before:
                    for stage in ("attnres", "attnresln"):
                        hook = keep((block, number, stage), output=False)
                        handles.append(layer.final_layer_norm.register_forward_hook(hook))
                    handles.append(layer.register_forward_hook(keep((block, number, "ffres"))))
                else:
                    hook = keep((block, number, "ffres"), output=False)
                    handles.append(layer.final_layer_norm.register_forward_hook(hook))
                handles.append(layer.fc2.register_forward_hook(keep((block, number, "ff"))))
                handles.append(layer.register_forward_hook(keep((block, number, "ffresln"))))
    blocks = capture_blocks(model, sample)
    for handle in handles:
        handle.remove()
    return blocks, found


def slow_vectors(block, stage):
    """z_ij carried to ``stage`` pair by pair and head by head, from the definitions: [S', T, D] of one sentence."""
    weights = block.weights
    heads, target, source = block.alpha.shape
    width = block.values.size(-1)
    pairs = torch.zeros(source + weights.cross, target, len(weights.w_o), dtype=block.alpha.dtype)
    for i in range(target):
        for j in range(source):
            for h in range(heads):
                w_h = weights.w_o[:, h * width : (h + 1) * width]
                pairs[j, i] += block.alpha[h, i, j] * (w_h @ block.values[j, h])
        if stage != "attn":
            pairs[source if weights.cross else i, i] += block.residual[i]
    if stage in ("attn", "attnres"):
        return pairs[:source] if stage == "attn" else pairs

    def linear_norm(vector, norm, whole):
        return norm.weight * (vector - vector.mean()) / ((whole - whole.mean()).square().mean() + norm.eps).sqrt()

    result = torch.zeros_like(pairs)
    network = weights.feed_forward
    for i in range(target):
        y = block.residual[i] + block.output[i]
        stream = (
            pairs[:, i] if weights.norm is None else torch.stack([linear_norm(v, weights.norm, y) for v in pairs[:, i]])
        )
        if stage == "attnresln":
            result[:, i] = stream
            continue
        norm = weights.norm or network.norm
        u = norm.weight * (y - y.mean()) / (y.var(unbiased=False) + norm.eps).sqrt() + norm.bias
        p = network.w_1 @ u + network.b_1
        parts = torch.stack([network.w_1 @ linear_norm(v, norm, y) for v in pairs[:, i]])
        share = parts * torch.where(p == 0, 0.0, network.activation(p) / p)
        out = share @ network.w_2.t()
        if stage != "ff":
            out = out + stream
        if stage == "ffresln" and network.final_norm is not None:
            whole = network.w_2 @ network.activation(p) + network.b_2 + (u if weights.norm is not None else y)
            out = torch.stack([linear_norm(v, network.final_norm, whole) for v in out])
        result[:, i] = out
    return result


def stages_of(block):
    return STAGES if block.weights.feed_forward is not None else STAGES[:3]


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_accurate", "tanh", "linear"])
def test_complete_and_equal_to_slow_loops_on_a_fairseq_model(build, make_sample, before, activation):
    options = {"encoder_normalize_before": before, "decoder_normalize_before": before, "activation_fn": activation}
    model = build(encoder_layers=1, decoder_layers=1, **options).double()
    sample = make_sample([(3, 2), (2, 3)])
    blocks, outputs = blocks_and_module_outputs(model, sample)
    for (type_, number), block in blocks.items():
        for stage in stages_of(block):
            whole = block.carrier.whole(stage)
            if not (type_ == DECODER_SELF and before and stage != "attn"):  # no module of its own gives that
                torch.testing.assert_close(whole, outputs[type_, number, stage], rtol=1e-9, atol=1e-11)
            fast_map, mixing = layer_map(block, f"{stage}_n"), mixing_ratio(block, f"{stage}_n")
            for b in range(2):
                sentence = block.sentence(b)
                slow = slow_vectors(sentence, stage)
                fast = torch.cat([part for _, part in vectors(sentence, stage, chunk_bytes=1)])
                scale = slow.norm(dim=-1).sum(0).clamp_min(1e-3)
                assert ((fast - slow).norm(dim=-1) / scale).max() < 1e-12, (type_, stage)
                total = fast.sum(0) + sentence.carrier.tokenless(stage)
                terms = scale + sentence.carrier.tokenless(stage).norm(dim=-1)
                assert ((total - whole[b]).norm(dim=-1) / terms).max() < 1e-10, (type_, stage)
                norms = slow.norm(dim=-1).t()
                assert ((fast_map[b] - norms).abs() / scale[:, None]).max() < 1e-7, (type_, stage)
                torch.testing.assert_close(mixing[b], slow_mixing(slow, block.weights.cross, stage))


def slow_mixing(pairs, cross, stage):
    ratios = []
    for i in range(pairs.size(1)):
        own = pairs.size(0) - 1 if cross and stage != "attn" else (None if cross else i)
        others = sum(pairs[j, i] for j in range(pairs.size(0)) if j != own)
        others = 0.0 if isinstance(others, int) else float(others.norm())
        own_norm = 0.0 if own is None else float(pairs[own, i].norm())
        ratios.append(others / (others + own_norm) if others + own_norm else 0.0)
    return torch.tensor(ratios, dtype=pairs.dtype)


@pytest.mark.parametrize("before", [False, True])
def test_head_maps_and_head_mixing_ratios(build, make_sample, before):
    options = {"encoder_normalize_before": before, "decoder_normalize_before": before}
    model = build(encoder_layers=1, decoder_layers=1, **options).double()
    for block in capture_blocks(model, make_sample(LENGTHS)).values():
        width = block.values.size(-1)
        maps = {kind: head_map(block, kind) for kind in HEAD_KINDS}
        for h in range(block.weights.heads):
            w_h = block.weights.w_o[:, h * width : (h + 1) * width]
            f = block.values[:, :, h] @ w_h.t()
            expected = block.alpha[:, h, :, :, None] * f[:, None]
            torch.testing.assert_close(maps["attn_n"][:, h], expected.norm(dim=-1), rtol=1e-6, atol=1e-12)
            normed = expected
            if block.weights.norm is not None:
                s = (block.residual + block.output).var(-1, unbiased=False) + block.weights.norm.eps
                normed = (expected - expected.mean(-1, keepdim=True)) * block.weights.norm.weight
                normed = normed / s.sqrt()[:, :, None, None]
            torch.testing.assert_close(maps["attnresln_n"][:, h], normed.norm(dim=-1), rtol=1e-6, atol=1e-12)
            if block.weights.cross:
                continue
            for b in range(len(expected)):
                slow = slow_mixing(expected[b].transpose(0, 1), False, "attn")
                torch.testing.assert_close(head_mixing_ratio(block, "attn_n")[b, h], slow)
                by_weight = slow_mixing(block.alpha[b, h].t()[..., None], False, "attn")
                torch.testing.assert_close(head_mixing_ratio(block, "attn_w")[b, h], by_weight)


def test_attnres_w_is_half_of_attn_w_and_its_mixing_ratio_too(build, make_sample):
    """Kobayashi et al. 2021: 48.6 and 97.1 % in BERT, 47.9 and 95.8 % in RoBERTa."""
    for (type_, _), block in capture_blocks(build(), make_sample(LENGTHS)).items():
        map_ = layer_map(block, "attnres_w")
        torch.testing.assert_close(map_.sum(-1), torch.ones(map_.shape[:-1]))
        if type_ == DECODER_CROSS:
            torch.testing.assert_close(map_[..., :-1], 0.5 * layer_map(block, "attn_w"))
            torch.testing.assert_close(mixing_ratio(block, "attn_w"), torch.ones(map_.shape[:-1]))
        torch.testing.assert_close(2 * mixing_ratio(block, "attnres_w"), mixing_ratio(block, "attn_w"))


def random_block(
    cross=False, before=False, activation=torch.relu, heads=3, target=4, source=4, width=5, hidden=7, **kw
):
    size = heads * width

    def random(*shape):
        return torch.randn(*shape, dtype=kw.get("dtype", torch.float64))

    norms = [Norm(random(size), random(size), 1e-5) for _ in range(2)]
    network = FeedForward(
        random(hidden, size),
        random(hidden),
        random(size, hidden),
        random(size),
        activation,
        norm=norms[1] if before else None,
        final_norm=None if before else norms[1],
    )
    weights = BlockWeights(random(size, size), random(size), heads, cross, None if before else norms[0], network)
    alpha, values = random(1, heads, target, source).softmax(-1), random(1, source, heads, width)
    return with_output(Block(weights, alpha, values, random(1, target, size), random(1, target, size)))


def with_output(block):
    """``block`` with the output that its attention would give."""
    mixed = torch.einsum("bhts,bshd->bthd", block.alpha, block.values).flatten(2)
    output = mixed @ block.weights.w_o.t() + block.weights.b_o
    return Block(block.weights, block.alpha, block.values, block.residual, output)


def extreme(name, block):
    alpha, values, residual = block.alpha.clone(), block.values.clone(), block.residual.clone()
    if name == "one token":
        alpha, values, residual = torch.ones_like(alpha[:, :, :1, :1]), values[:, :1], residual[:, :1]
    elif name == "all pads but one":
        alpha = torch.zeros_like(alpha)
        alpha[..., 0] = 1
    elif name == "dead units":
        block.weights.feed_forward.b_1.fill_(-1e3)
    elif name == "pre-activation 0":
        block.weights.feed_forward.b_1.zero_()
        block.weights.feed_forward.w_1.zero_()
    elif name == "cancelling heads":
        width = values.size(-1)
        block.weights.w_o[:, width : 2 * width] = block.weights.w_o[:, :width]
        alpha[:, 1] = alpha[:, 0]
        values[:, :, 1] = -values[:, :, 0] * (1 - 1e-9)
        values[:, :, 2] *= 1e-9
    return with_output(Block(block.weights, alpha, values, residual, residual))


@pytest.mark.parametrize(
    "name", ["one token", "all pads but one", "dead units", "pre-activation 0", "cancelling heads"]
)
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_extreme_inputs(name, cross, before):
    torch.manual_seed(3)
    block = extreme(name, random_block(cross, before, torch.tanh if name == "pre-activation 0" else torch.relu))
    for stage in STAGES:
        sentence = block.sentence(0)
        fast = torch.cat([part for _, part in vectors(sentence, stage)])
        tokenless = sentence.carrier.tokenless(stage)
        size = (fast.norm(dim=-1).sum(0) + tokenless.norm(dim=-1)).clamp_min(1e-300)
        error = (fast.sum(0) + tokenless - sentence.carrier.whole(stage)).norm(dim=-1)
        assert (error / size).max() < 1e-10
        for kind in MIXING_KINDS:
            ratio = mixing_ratio(block, kind)
            assert ((ratio >= 0) & (ratio <= 1 + 1e-12)).all()
    # Cholesky in float64 of cancelling heads keeps half the digits of what is left
    slow = slow_vectors(block.sentence(0), "attnresln").norm(dim=-1).t()
    parts = torch.einsum("bhts,bshd,ohd->bthso", block.alpha, block.values, block.weights.w_o.unflatten(1, (3, -1)))
    torch.testing.assert_close(
        layer_map(block, "attnresln_n")[0], slow, rtol=1e-6, atol=1e-7 * float(parts.norm(dim=-1).max())
    )


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


def test_layer_maps_in_float32_are_near_float64(build, make_sample):
    sample = make_sample(LENGTHS)
    single, double = capture_blocks(build(), sample), capture_blocks(build().double(), sample)
    for key, block in single.items():
        for kind in BLOCK_KINDS:
            if kind.startswith("ff") and block.weights.feed_forward is None:
                continue
            exact = layer_map(double[key], kind)
            assert (layer_map(block, kind) - exact).abs().max() < 2e-5 * max(1.0, float(exact.max())), (key, kind)


@pytest.mark.parametrize("before", [False, True])
def test_listening_to_self_attention_leaves_outputs_alone(build, make_sample, before):
    """fairseq's fused attention is left while somebody listens, and taken again afterwards."""
    model = build(encoder_normalize_before=before, decoder_normalize_before=before)
    sample = make_sample(LENGTHS)
    with torch.no_grad():
        expected = model(**sample["net_input"])[0]
        captures = [MapCapture(block, range(2), lambda block: block) for block in BLOCK_TYPES]
        with capturing(norm_attentions(model), *captures):
            listened = model(**sample["net_input"])[0]
        assert (listened - expected).abs().max() <= 1e-6 * expected.abs().max()
        assert torch.equal(model(**sample["net_input"])[0], expected)
    assert not any(attention.skip_embed_dim_check for attention in norm_attentions(model))
    assert all(attention.stream is None for attention in norm_attentions(model))


@pytest.mark.parametrize("cross", [False, True])
def test_alti_is_its_definition(cross):
    torch.manual_seed(1)
    block = random_block(cross, source=6 if cross else 4)
    slow = slow_vectors(block.sentence(0), "attnresln")
    y = block.carrier.whole("attnresln")[0]
    contribution = torch.stack([(y.abs().sum(-1) - (y - z).abs().sum(-1)).clamp_min(0) for z in slow]).t()
    total = contribution.sum(-1, keepdim=True)
    torch.testing.assert_close(layer_map(block, "alti")[0], contribution / torch.where(total == 0, 1.0, total))


def test_nan_shows_as_nan():
    block = random_block()
    block.values[0, 0, 0, 0] = float("nan")
    for kind in ("attn_n", "attnres_n", "ffresln_n", "alti"):
        assert layer_map(with_output(block), kind).isnan().any(), kind
    assert mixing_ratio(with_output(block), "attn_n").isnan().any()


def test_an_all_zero_row_of_alti_stays_zero():
    block = random_block(cross=True)
    far = Block(block.weights, block.alpha, block.values * 0, block.residual * 0, block.output * 0)
    assert torch.equal(layer_map(far, "alti"), torch.zeros(1, 4, 5, dtype=torch.float64))


def test_merging_sums_vectors_before_the_norm():
    torch.manual_seed(2)
    block = random_block(cross=True, target=3, source=5)
    heads, layer = merged_map(block, [[0, 1, 1, 1, -1]])
    f = torch.einsum("bhts,bshd,ohd->bhtso", block.alpha, block.values, block.weights.w_o.unflatten(1, (3, -1)))
    merged = torch.stack([f[:, :, :, 0], f[:, :, :, 1:4].sum(3), 0 * f[..., 0, :], 0 * f[..., 0, :], f[:, :, :, 4]], 3)
    torch.testing.assert_close(heads, merged.norm(dim=-1), rtol=1e-6, atol=1e-12)
    torch.testing.assert_close(layer, merged.sum(1).norm(dim=-1), rtol=1e-6, atol=1e-12)


def test_kinds_that_a_block_has_not_say_so(build, make_sample):
    blocks = capture_blocks(build(), make_sample(LENGTHS))
    decoder_self = blocks[DECODER_SELF, 0]
    with pytest.raises(InputError, match=r"no feed-forward network follows this block: .* for kinds ff_n, ffres_n"):
        layer_map(decoder_self, "ff_n")
    with pytest.raises(InputError, match=r"no feed-forward network"):
        mixing_ratio(decoder_self, "ffresln_n")
    with pytest.raises(InputError, match=r"unknown map kind 'norm': expected one of attn_w, attn_n, .*alti"):
        layer_map(decoder_self, "norm")
    with pytest.raises(InputError, match=r"'ff_n' has no maps of single heads: expected one of attn_w, attn_n"):
        head_map(decoder_self, "ff_n")
    with pytest.raises(InputError, match=r"'alti' has no mixing ratio: expected one of attn_w"):
        mixing_ratio(decoder_self, "alti")
    with pytest.raises(InputError, match=r"no mixing ratio of single heads"):
        head_mixing_ratio(decoder_self, "attnres_n")
    assert set(NORM_KINDS) < set(BLOCK_KINDS)


def test_activations_without_a_closed_form_are_refused_by_name():
    def sigmoid(x):
        return torch.sigmoid(x)

    def softmax(x):
        return torch.softmax(x, -1)

    with pytest.raises(InputError, match=r"activation sigmoid has g\(0\) = 0\.5: .* needs g\(0\) = 0 \(relu, gelu"):
        check_activation(sigmoid)
    with pytest.raises(InputError, match=r"activation softmax is not elementwise"):
        check_activation(softmax)
    with pytest.raises(InputError, match=r"activation sigmoid"):
        layer_map(random_block(activation=sigmoid), "ff_n")
    for activation in (torch.relu, functional.gelu, functional.silu, torch.tanh, lambda x: x, lambda x: x.relu() ** 2):
        check_activation(activation)
