"""The norms of one encoder-decoder attention against the reference way: CPU time and memory.

The reference way of Kobayashi et al. (2020) materialises every transformed vector, weights it, sums over heads and
takes norms.  Ours begins at W_O each time, as a layer that is seen for the first time does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial

import torch
from measure import Comparison, alternate, cpu_seconds, process
from torch import Tensor

from fairseq_norm_plugin.maps.norms import gram_factor, head_gram_basis, head_norms, layer_norms

GROUP = "norms of one attention"
BATCH, HEADS, DIM = 32, 8, 512
#: Batches and lengths of which time and memory are measured.
SHAPES = [*((8, length) for length in (25, 100, 400, 800)), *((batch, 100) for batch in (1, 16, 64))]
Maps = tuple[Tensor, Tensor]


def reference_way(alpha: Tensor, values: Tensor, w_o: Tensor) -> Maps:
    """Head norms [B, H, T, S] and layer norms [B, T, S] by materialising α f(x), [B, H, T, S, D]."""
    heads, width = values.shape[-2:]
    transformed = torch.einsum("bshd,ohd->bhso", values, w_o.view(-1, heads, width))
    weighted = alpha.unsqueeze(-1) * transformed.unsqueeze(2)
    return weighted.norm(dim=-1), weighted.sum(dim=1).norm(dim=-1)


def plugin_way(alpha: Tensor, values: Tensor, w_o: Tensor) -> Maps:
    """The same by the plugin, building the factor too."""
    factor = gram_factor(values, head_gram_basis(w_o, values.size(2)))
    return head_norms(alpha, factor), layer_norms(alpha, factor)


def sentence_by_sentence(way: Callable[[Tensor, Tensor, Tensor], Maps], *case: Tensor) -> Maps:
    """``way`` with a batch of one, so that it fits into memory."""
    alpha, values, w_o = case
    results = [way(alpha[i : i + 1], values[i : i + 1], w_o) for i in range(len(alpha))]
    heads, layers = zip(*results)
    return torch.cat(heads), torch.cat(layers)


WAYS = {"ours": plugin_way, "reference": reference_way}


def case_of(batch: int, length: int) -> tuple[Tensor, Tensor, Tensor]:
    """α [B, H, T, S], values [B, S, H, d] and W_O [D, D], T = S = ``length``."""
    torch.manual_seed(0)
    alpha = torch.rand(batch, HEADS, length, length)
    alpha.div_(alpha.sum(-1, keepdim=True))
    return alpha, torch.randn(batch, length, HEADS, DIM // HEADS), torch.randn(DIM, DIM) / DIM**0.5


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    torch.set_num_threads(1)
    with torch.inference_mode():
        for length, aimed in ((50, "≥ 35 times less"), (200, "≥ 75 times less")):
            yield time(length, aimed, options.runs)
        for batch, length in SHAPES:
            yield by_shape(batch, length, options.runs)
    for length, aimed in ((50, "≤ 1/20"), (200, "≤ 1/80")):
        yield memory(length, aimed, options.runs)


def time(length: int, aimed: str, runs: int) -> Comparison:
    """CPU time of ours and of the reference way, which takes a sentence at a time when they are long."""
    case = case_of(BATCH, length)
    whole = length <= 50  # at 200 the reference way of a batch takes 21 GB
    other = reference_way if whole else partial(sentence_by_sentence, reference_way)
    first = [tensor[:1] for tensor in case[:2]] + [case[2]]
    ours, theirs = (way(*first)[1] for way in (plugin_way, reference_way))
    difference = float(((ours - theirs) / theirs).abs().max())
    timed, baseline = (partial(cpu_seconds, partial(way, *case)) for way in (plugin_way, other))
    what, against = f"head and layer norms, T = S = {length}", "reference way" + ", a sentence at a time" * (not whole)
    note = f"B = {BATCH}, H = {HEADS}, D = {DIM}, one thread, float32; largest relative difference {difference:.1e}"
    return Comparison(GROUP, what, against, "s CPU", *alternate(timed, baseline, runs), reach=aimed, note=note)


def by_shape(batch: int, length: int, runs: int) -> Comparison:
    """CPU time of ours at one size."""
    way = partial(plugin_way, *case_of(batch, length))
    way()
    extra = f"peak extra memory {extra_memory('ours', batch, length):.3g} MiB"
    seconds = [cpu_seconds(way) for _ in range(runs)]
    return Comparison("length and batch", f"B = {batch}, T = S = {length}", "", "s CPU", seconds, note=extra)


def memory(length: int, aimed: str, runs: int) -> Comparison:
    """Peak extra memory of ours and of the reference way, each in a process of its own."""
    batch = BATCH if length <= 50 else 2  # of the reference, whose tensors grow in proportion to B
    factor = BATCH // batch
    ours, theirs = alternate(
        lambda: extra_memory("ours", BATCH, length), lambda: factor * extra_memory("reference", batch, length), runs
    )
    against = "reference way" + (f", B = {batch} times {factor}" if factor > 1 else "")
    note = f"resident size; the results alone are {BATCH * (HEADS + 1) * length**2 * 4 / 2**20:.0f} MiB"
    return Comparison(GROUP, f"peak extra memory, T = S = {length}", against, "MiB", ours, theirs, aimed, note)


def extra_memory(way: str, batch: int, length: int) -> float:
    """MiB by which the largest resident size of a process grows over its inputs."""
    peaks = [process([sys.executable, __file__, name, str(batch), str(length)]).peak for name in (way, "inputs")]
    return peaks[0] - peaks[1]


def child(way: str, batch: str, length: str) -> None:
    """One way in this process, or only its inputs."""
    torch.set_num_threads(1)
    with torch.inference_mode():
        if way in WAYS:
            WAYS[way](*case_of(int(batch), int(length)))
        else:
            plugin_way(*case_of(1, 2))  # loads what a library loads at its first call
            case_of(int(batch), int(length))


if __name__ == "__main__":
    child(*sys.argv[1:])
