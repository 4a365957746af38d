"""What figures and pages call maps, layers and blocks, and how they show words."""

from __future__ import annotations

from collections.abc import Sequence

from alignment_eval.errors import printable
from alignment_eval.maps.kinds import KINDS

#: Longest label, in characters.
_LONGEST = 30
_BLOCKS = {
    "encoder.self": "encoder self-attention",
    "decoder.self": "decoder self-attention",
    "decoder.cross": "encoder-decoder attention",
}


def kind_name(kind: str) -> str:
    """A kind of map in words: ``norms`` for ``attn_n``."""
    return KINDS[kind].label if kind in KINDS else kind


def block_name(block: str) -> str:
    """A type of block in words."""
    return _BLOCKS.get(block, block)


def rule_name(rule: str, null: str) -> str:
    """A rule with its treatment of null."""
    return f"rule {rule}, null {'allowed' if null == 'allow' else 'masked'}"


def place_name(layer: int, head: int | None = None) -> str:
    """``layer 2, head 3`` or ``layer 2``, both counted from 0."""
    return f"layer {layer}" if head is None else f"layer {layer}, head {head}"


def layer_label(layer: int) -> str:
    """``layer 1 (2nd)``: the number that fairseq counts from 0, and the place that papers count from 1."""
    place = layer + 1
    ending = "th" if place % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(place % 10, "th")
    return f"layer {layer} ({place}{ending})"


def label_of(text: str, longest: int = _LONGEST) -> str:
    """``text`` as it is shown (:func:`visible`), shortened if it is long."""
    text = visible(text)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def shortened(words: Sequence[str]) -> str:
    """A sentence on one line, shortened if it is long."""
    return label_of(" ".join(words), 40)


def visible(text: str) -> str:
    r"""``text`` with characters that are invisible or reorder text written like ``\u200b``, but for joiners."""
    return "".join(c if c in "\u200c\u200d" else printable(c) for c in text)
