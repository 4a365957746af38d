"""Each kind of map of every block of a Transformer, against a plain teacher-forced forward pass of that model.

One encoder and one decoder layer, random, 8 heads, d 512, without output layer; 32 pairs of 50 tokens, one thread.
The extra cost is the ratio less one, in forward passes.  Before it 100 steps of beam search of 160 hypotheses: the
attention call with the norms of the printed layer against fairseq's own, keys, values and the factor cached from the
step before.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

import torch
from fairseq import tasks
from fairseq.models.transformer import TransformerModel
from fairseq.modules import MultiheadAttention
from measure import Row, configured, timed

from alignment_eval.maps.kinds import KINDS, block_kinds
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, swap_attention
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF
from fairseq_norm_plugin.capture.recorder import layer_capture
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import head_map, layer_map

BATCH, LENGTH, DIM = 32, 50, 512
#: Of a step: B · beam, and steps a run.
HYPOTHESES, STEPS = 160, 100


def measure(options: argparse.Namespace) -> Iterator[Row]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    cfg = configured("--encoder-layers", "1", "--decoder-layers", "1")
    model = tasks.setup_task(cfg.task).build_model(cfg.model).eval()
    swap_attention(model)
    source, target = (torch.randint(4, 1000, (BATCH, LENGTH)) for _ in range(2))
    lengths = torch.full((BATCH,), LENGTH)
    plain = partial(model, src_tokens=source, src_lengths=lengths, prev_output_tokens=target, features_only=True)
    with torch.inference_mode():
        yield attention_call(model, options.runs)
    cases: dict[str, Callable[[Block], object]] = {"all attention kinds, heads too": attention_maps}
    cases.update((kind, partial(layer_map, kind=kind)) for kind in block_kinds())
    with torch.no_grad():
        for name, compute in cases.items():
            blocks = [block for block in BLOCK_TYPES if not (name.startswith("ff") and block == DECODER_SELF)]
            mapped = partial(listening, model, plain, [MapCapture(block, [0], compute) for block in blocks])
            runs = 1 if name.startswith("ff") else options.runs
            yield timed(f"forward pass with {name}", mapped, plain, runs)


def attention_call(model: TransformerModel, runs: int) -> Row:
    """CPU seconds of many steps of the encoder-decoder attention of a layer."""
    attention = norm_attentions(model, DECODER_CROSS)[-1]
    query, source = torch.randn(1, HYPOTHESES, DIM), torch.randn(LENGTH, HYPOTHESES, DIM)
    capture = layer_capture("attn_n", attention.site.number, None)

    def steps(called: MultiheadAttention, captures: Sequence[MapCapture[Any]], caches: dict[str, Any]) -> None:
        for _ in range(STEPS):
            called(query, source, source, incremental_state=caches, static_kv=True)
            for each in captures:
                each.take()

    ours = partial(steps, attention, [capture], {})
    stock = partial(steps, deepcopy(attention).__prepare_scriptable__(), [], {})
    with capturing([attention], capture):
        return timed("attention call with attn_n of the layer", ours, stock, runs)


def attention_maps(block: Block) -> None:
    """Compute all attention kinds of layer and heads, and throw them away."""
    for kind in (kind for kind in block_kinds() if kind.startswith("attn")):
        layer_map(block, kind)
        if KINDS[kind].heads:
            head_map(block, kind)


def listening(model: TransformerModel, plain: Callable[[], object], captures: list[MapCapture[object]]) -> None:
    """A forward pass that ``captures`` listen to."""
    with capturing(norm_attentions(model), *captures):
        plain()
    for capture in captures:
        capture.take()
