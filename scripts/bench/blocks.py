"""Each kind of map of every block of a Transformer, against a plain teacher-forced forward pass of that model.

One encoder and one decoder layer, without output layer; the extra cost is the ratio less one, in forward passes.
Before it a step of beam search: the attention call with the norms of the printed layer against fairseq's own, keys,
values and the factor cached from the step before.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, base_architecture
from fairseq.modules import MultiheadAttention
from measure import Comparison, alternate, cpu_seconds

from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, swap_attention
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_CROSS, DECODER_SELF
from fairseq_norm_plugin.capture.recorder import layer_capture
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import BLOCK_KINDS, HEAD_KINDS, head_map, layer_map

BATCH, LENGTH, HEADS, DIM, LAYERS = 32, 50, 8, 512, 1
SIZES = f"{LAYERS} + {LAYERS} layers, D = {DIM}, feed-forward {4 * DIM}, B = {BATCH}, T = S = {LENGTH}"
#: Of a step: B · beam, and steps a run.
HYPOTHESES, STEPS = 160, 100


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = transformer()
    source, target = (torch.randint(4, 1000, (BATCH, LENGTH)) for _ in range(2))
    lengths = torch.full((BATCH,), LENGTH)
    plain = partial(model, src_tokens=source, src_lengths=lengths, prev_output_tokens=target, features_only=True)
    with torch.inference_mode():
        yield attention_call(model, options.runs)
    with torch.no_grad():
        for name, compute in cases():
            blocks = [block for block in BLOCK_TYPES if not (name.startswith("ff") and block == DECODER_SELF)]
            mapped = partial(listening, model, plain, [MapCapture(b, range(LAYERS), compute) for b in blocks])
            mapped()  # W_O, W_1 and what follows from them alone are kept from here on
            runs = 1 if name.startswith("ff") else options.runs
            times = alternate(partial(cpu_seconds, mapped), partial(cpu_seconds, plain), runs)
            what, against = f"forward pass with {name}", "plain forward pass"
            yield Comparison("maps of every block of a model", what, against, "s CPU", *times, note=SIZES)


def attention_call(model: TransformerModel, runs: int) -> Comparison:
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
        for side in (ours, stock):
            side()  # fills the caches
        times = alternate(partial(cpu_seconds, ours), partial(cpu_seconds, stock), runs)
    note = f"B · beam = {HYPOTHESES}, S = {LENGTH}, H = {HEADS}, D = {DIM}, one thread, float32; {STEPS} steps a run"
    what, against = "attention call with attn_n of the layer", "fairseq's attention call"
    return Comparison("one decoding step", what, against, "s CPU", *times, note=note)


def cases() -> Iterator[tuple[str, Callable[[Block], object]]]:
    """Names of what is computed of every block, and the computation."""
    yield "all attention kinds, heads too", partial(maps, kinds=[k for k in BLOCK_KINDS if k.startswith("attn")])
    for kind in BLOCK_KINDS:
        yield kind, partial(maps, kinds=[kind], heads=False)


def maps(block: Block, kinds: list[str], heads: bool = True) -> None:
    """Compute and throw away."""
    for kind in kinds:
        layer_map(block, kind)
        if heads and kind in HEAD_KINDS:
            head_map(block, kind)


def listening(model: TransformerModel, plain: Callable[[], object], captures: list[MapCapture[object]]) -> None:
    """A forward pass that ``captures`` listen to."""
    with capturing(norm_attentions(model), *captures):
        plain()
    for capture in captures:
        capture.take()


def transformer() -> TransformerModel:
    """A random post-norm Transformer in evaluation mode, its attention swapped."""
    dictionary = Dictionary()
    for word in range(1000):
        dictionary.add_symbol(str(word))
    sizes = {"embed_dim": DIM, "ffn_embed_dim": 4 * DIM, "layers": LAYERS, "attention_heads": HEADS}
    shape = {f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in sizes.items()}
    args = SimpleNamespace(**shape, max_source_positions=1024, max_target_positions=1024)
    base_architecture(args)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    model = TransformerModel.build_model(args, task)
    swap_attention(model)
    return model.eval()
