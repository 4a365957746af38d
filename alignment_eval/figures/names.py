"""What figures call maps, layers and blocks."""

from __future__ import annotations

_KINDS = {
    "attn_w": "weights",
    "attn_n": "norms",
    "attn_n_merged": "norms of words",
    "attnres_w": "weights, residual",
    "attnres_n": "norms, residual",
    "attnresln_n": "norms, residual, layer norm",
    "ff_n": "norms, feed-forward",
    "ffres_n": "norms, feed-forward, residual",
    "ffresln_n": "norms, feed-forward, residual, layer norm",
    "alti": "ALTI",
    "rollout_w": "rollout of weights",
    "alti_rollout": "ALTI rollout",
}
_BLOCKS = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "encoder-decoder attention",
}
_NULLS = {"allow": "null allowed", "mask": "null masked"}


def kind_name(kind: str) -> str:
    """A kind of map in words: ``norms`` for ``attn_n``."""
    return _KINDS.get(kind, kind)


def block_name(block: str) -> str:
    """A type of block in words."""
    return _BLOCKS.get(block, block)


def rule_name(rule: str, null: str) -> str:
    """A rule with its treatment of null."""
    return f"rule {rule}, {_NULLS.get(null, null)}"


def place_name(layer: int, head: int | None = None) -> str:
    """``layer 2, head 3`` or ``layer 2``, both counted from 0."""
    return f"layer {layer}" if head is None else f"layer {layer}, head {head}"


def layer_label(layer: int) -> str:
    """``layer 1 (2nd)``: the number that fairseq counts from 0, and the place that papers count from 1."""
    place = layer + 1
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"layer {layer} ({place}{ending})"
