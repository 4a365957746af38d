"""Formats one map for fairseq's ``--print-alignment``: hard or soft alignments of tokens."""

from __future__ import annotations

from torch import Tensor

HardAlignment = list[tuple[int, int]]
SoftAlignment = list[list[str]]


def map_rows(length: int, setting: str) -> range:
    """The map rows of target tokens 0, 1, …: AWO takes the row that predicts a token, AWI the row it is input to.

    AWI is undefined for the last token (``</s>``), so it has one row less.
    """
    return range(length) if setting == "awo" else range(1, length)


def hard_alignment(map_: Tensor, source: Tensor, target: Tensor, setting: str) -> HardAlignment:
    """Link each ordinary target token to the ordinary source token with the largest value.

    Like fairseq's, token indices count ordinary tokens only (``</s>`` is special); the first of equal values wins.

    Args:
        map_: [T, S], without padding.
        source: [S], true at ordinary tokens.
        target: [T], true at ordinary tokens.
        setting: ``awo`` or ``awi``.

    Returns:
        Pairs (source index, target index).
    """
    if not bool(source.any()):
        return []
    best = map_.masked_fill(~source, float("-inf")).argmax(dim=1).tolist()
    source_index, target_index = ((ordinary.cumsum(0) - 1).tolist() for ordinary in (source, target))
    rows = map_rows(len(target), setting)
    return [(source_index[best[row]], target_index[token]) for token, row in enumerate(rows) if bool(target[token])]


def soft_alignment(map_: Tensor, setting: str) -> SoftAlignment:
    """The map rows of target tokens 0, 1, … (``</s>`` included, except in AWI), in fairseq's format."""
    return [[f"{value:.6f}" for value in map_[row].tolist()] for row in map_rows(map_.size(0), setting)]
