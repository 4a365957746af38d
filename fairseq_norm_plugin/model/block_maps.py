"""Maps of every block of a type, of any kind, for one sentence or sentence pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from alignment_eval.maps.kinds import KINDS, block_kinds
from alignment_eval.maps.sentence import Array
from alignment_eval.maps.words import require_known
from fairseq_norm_plugin.capture.attention import MapCapture, capturing, norm_attentions, teacher_forcing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES
from fairseq_norm_plugin.capture.recorder import BatchMaps, Quantities
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import head_map, layer_map, mixing_ratio
from fairseq_norm_plugin.process import enough_threads


@dataclass(frozen=True)
class BlockMaps:
    """The maps of one block type for one sentence (pair).

    Attributes:
        block: block type (capture.layers.BLOCK_TYPES).
        kind: map kind.
        layers: layer maps, float32 [L, T, S]; for encoder-decoder attention, kinds with a residual connection have an
            additional last column for it.
        heads: maps of single heads, [L, H, T, S]; None for kinds without.
        mixing_ratio: [L, T], from 0 to 1; None for kinds without.
        rows: the T tokens of the rows; in the decoder, its inputs.
        columns: the S tokens of the columns.
    """

    block: str
    kind: str
    layers: Array
    heads: Array | None
    mixing_ratio: Array | None
    rows: tuple[str, ...]
    columns: tuple[str, ...]


def block_maps_of(
    models: Sequence[Any],
    inputs: dict[str, Any],
    block: str,
    kind: str,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
) -> BlockMaps:
    """Compute the maps of ``kind`` of all blocks of type ``block`` over ``inputs``: the mean over ``models``."""
    require_known("block type", block, BLOCK_TYPES)
    require_known("map kind", kind, block_kinds())
    maps = BatchMaps()
    for model in models:
        numbers = [attention.site.number for attention in norm_attentions(model, block)]
        capture = MapCapture(block, numbers, partial(_maps_of, kind=kind))
        threads = enough_threads([model], len(rows) + len(columns))
        with torch.no_grad(), threads, teacher_forcing(model), capturing(norm_attentions(model), capture):
            model(**inputs, features_only=True)
        maps.add(capture.take())
    found = {name: of_batch[0] for name, of_batch in maps.means().items()}
    return BlockMaps(block, kind, found["layers"], found.get("heads"), found.get("ratio"), rows, columns)


def _maps_of(block: Block, kind: str) -> Quantities:
    """The layer map of a block, and the maps of its heads and the mixing ratio if the kind has them."""
    found = {"layers": layer_map(block, kind)}
    if KINDS[kind].heads:
        found["heads"] = head_map(block, kind)
    if KINDS[kind].mixing:
        found["ratio"] = mixing_ratio(block, kind)
    return found
