"""What the norm maps of one encoder-decoder attention cost, beside the 2020 reference way, in one process.

The reference way materialises every transformed vector, weights it, sums over heads and takes norms, as the formulas
of Kobayashi et al. (2020) say.  Prints medians, spread and ratios; nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from fairseq_norm_plugin.norms import gram_factor, head_gram_basis, head_norms, layer_norms


def reference_way(alpha: Tensor, values: Tensor, w_o: Tensor) -> tuple[Tensor, Tensor]:
    """Head norms [B, H, T, S] and layer norms [B, T, S] by materialising α f(x), [B, H, T, S, D]."""
    heads, width = values.shape[-2:]
    transformed = torch.einsum("bshd,ohd->bhso", values, w_o.view(-1, heads, width))
    weighted = alpha.unsqueeze(-1) * transformed.unsqueeze(2)
    return weighted.norm(dim=-1), weighted.sum(dim=1).norm(dim=-1)


def fast_way(alpha: Tensor, values: Tensor, w_o: Tensor) -> tuple[Tensor, Tensor]:
    """The same, by the plugin, building the factor too."""
    factor = gram_factor(values, head_gram_basis(w_o, values.size(2)))
    return head_norms(alpha, factor), layer_norms(alpha, factor)


def seconds(way: Callable[..., object], *tensors: Tensor) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    way(*tensors)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--length", type=int, nargs="+", default=[25, 50], help="T = S")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"B = {args.batch}, H = {args.heads}, D = {args.dim}, one thread, float32")
    print(f"median (min-max) of {args.runs} runs, CPU seconds")
    print(f"python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}\n")
    print("| T = S | reference way, s | plugin, s | ratio | largest relative difference |\n|---|---|---|---|---|")
    for length in args.length:
        alpha = torch.rand(args.batch, args.heads, length, length).softmax(-1)
        values = torch.randn(args.batch, length, args.heads, args.dim // args.heads)
        w_o = torch.randn(args.dim, args.dim) / args.dim**0.5
        slow, fast = (way(alpha, values, w_o)[1] for way in (reference_way, fast_way))
        difference = float(((slow - fast) / slow).abs().max())
        # alternating, so that a drift of the machine's speed touches both alike
        case = (alpha, values, w_o)
        pairs = [(seconds(reference_way, *case), seconds(fast_way, *case)) for _ in range(args.runs)]
        texts = [f"{statistics.median(t):.3f} ({min(t):.3f}-{max(t):.3f})" for t in zip(*pairs)]
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"| {length} | {texts[0]} | {texts[1]} | {ratio:.0f} | {difference:.1e} |")


if __name__ == "__main__":
    main()
