"""Map kinds, mixing ratios and vectors of blocks against their definitions, slow loops and fairseq's modules."""

import itertools

import pytest
import torch
from torch.nn import functional

from alignment_eval.errors import InputError
from alignment_eval.maps.sentence import KINDS, block_kinds, mixing_kinds
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.formulas.block import STAGES, Block, BlockWeights, FeedForward, check_activation
from fairseq_norm_plugin.formulas.kinds import (
    head_map,
    head_mixing_ratio,
    layer_map,
    mixing_ratio,
)
from tests.plugin.formulas.blocks import (
    EXTREMES,
    LENGTHS,
    SLOW,
    bias_contribution,
    capture_blocks,
    extreme,
    head_vectors,
    random_block,
    slow_mixing,
    slow_vectors,
    with_output,
)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("kind", block_kinds())
def test_each_kind_is_its_definition(kind, cross, before):
    if kind not in SLOW:
        pytest.fail(f"kind {kind} has no slow oracle: add one to SLOW in tests/plugin/formulas/blocks.py")
    torch.manual_seed(1)
    block = random_block(cross, before, source=6 if cross else 4)
    slow = SLOW[kind](block.sentence(0))
    torch.testing.assert_close(layer_map(block, kind)[0], slow.norm(dim=-1).t(), rtol=1e-6, atol=1e-9)
    if KINDS[kind].mixing:
        expected = slow_mixing(slow, cross, kind.partition("_")[0])
        torch.testing.assert_close(mixing_ratio(block, kind)[0], expected)


@pytest.mark.parametrize("name", EXTREMES)
@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("before", [False, True])
def test_extreme_inputs(name, cross, before):
    torch.manual_seed(3)
    block = extreme(name, random_block(cross, before, torch.tanh if name == "pre-activation 0" else torch.relu))
    sentence = block.sentence(0)
    for stage in STAGES:
        fast = torch.cat(list(sentence.vectors(stage)))
        biases = bias_contribution(sentence, stage)
        size = (fast.norm(dim=-1).sum(0) + biases.norm(dim=-1)).clamp_min(1e-300)
        error = (fast.sum(0) + biases - sentence.whole(stage)).norm(dim=-1)
        assert (error / size).max() < 1e-10, stage
    for kind in mixing_kinds():
        ratio = mixing_ratio(block, kind)
        assert ((ratio >= 0) & (ratio <= 1 + 1e-12)).all()
    # Cholesky in float64 of cancelling heads keeps half the digits of what is left
    slow = slow_vectors(sentence, "attnresln").norm(dim=-1).t()
    largest = float(head_vectors(block.alpha, block.values, block.weights.w_o).norm(dim=-1).max())
    torch.testing.assert_close(layer_map(block, "attnresln_n")[0], slow, rtol=1e-6, atol=1e-7 * largest)


@pytest.mark.parametrize("before", [False, True])
def test_head_maps_and_head_mixing_ratios(build, make_sample, before):
    model = build(encoder_layers=1, decoder_layers=1, before=before).double()
    for block in capture_blocks(model, make_sample(LENGTHS)).values():
        parts = normed = head_vectors(block.alpha, block.values, block.weights.w_o)
        if block.weights.norm is not None:
            s = (block.residual + block.output).var(-1, unbiased=False) + block.weights.norm.eps
            normed = (parts - parts.mean(-1, keepdim=True)) * block.weights.norm.weight
            normed = normed / s.sqrt()[:, None, :, None, None]
        along = functional.normalize(block.residual + block.output, dim=-1)[:, None, :, None]
        projected = (parts * along).sum(-1, keepdim=True).clamp_min(0)
        for kind, expected in (("attn_n", parts), ("attn_p", projected), ("attnresln_n", normed)):
            torch.testing.assert_close(head_map(block, kind), expected.norm(dim=-1), rtol=1e-6, atol=1e-12)
        for b, h in itertools.product(*map(range, parts.shape[:2])) if not block.weights.cross else ():
            for kind, of_head in (("attn_n", parts[b, h]), ("attn_w", block.alpha[b, h, :, :, None])):
                slow = slow_mixing(of_head.transpose(0, 1), False, "attn")
                torch.testing.assert_close(head_mixing_ratio(block, kind)[b, h], slow)


def test_head_maps_of_logits_hold_no_negative_part():
    block = random_block(cross=True)
    parts = head_vectors(block.alpha, block.values, block.weights.w_o)
    along = (parts * block.readout()[:, None, :, None]).sum(-1)
    assert (along < 0).any()
    torch.testing.assert_close(head_map(block, "attn_logit"), along.clamp_min(0), rtol=1e-6, atol=1e-9)


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


def test_kinds_that_a_block_has_not_say_so(build, make_sample):
    block = capture_blocks(build(), make_sample(LENGTHS))[DECODER_SELF, 0]
    for compute, kind, text in (
        (layer_map, "ff_n", "no feed-forward network"),
        (mixing_ratio, "ffresln_n", "no feed-forward network"),
        (layer_map, "attn_logit", "attn_logit needs the token that each row predicts"),
        (layer_map, "norm", "'norm' .*attn_w, attn_n, .*alti"),
        (head_map, "ff_n", "'ff_n' .*heads.*attn_w, attn_n"),
        (mixing_ratio, "alti", "'alti' has no mixing ratio; choose one of attn_w"),
        (head_mixing_ratio, "attnres_n", "no mixing ratio of single heads"),
    ):
        with pytest.raises(InputError, match=text):
            compute(block, kind)


def test_activations_without_a_closed_form_are_refused_by_name():
    def softmax(x):
        return torch.softmax(x, -1)

    for activation, text in (
        (torch.sigmoid, r"activation sigmoid .*0\.5"),
        (softmax, "activation softmax .*elementwise"),
    ):
        with pytest.raises(InputError, match=text):
            layer_map(random_block(activation=activation), "ff_n")
    for activation in (torch.relu, functional.gelu, functional.silu, torch.tanh, lambda x: x, lambda x: x.relu() ** 2):
        check_activation(activation)


# -- the vectors of a block


def module_at(layer, block):
    """Stages of a block, and the module of the layer whose output, or else first input, is the vector there."""
    cross = block == DECODER_CROSS
    yield "attn", layer.encoder_attn if cross else layer.self_attn, True
    if not layer.normalize_before:
        norm = layer.encoder_attn_layer_norm if cross else layer.self_attn_layer_norm
        yield "attnres", norm, False
        yield "attnresln", norm, True
    if block == DECODER_SELF:
        return
    if layer.normalize_before:
        yield "attnres", layer.final_layer_norm, False
        yield "attnresln", layer.final_layer_norm, False
        yield "ffres", layer, True
    else:
        yield "ffres", layer.final_layer_norm, False
    yield "ff", layer.fc2, True
    yield "ffresln", layer, True


def blocks_and_module_outputs(model, sample):
    """The blocks of the first layers, and what the model's own modules give there: {(block, stage): [B, T, D]}."""
    found = {}

    def keep(key, is_output):
        def hook(module, inputs, result):
            value = result if is_output else inputs[0]
            value = value[0] if isinstance(value, tuple) else value
            found[key] = value.detach().transpose(0, 1)

        return hook

    for stack, block in ((model.encoder, ENCODER_SELF), (model.decoder, DECODER_SELF), (model.decoder, DECODER_CROSS)):
        for stage, module, is_output in module_at(stack.layers[0], block):
            module.register_forward_hook(keep((block, stage), is_output))
    return capture_blocks(model, sample), found


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu", "gelu_accurate", "tanh", "linear"])
def test_complete_and_equal_to_slow_loops_on_a_fairseq_model(build, make_sample, before, activation):
    model = build(encoder_layers=1, decoder_layers=1, before=before, activation_fn=activation).double()
    sample = make_sample([(3, 2), (2, 3)])
    blocks, outputs = blocks_and_module_outputs(model, sample)
    for (type_, _), block in blocks.items():
        for stage in STAGES if block.weights.feed_forward else STAGES[:3]:
            whole = block.whole(stage)
            if not (type_ == DECODER_SELF and before and stage != "attn"):  # no module of its own gives that
                torch.testing.assert_close(whole, outputs[type_, stage], rtol=1e-9, atol=1e-11)
            for b in range(2):
                sentence = block.sentence(b)
                slow = slow_vectors(sentence, stage)
                fast = torch.cat(list(sentence.vectors(stage, chunk_bytes=1)))
                scale = slow.norm(dim=-1).sum(0).clamp_min(1e-3)
                assert ((fast - slow).norm(dim=-1) / scale).max() < 1e-12, (type_, stage)
                biases = bias_contribution(sentence, stage)
                total, terms = fast.sum(0) + biases, scale + biases.norm(dim=-1)
                assert ((total - whole[b]).norm(dim=-1) / terms).max() < 1e-10, (type_, stage)


@pytest.mark.parametrize("cross", [False, True])
def test_temporaries_are_as_large_as_a_chunk(cross, largest_tensor):
    block = random_block(cross, target=24, source=24).sentence(0)
    for stage in STAGES:
        for _ in block.vectors(stage):  # what is computed once a pass and kept
            pass
        with largest_tensor() as largest:
            for _ in block.vectors(stage, chunk_bytes=40_000):
                pass
        assert largest.bytes <= 40_000, stage


@pytest.mark.parametrize("activation", [torch.relu, functional.gelu, functional.silu, torch.tanh])
def test_the_closed_form_is_integrated_gradients(activation):
    """Shares p_j g(p)/p against the integral that they stand for: p_j ∫ g'(t p) dt over t from 0 to 1 (midpoints)."""
    torch.manual_seed(0)
    block = random_block(cross=True, activation=activation).sentence(0)
    network, steps = block.weights.network, 20_000
    pre = functional.linear(block.whole("attnresln"), network.w_1, network.b_1)
    path = ((torch.arange(steps, dtype=torch.float64) + 0.5) / steps)[:, None, None] * pre
    path.requires_grad_()
    slope = torch.autograd.grad(activation(path).sum(), path)[0].mean(0)
    torch.testing.assert_close(block.ratio, slope, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(
    ("activation", "slope"), [(torch.tanh, 1.0), (functional.gelu, 0.5), (functional.silu, 0.5), (torch.relu, 0.0)]
)
def test_where_the_parts_of_a_pre_activation_cancel_each_has_the_slope_at_zero(activation, slope):
    one, none = torch.ones(1, 1), torch.zeros(1)
    network = FeedForward(w_1=one, b_1=none, w_2=3 * one, b_2=none, activation=activation)
    weights = BlockWeights(one, none, heads=1, cross=True, feed_forward=network)
    part = torch.tensor([[[0.5]]])
    block = Block(weights, part, part, output=part, residual=-part)  # p = 0.5 - 0.5
    assert block.carry(part, "ff").item() == pytest.approx(3 * 0.5 * slope)
    assert block.carry(-part, "ffres").item() == pytest.approx(-3 * 0.5 * slope - 0.5)
