"""One step of beam search: the attention call with the norms of the printed layer, and the decoder step around it.

Keys, values and the factor are cached from the step before; the baseline is fairseq's own attention, and its decoder
step.  Steps take milliseconds and alternate one by one; a run is the sum of many.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial

import torch
from blocks import transformer
from fairseq.sequence_generator import EnsembleModel
from measure import Comparison, alternate, cpu_seconds

from fairseq_norm_plugin.capture.attention import norm_attentions, restore_attention
from fairseq_norm_plugin.capture.capturing import capturing
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.capture.recorder import layer_capture
from fairseq_norm_plugin.generation.generator import NormEnsembleModel, PrintedMap

HYPOTHESES, SOURCE, HEADS, DIM, LAYERS, STEPS = 160, 50, 8, 512, 6, 100
GROUP = "one decoding step"
NOTE = f"B · beam = {HYPOTHESES}, S = {SOURCE}, H = {HEADS}, D = {DIM}, one thread, float32; {STEPS} steps a run"


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = transformer(DIM, HEADS, LAYERS)
    with torch.inference_mode():
        for kind in ("attn_n", "attn_w"):
            yield attention_call(model, kind, options.runs)
        yield decoder_step(model, options.runs)


def attention_call(model: torch.nn.Module, kind: str, runs: int) -> Comparison:
    """The encoder-decoder attention of one layer."""
    attention = norm_attentions(model, DECODER_CROSS)[-1]
    stock = deepcopy(attention).__prepare_scriptable__()
    query, source = torch.randn(1, HYPOTHESES, DIM), torch.randn(SOURCE, HYPOTHESES, DIM)
    capture = layer_capture(kind, attention.site.number, None)
    states: dict[str, dict[str, object]] = {"ours": {}, "stock": {}}

    def ours() -> None:
        attention(query, source, source, incremental_state=states["ours"], static_kv=True)
        capture.take()

    def theirs() -> None:
        stock(query, source, source, incremental_state=states["stock"], static_kv=True)

    with capturing([attention], capture):
        seconds = steps(ours, theirs, runs, STEPS)
    what = f"attention call with {kind} of the layer"
    return Comparison(GROUP, what, "fairseq's attention call", "s CPU", *seconds, reach="≤ 1.1", note=NOTE)


def decoder_step(model: torch.nn.Module, runs: int) -> Comparison:
    """A step of fairseq's beam search without the search: all layers and the output layer."""
    stock = deepcopy(model)
    restore_attention(stock)
    printed = PrintedMap("attn_n", LAYERS - 1, None, "awo", "hard", ((), ()))
    ensembles = NormEnsembleModel([model], printed), EnsembleModel([stock])
    tokens = torch.randint(4, 1000, (HYPOTHESES, 20))
    net_input = {
        "src_tokens": torch.randint(4, 1000, (HYPOTHESES, SOURCE)),
        "src_lengths": torch.full((HYPOTHESES,), SOURCE),
    }

    def step(ensemble: EnsembleModel) -> Callable[[], object]:
        encoder_outs = ensemble.forward_encoder(net_input)
        # the self-attention's keys grow with every step: each begins at the same place
        begun: list[dict[str, dict[str, object]]] = [{}]
        ensemble.forward_decoder(tokens, encoder_outs, begun)
        return lambda: ensemble.forward_decoder(tokens, encoder_outs, [{k: dict(v) for k, v in begun[0].items()}])

    ours, theirs = (step(ensemble) for ensemble in ensembles)
    return Comparison(
        GROUP,
        f"decoder step with attn_n of layer {LAYERS - 1}",
        "fairseq's decoder step",
        "s CPU",
        *steps(ours, theirs, runs, STEPS // 10),
        note=f"{LAYERS} layers, {NOTE.replace(str(STEPS) + ' steps', str(STEPS // 10) + ' steps')}",
    )


def steps(
    ours: Callable[[], object], theirs: Callable[[], object], runs: int, times: int
) -> tuple[list[float], list[float]]:
    """CPU seconds of ``times`` steps of either side, ``runs`` times, after one that fills the caches."""
    ours()
    theirs()
    sides = alternate(partial(cpu_seconds, ours), partial(cpu_seconds, theirs), runs * times)
    first, second = ([sum(values[run::runs]) for run in range(runs)] for values in sides)
    return first, second
