"""The map that fairseq's ``--print-alignment`` shows, as hard or soft alignments of tokens."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

HardAlignment = list[tuple[int, int]]
SoftAlignment = list[list[str]]


@dataclass(frozen=True)
class PrintedMap:
    """The map that ``--print-alignment`` shows; ``heads`` None means all.

    ``specials`` are the ids, of source and target, that a hard alignment omits (tokens.special_ids).
    """

    kind: str
    layer: int
    heads: tuple[int, ...] | None
    setting: str
    style: str  # hard or soft
    specials: tuple[Collection[int], Collection[int]]

    def alignment(self, map_: Tensor, source: Tensor, target: Tensor) -> Any:
        """The alignment in the form that fairseq-generate prints."""
        if self.style == "soft":
            return soft_alignment(map_, self.setting)
        ordinary_source, ordinary_target = (
            ~torch.isin(ids, torch.tensor(sorted(special), device=ids.device))
            for ids, special in zip((source, target), self.specials)
        )
        return hard_alignment(map_, ordinary_source, ordinary_target, self.setting)


def map_rows(length: int, setting: str) -> range:
    """The map rows of target tokens 0, 1, …: AWO takes the row that predicts a token, AWI the row it is input to.

    AWI is undefined for the last token (``</s>``), so it has one row less.
    """
    return range(length) if setting == "awo" else range(1, length)


def hard_alignment(map_: Tensor, source: Tensor, target: Tensor, setting: str) -> HardAlignment:
    """Link each ordinary target token to the ordinary source token with the largest value, the first of equal ones.

    ``map_`` is [T, S], without padding; ``source`` [S] and ``target`` [T] are true at ordinary tokens.  Like fairseq's,
    indices of links (source, target) count ordinary tokens only.
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
