"""What the maps cost, measured side by side in one process.

First the norms of one encoder-decoder attention beside the 2020 reference way, which materialises every transformed
vector, weights it, sums over heads and takes norms, as the formulas of Kobayashi et al. (2020) say.  Then each kind of
map of every block of a Transformer beside a plain teacher-forced forward pass of that model (without output layer).
Prints medians, spread and ratios; nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel, base_architecture
from torch import Tensor

from fairseq_norm_plugin.attention import norm_attentions, swap_attention
from fairseq_norm_plugin.block_maps import BLOCK_KINDS, HEAD_KINDS, head_map, layer_map, mixing_ratio
from fairseq_norm_plugin.capture import MapCapture, capturing
from fairseq_norm_plugin.layers import BLOCK_TYPES, DECODER_SELF
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
    parser.add_argument("--layers", type=int, default=1, help="of encoder and decoder")
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(f"B = {args.batch}, H = {args.heads}, D = {args.dim}, one thread, float32")
    print(f"median (min-max) of {args.runs} runs, CPU seconds")
    print(f"python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}\n")
    against_the_reference_way(args)
    with torch.no_grad():
        against_a_forward_pass(args)


def against_the_reference_way(args: argparse.Namespace) -> None:
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


def against_a_forward_pass(args: argparse.Namespace) -> None:
    length, layers = max(args.length), args.layers
    model = transformer(args.dim, args.heads, layers)
    source, target = (torch.randint(4, 1000, (args.batch, length)) for _ in range(2))
    inputs = {"src_tokens": source, "src_lengths": torch.full((args.batch,), length), "prev_output_tokens": target}

    def plain() -> None:
        model(**inputs, features_only=True)

    attention_kinds = [kind for kind in BLOCK_KINDS if kind.startswith("attn")]
    cases: list[tuple[str, Callable[..., object]]] = [("all attention kinds, heads too", all_of(attention_kinds))]
    cases += [(kind, all_of([kind], heads=False)) for kind in BLOCK_KINDS]
    cases += [
        ("mixing ratios of the five kinds of 2021", lambda block: [mixing_ratio(block, k) for k in BLOCK_KINDS[:5]])
    ]
    print(f"\n{layers}+{layers} layers, feed-forward {4 * args.dim}, T = S = {length}: layer maps of every block")
    print("\n| maps | forward pass, s | with the maps, s | extra cost, forward passes |\n|---|---|---|---|")
    for name, compute in cases:
        blocks = [block for block in BLOCK_TYPES if not (name.startswith("ff") and block == DECODER_SELF)]

        def listening(compute: Callable[..., object] = compute, blocks: Sequence[str] = blocks) -> None:
            captures = [MapCapture(block, range(layers), compute) for block in blocks]
            with capturing(norm_attentions(model), *captures):
                plain()

        runs = 1 if name.startswith("ff") else args.runs
        listening()  # W_O, W_1 and what follows from them alone are kept from here on
        pairs = [(seconds(plain), seconds(listening)) for _ in range(runs)]
        texts = [f"{statistics.median(t):.2f} ({min(t):.2f}-{max(t):.2f})" for t in zip(*pairs)]
        extra = statistics.median((b - a) / a for a, b in pairs)
        print(f"| {name} | {texts[0]} | {texts[1]} | {extra:.2f} |", flush=True)


def all_of(kinds: Sequence[str], heads: bool = True) -> Callable[..., object]:
    def compute(block: object) -> None:
        for kind in kinds:
            layer_map(block, kind)
            if heads and kind in HEAD_KINDS:
                head_map(block, kind)

    return compute


def transformer(dim: int, heads: int, layers: int) -> TransformerModel:
    """A random post-norm Transformer in evaluation mode, its attention swapped."""
    dictionary = Dictionary()
    for word in range(1000):
        dictionary.add_symbol(str(word))
    shape = {
        f"{stack}_{name}": value
        for stack in ("encoder", "decoder")
        for name, value in (
            ("embed_dim", dim),
            ("ffn_embed_dim", 4 * dim),
            ("layers", layers),
            ("attention_heads", heads),
        )
    }
    args = SimpleNamespace(**shape, max_source_positions=1024, max_target_positions=1024)
    base_architecture(args)
    model = TransformerModel.build_model(
        args, SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    )
    swap_attention(model)
    return model.eval()


if __name__ == "__main__":
    main()
