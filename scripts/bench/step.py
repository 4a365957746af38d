"""One step of beam search: the attention call with the norms of the printed layer.

Keys, values and the factor are cached from the step before; the baseline is fairseq's own attention.  Steps take
milliseconds and alternate one by one; a run is the sum of many.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial

import torch
from blocks import transformer
from measure import Comparison, alternate, cpu_seconds

from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.capturing import capturing
from fairseq_norm_plugin.capture.layers import DECODER_CROSS
from fairseq_norm_plugin.capture.recorder import layer_capture

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


def steps(
    ours: Callable[[], object], theirs: Callable[[], object], runs: int, times: int
) -> tuple[list[float], list[float]]:
    """CPU seconds of ``times`` steps of either side, ``runs`` times, after one that fills the caches."""
    ours()
    theirs()
    sides = alternate(partial(cpu_seconds, ours), partial(cpu_seconds, theirs), runs * times)
    first, second = ([sum(values[run::runs]) for run in range(runs)] for values in sides)
    return first, second
