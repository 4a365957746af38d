"""The swapped attention: same outputs, maps as defined, refusals by name."""

import threading

import pytest
import torch
from fairseq.modules import MultiheadAttention

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import (
    ONE_THREAD,
    MapCapture,
    PassEnd,
    capturing,
    norm_attentions,
    swap_attention,
    teacher_forcing,
)
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import RecordedMaps, Recorder
from tests.facts import facts
from tests.plugin.maps.blocks import head_vectors

QUANTITIES = ("head_attn_w", "transformed_norm", "head_attn_n", "layer_attn_n")
LENGTHS = [(7, 5), (3, 6), (1, 1)]


def quantity_capture(layers, names, model=None, sample=None):
    """The capture of encoder-decoder quantities that a recorder attaches."""
    recorder = Recorder(model, RecordedMaps(tuple(layers), names), sample or {"id": torch.arange(1)})
    return recorder.captures[0]


def forward(model, sample, *captures):
    with torch.no_grad(), capturing(norm_attentions(model), *captures):
        return model(**sample["net_input"])


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("left_pad", [False, True])
def test_outputs_are_bit_identical_swapped_and_listening(build, make_sample, before, left_pad):
    stock, swapped = build(swap=False, before=before), build(before=before)
    sample = make_sample(LENGTHS, left_pad_target=left_pad)
    expected, extra = forward(stock, sample)
    assert expected.isfinite().all()
    assert swapped.state_dict().keys() == stock.state_dict().keys()
    blocks = [MapCapture(block, range(2), lambda block: block) for block in BLOCK_TYPES]
    for captures in ([], [quantity_capture(range(3), QUANTITIES)], blocks):
        logits, swapped_extra = forward(swapped, sample, *captures)
        assert torch.equal(logits, expected)
        assert torch.equal(swapped_extra["attn"][0], extra["attn"][0])
    assert not any(attention.skip_embed_dim_check for attention in norm_attentions(swapped))
    assert all(attention.stream is None for attention in norm_attentions(swapped))


def test_a_block_that_cannot_be_captured_is_left_and_named_when_it_is_wanted(build):
    model = build(swap=False)
    for layer in model.encoder.layers:
        layer.self_attn.add_zero_attn = True
    swap_attention(model)
    assert {type(layer.self_attn) for layer in model.encoder.layers} == {MultiheadAttention}
    with pytest.raises(InputError, match=rf"no {ENCODER_SELF} blocks .*{DECODER_CROSS}, {DECODER_SELF}"):
        norm_attentions(model, ENCODER_SELF)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("need_head_weights", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_weights_are_given_to_the_caller_as_fairseq_does(build, need_weights, need_head_weights, fused):
    attention = norm_attentions(build(), DECODER_CROSS)[0]
    query, key = torch.randn(2, 1, 16), torch.randn(3, 1, 16)
    flags = {"need_weights": need_weights, "need_head_weights": need_head_weights, "static_kv": not fused}
    results = []
    with torch.no_grad():
        for captures in ([], [quantity_capture([0], QUANTITIES)]):
            with capturing([attention], *captures):
                state = None if fused else {}
                results.append(attention(query, key, key, incremental_state=state, **flags))
    (output, weights), (captured, given) = results
    assert torch.equal(captured, output)
    assert (given is None) == (weights is None)
    assert given is None or torch.equal(given, weights)


def slow_quantities(model, sample):
    """Every quantity from hooks on the module's inputs, every vector materialised, in float64."""
    attentions, inputs = norm_attentions(model, DECODER_CROSS), []
    for attention in attentions:
        attention.register_forward_pre_hook(lambda module, _, inputs_: inputs.append(inputs_), with_kwargs=True)
    forward(model, sample)
    model.double()
    for module, given in zip(attentions, inputs):
        query, key = given["query"].double(), given["key"].double()
        projected = module.q_proj(query) * module.scaling, module.k_proj(key), module.v_proj(key)
        q, k, v = (x.unflatten(-1, (module.num_heads, -1)).transpose(0, 1) for x in projected)
        pads = sample["net_input"]["src_tokens"].eq(1)[:, None, None]
        alpha = torch.einsum("bthd,bshd->bhts", q, k).masked_fill(pads, float("-inf")).softmax(-1)
        vectors = head_vectors(alpha, v, module.out_proj.weight)
        yield {
            "head_attn_w": alpha,
            "transformed_norm": head_vectors(torch.ones_like(alpha), v, module.out_proj.weight)[:, :, 0].norm(dim=-1),
            "head_attn_n": vectors.norm(dim=-1),
            "layer_attn_n": vectors.sum(1).norm(dim=-1),
        }


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("left_pad", [False, True])
@torch.no_grad()
def test_captured_quantities_equal_the_definition(build, make_sample, before, left_pad):
    model = build(before=before)
    sample = make_sample(LENGTHS, left_pad_source=left_pad)
    capture = quantity_capture(range(3), QUANTITIES)
    forward(model, sample, capture)
    pads = sample["net_input"]["src_tokens"].eq(1)
    for fast, slow in zip(capture.take(), slow_quantities(model, sample), strict=True):
        for name in QUANTITIES:
            columns = pads[:, None, None] if fast[name].dim() == 4 else pads[:, None]
            difference = (fast[name] - slow[name]).masked_fill(columns, 0)
            assert difference.abs().max() < 2e-6, name


def test_a_position_that_sees_nothing_has_weights_0(build, make_sample):
    """Padding before a causal sentence; no NaN may reach a map."""
    sample, capture = make_sample(LENGTHS, left_pad_target=True), MapCapture(DECODER_SELF, [0], lambda block: block)
    forward(build(), sample, capture)
    (block,) = capture.take()
    pads = sample["net_input"]["prev_output_tokens"].eq(1)
    weights = block.alpha.transpose(1, 2)
    assert not weights[pads].any()
    torch.testing.assert_close(weights[~pads].sum(-1), torch.ones_like(weights[~pads].sum(-1)))


@pytest.mark.parametrize("before", [False, True])
def test_maps_of_a_model_in_16_bits_are_computed_in_float32(build, make_sample, before):
    captures = [MapCapture(block, [0], lambda block: block) for block in BLOCK_TYPES]
    forward(build(before=before).bfloat16(), make_sample(LENGTHS), *captures)
    for (block,) in (capture.take() for capture in captures):
        tensors = block.alpha, block.values, block.residual, block.output, block.factor
        assert {tensor.dtype for tensor in tensors} == {torch.float32}


def norms_of(model, sample, layer):
    capture = quantity_capture([layer], ("layer_attn_n",))
    forward(model, sample, capture)
    return capture.take()[0]["layer_attn_n"]


def test_changed_parameters_are_noticed(build, make_sample):
    """Also by fairseq's optimisers, which write to ``parameter.data``; this does not count as a change of it."""
    model, sample = build(), make_sample(LENGTHS)
    attention = norm_attentions(model, DECODER_CROSS)[1]
    parameter, before = attention.out_proj.weight, norms_of(model, sample, 1)
    with torch.no_grad():
        parameter.mul_(2)
    torch.testing.assert_close(norms_of(model, sample, 1), 2 * before)
    model.train()
    version = parameter._version
    parameter.data.mul_(2)
    assert parameter._version == version
    model.eval()
    torch.testing.assert_close(norms_of(model, sample, 1), 4 * before)
    model.train()  # a loop that listens while it trains
    basis = attention.block_weights().gram_basis.clone()
    parameter.data.mul_(3)
    torch.testing.assert_close(attention.block_weights().gram_basis, 9 * basis, rtol=1e-4, atol=1e-5)


def test_values_shared_over_beams(build):
    """BART's attention keeps one K and V a sentence for all its beams; the maps are those of repeated ones."""
    attention = norm_attentions(build(), DECODER_CROSS)[0]
    torch.manual_seed(1)
    query, key = torch.randn(1, 6, 16), torch.randn(4, 2, 16)  # 2 sentences × 3 beams
    repeated = key.repeat_interleave(3, dim=1)
    results = []
    for beam_size in (1, 3):
        attention.beam_size = beam_size
        capture = quantity_capture([0], QUANTITIES)
        with capturing([attention], capture), torch.no_grad():
            attention(query, repeated, repeated, incremental_state={}, static_kv=True)
        results.append(capture.take()[0])
    for name in QUANTITIES:
        torch.testing.assert_close(results[1][name], results[0][name])


def identity(block):
    return block


def test_every_layer_runs_once_and_is_taken_once():
    capture = MapCapture("decoder.cross", [0, 1], identity, needs_norms=False)
    capture.receive(0, torch.ones(1))
    with pytest.raises(RuntimeError, match=facts("of layers [1]")):
        capture.take()
    with pytest.raises(RuntimeError, match="ran twice"):
        capture.receive(0, torch.zeros(1))
    capture.receive(1, torch.zeros(1))
    assert capture.take() == [1, 0]
    with pytest.raises(RuntimeError, match="no maps of layers"):
        capture.take()


def test_nothing_stays_attached_after_an_error(build):
    attentions, capture = norm_attentions(build(), "decoder.cross"), MapCapture("decoder.cross", [0], identity)
    with pytest.raises(RuntimeError, match="no maps of layers"), capturing(attentions, capture):
        capture.take()
    assert not any(attention.captures for attention in attentions)


def test_a_pass_ends_after_the_last_capture(build, make_sample):
    model, inputs, ran = build(), make_sample([(3, 4)])["net_input"], []
    attentions = norm_attentions(model)
    for number, layer in enumerate(model.decoder.layers):
        layer.fc1.register_forward_hook(lambda *_, number=number: ran.append(number))
    whole, cut = (MapCapture("decoder.cross", [0, 1], lambda block: block.output) for _ in range(2))
    with torch.no_grad():
        with capturing(attentions, whole):
            model(**inputs)
        everything, ran[:] = list(ran), []
        with capturing(attentions, cut, end_pass=True), pytest.raises(PassEnd):
            model(**inputs)
    assert everything == list(range(len(model.decoder.layers)))
    assert ran == [0]  # neither the network of layer 1 nor what is above it
    assert all(map(torch.equal, whole.take(), cut.take()))
    assert not any(attention.ends_pass for attention in attentions)


def test_teacher_forcing_is_undone(build):
    model = build()
    model.full_context_alignment = True
    attention = norm_attentions(model)[0]
    attention.beam_size = 5
    with teacher_forcing(model):
        assert not model.full_context_alignment
        assert attention.beam_size == 1
    assert model.full_context_alignment
    assert attention.beam_size == 5


def test_one_thread_at_a_time_runs_a_model(build):
    """What is captured lies on the modules, where another thread's pass would be taken for this one's."""
    model, order = build(), []

    def wait():
        with teacher_forcing(model):
            order.append("second")

    with ONE_THREAD, teacher_forcing(model):  # the same thread enters twice
        second = threading.Thread(target=wait)
        second.start()
        second.join(0.05)
        order.append("first leaves")
    second.join(10)
    assert order == ["first leaves", "second"]
