"""The swapped attention: same outputs, maps as defined, refusals by name; a lock of each model."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from fairseq.modules import MultiheadAttention

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import (
    MapCapture,
    capturing,
    in_one_thread,
    norm_attentions,
    swap_attention,
)
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import RecordedMaps, Recorder

QUANTITIES = ("head_attn_w", "transformed_norm", "head_attn_n", "layer_attn_n")
LENGTHS = [(7, 5), (3, 6), (1, 1)]


def quantity_capture(model, layers, names):
    """The capture of encoder-decoder quantities that a recorder attaches."""
    return Recorder(model, RecordedMaps(tuple(layers), names), {"id": torch.arange(1)}).captures[0]


def forward(model, sample, *captures):
    with torch.no_grad(), capturing(norm_attentions(model), *captures):
        return model(**sample["net_input"])


def test_a_block_that_cannot_be_captured_is_left_and_named_when_it_is_wanted(build):
    model = build(swap=False)
    for layer in model.encoder.layers:
        layer.self_attn.add_zero_attn = True
    swap_attention(model)
    assert {type(layer.self_attn) for layer in model.encoder.layers} == {MultiheadAttention}
    with pytest.raises(InputError, match=rf"no {ENCODER_SELF} blocks .*{DECODER_CROSS}, {DECODER_SELF}"):
        norm_attentions(model, ENCODER_SELF)


def test_a_position_that_sees_nothing_has_weights_0(build, make_sample):
    """Padding before a causal sentence; no NaN may reach a map."""
    sample, capture = make_sample(LENGTHS, left_pad_target=True), MapCapture(DECODER_SELF, [0], lambda block: block)
    forward(build(), sample, capture)
    (block,) = capture.take()
    pads = sample["net_input"]["prev_output_tokens"].eq(1)
    weights = block.alpha.transpose(1, 2)
    assert not weights[pads].any()
    torch.testing.assert_close(weights[~pads].sum(-1), torch.ones_like(weights[~pads].sum(-1)))


def test_maps_of_a_model_in_16_bits_are_computed_in_float32(build, make_sample):
    captures = [MapCapture(block, [0], lambda block: block) for block in BLOCK_TYPES]
    forward(build().bfloat16(), make_sample(LENGTHS), *captures)
    for (block,) in (capture.take() for capture in captures):
        tensors = block.alpha, block.values, block.residual, block.output, block.factor
        assert {tensor.dtype for tensor in tensors} == {torch.float32}


def norms_of(model, sample, layer):
    capture = quantity_capture(model, [layer], ("layer_attn_n",))
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
    model = build()
    attention = norm_attentions(model, DECODER_CROSS)[0]
    torch.manual_seed(1)
    query, key = torch.randn(1, 6, 16), torch.randn(4, 2, 16)  # 2 sentences × 3 beams
    repeated = key.repeat_interleave(3, dim=1)
    results = []
    for beam_size in (1, 3):
        attention.beam_size = beam_size
        capture = quantity_capture(model, [0], QUANTITIES)
        with capturing([attention], capture), torch.no_grad():
            attention(query, repeated, repeated, incremental_state={}, static_kv=True)
        results.append(capture.take()[0])
    for name in QUANTITIES:
        torch.testing.assert_close(results[1][name], results[0][name])


@pytest.mark.parametrize("orders", [([0], [1]), ([0, 1], [1, 0]), ([0, 0], [0])], ids=str)
def test_two_threads_never_run_one_model_and_never_wait_for_each_other(orders):
    """But they run two models at once."""
    models, inside, most = [torch.nn.Identity(), torch.nn.Identity()], [], []
    meeting = threading.Barrier(2, timeout=20)
    shared = bool(set(orders[0]) & set(orders[1]))

    def job(order):
        meeting.wait()
        for _ in range(200):
            with in_one_thread(models[k] for k in order), in_one_thread(models[k] for k in reversed(order)):
                inside.append(order)
                if not shared:
                    meeting.wait()
                most.append(len(inside))
                if not shared:
                    meeting.wait()
                inside.pop()

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(job, order) for order in orders]:
            done.result(20)
    assert set(most) == {1 if shared else 2}
