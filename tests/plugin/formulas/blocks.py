"""Blocks of random models and of random numbers, and their vectors by slow loops."""

from dataclasses import replace
from functools import partial

import torch

from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES
from fairseq_norm_plugin.formulas.block import STAGES, Block, BlockWeights, FeedForward, Norm

#: (source, target) lengths of a batch, without </s>.
LENGTHS = [(6, 4), (3, 5), (1, 1)]


def capture_blocks(model, sample):
    """{(block type, layer): Block} of one forward pass."""
    captures = []
    for block in BLOCK_TYPES:
        layers = range(len(norm_attentions(model, block)))
        captures.append(MapCapture(block, layers, lambda block: block))
    with torch.no_grad(), capturing(norm_attentions(model), *captures):
        model(**sample["net_input"])
    return {
        (capture.block, layer): value for capture in captures for layer, value in zip(capture.layers, capture.take())
    }


def head_vectors(alpha, values, w_o):
    """Every α f(x) of each head, materialised in float64, [B, H, T, S, D]."""
    by_head = w_o.double().unflatten(1, values.shape[2:])
    return torch.einsum("bhts,bshd,ohd->bhtso", alpha.double(), values.double(), by_head)


def slow_vectors(block, stage):
    """z_ij carried to ``stage`` pair by pair and head by head, from the definitions: [S', T, D] of one sentence."""
    weights = block.weights
    heads, target, source = block.alpha.shape
    width = block.values.size(-1)
    pairs = torch.zeros(source + weights.cross, target, len(weights.w_o), dtype=block.alpha.dtype)
    for i in range(target):
        for j in range(source):
            for h in range(heads):
                w_h = weights.w_o[:, h * width : (h + 1) * width]
                pairs[j, i] += block.alpha[h, i, j] * (w_h @ block.values[j, h])
        if stage != "attn":
            pairs[source if weights.cross else i, i] += block.residual[i]
    if stage in ("attn", "attnres"):
        return pairs[:source] if stage == "attn" else pairs

    def linear_norm(vector, norm, whole):
        return norm.weight * (vector - vector.mean()) / ((whole - whole.mean()).square().mean() + norm.eps).sqrt()

    result = torch.zeros_like(pairs)
    network = weights.feed_forward
    for i in range(target):
        y = block.residual[i] + block.output[i]
        stream = (
            pairs[:, i] if weights.norm is None else torch.stack([linear_norm(v, weights.norm, y) for v in pairs[:, i]])
        )
        if stage == "attnresln":
            result[:, i] = stream
            continue
        norm = weights.norm or network.norm
        u = norm.weight * (y - y.mean()) / (y.var(unbiased=False) + norm.eps).sqrt() + norm.bias
        p = network.w_1 @ u + network.b_1
        parts = torch.stack([network.w_1 @ linear_norm(v, norm, y) for v in pairs[:, i]])
        share = parts * torch.where(p == 0, 0.0, network.activation(p) / p)
        out = share @ network.w_2.t()
        if stage != "ff":
            out = out + stream
        if stage == "ffresln" and network.final_norm is not None:
            whole = network.w_2 @ network.activation(p) + network.b_2 + (u if weights.norm is not None else y)
            out = torch.stack([linear_norm(v, network.final_norm, whole) for v in out])
        result[:, i] = out
    return result


def slow_weights(block):
    """α of one sentence, the mean of its heads, as vectors of one number, [S, T, 1]."""
    return block.alpha.mean(0).t()[..., None]


def slow_weights_with_own(block):
    """Half of α, and half of the own position (Abnar and Zuidema 2020)."""
    target = block.alpha.size(1)
    own = torch.ones(1, target) if block.weights.cross else torch.eye(target)
    halves = 0.5 * slow_weights(block)
    return torch.cat([halves, 0.5 * own[..., None]]) if block.weights.cross else halves + 0.5 * own[..., None]


def slow_along(block, directions):
    """What the z_ij of one sentence have of ``directions`` [T, D], if it is positive, as vectors of one number."""
    return torch.stack([(z * directions).sum(-1).clamp_min(0) for z in slow_vectors(block, "attn")])[..., None]


def slow_projections(block):
    y = block.residual + block.output
    return slow_along(block, y / y.norm(dim=-1, keepdim=True))


def slow_alti(block):
    """Contributions of Ferrando et al. (2022) as vectors of one number, [S', T, 1]."""
    y = block.whole("attnresln")
    gain = torch.stack(
        [(y.abs().sum(-1) - (y - z).abs().sum(-1)).clamp_min(0) for z in slow_vectors(block, "attnresln")]
    )
    return (gain / torch.where(gain.sum(0) == 0, 1.0, gain.sum(0)))[..., None]


#: Kind -> the slow oracle of its vectors in one sentence, [S', T, …]: their norms are the map.
SLOW = {
    "attn_w": slow_weights,
    "attn_p": slow_projections,
    "attn_logit": lambda block: slow_along(block, block.readout()),
    "attnres_w": slow_weights_with_own,
    **{f"{stage}_n": partial(slow_vectors, stage=stage) for stage in STAGES},
    "alti": slow_alti,
}


def bias_contribution(block, stage):
    """The bias term at ``stage``, which belongs to no token: b_O, β, b_1 and b_2, carried to it, [(B,) T, D]."""
    weights = block.weights
    result = block.carry(weights.b_o.expand_as(block.output), stage)
    added = torch.zeros_like(result)
    if stage in ("attnresln", "ffres", "ffresln") and weights.norm is not None:
        added += weights.norm.bias
    if stage in ("ff", "ffres", "ffresln"):
        network, norm = weights.network, weights.input_norm
        inner = network.b_1 + network.w_1 @ norm.bias
        added += (block.ratio * inner) @ network.w_2.t() + network.b_2
        if stage == "ffresln" and network.final_norm is not None:
            added = block.final(added) + network.final_norm.bias
    return result + added


def slow_mixing(pairs, cross, stage):
    ratios = []
    for i in range(pairs.size(1)):
        own = pairs.size(0) - 1 if cross and stage != "attn" else (None if cross else i)
        others = sum(pairs[j, i] for j in range(pairs.size(0)) if j != own)
        others = 0.0 if isinstance(others, int) else float(others.norm())
        own_norm = 0.0 if own is None else float(pairs[own, i].norm())
        ratios.append(others / (others + own_norm) if others + own_norm else 0.0)
    return torch.tensor(ratios, dtype=pairs.dtype)


def random_block(
    cross=False, before=False, activation=torch.relu, heads=3, target=4, source=4, width=5, hidden=7, **kw
):
    size = heads * width

    def random(*shape):
        return torch.randn(*shape, dtype=kw.get("dtype", torch.float64))

    norms = [Norm(random(size), random(size), 1e-5) for _ in range(2)]
    network = FeedForward(
        random(hidden, size),
        random(hidden),
        random(size, hidden),
        random(size),
        activation,
        norm=norms[1] if before else None,
        final_norm=None if before else norms[1],
    )
    weights = BlockWeights(random(size, size), random(size), heads, cross, None if before else norms[0], network)
    alpha, values = random(1, heads, target, source).softmax(-1), random(1, source, heads, width)
    predicted = random(1, target, size)
    block = Block(weights, alpha, values, random(1, target, size), predicted, readout=lambda: predicted)
    return with_output(block)


def with_output(block):
    """``block`` with the output that its attention would give."""
    mixed = torch.einsum("bhts,bshd->bthd", block.alpha, block.values).flatten(2)
    output = mixed @ block.weights.w_o.t() + block.weights.b_o
    return replace(block, output=output)


#: What :func:`extreme` knows.
EXTREMES = ("one token", "all pads but one", "dead units", "pre-activation 0", "cancelling heads")


def extreme(name, block):
    """``block`` with the extreme input ``name``."""
    alpha, values, residual = block.alpha.clone(), block.values.clone(), block.residual.clone()
    if name == "one token":
        alpha, values, residual = torch.ones_like(alpha[:, :, :1, :1]), values[:, :1], residual[:, :1]
    elif name == "all pads but one":
        alpha = torch.zeros_like(alpha)
        alpha[..., 0] = 1
    elif name == "dead units":
        block.weights.feed_forward.b_1.fill_(-1e3)
    elif name == "pre-activation 0":
        block.weights.feed_forward.b_1.zero_()
        block.weights.feed_forward.w_1.zero_()
    elif name == "cancelling heads":
        width = values.size(-1)
        block.weights.w_o[:, width : 2 * width] = block.weights.w_o[:, :width]
        alpha[:, 1] = alpha[:, 0]
        values[:, :, 1] = -values[:, :, 0] * (1 - 1e-9)
        values[:, :, 2] *= 1e-9
    return with_output(replace(block, alpha=alpha, values=values, residual=residual))
