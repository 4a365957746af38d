"""Align raw sentence pairs so that a pair that fails costs only itself, not the pairs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from alignment_eval.errors import printable
from alignment_eval.extraction.corpus import AlignedPair
from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.aligner.direction import Direction

#: The status of a pair whose source or target is no text, such as a null.
NOT_TEXT = "not text"
#: How the status of a pair begins whose alignment raised an error.
FAILED = "failed: "


def align_separately(
    aligner: Aligner, direction: Direction, pairs: Mapping[int, tuple[Any, Any]]
) -> dict[int, AlignedPair]:
    """Align source-target pairs of raw lines, by id; they are sorted by length together.

    If they cannot be aligned together, each half is aligned by itself, and so on, until the pairs that fail are found.

    Args:
        aligner: aligns them; it must not count a lexicon.
        direction: the source-target model, which reads the lines.
        pairs: source and target of each pair; what is no text gets no links, and :data:`NOT_TEXT` as its status.

    Raises:
        torch.OutOfMemoryError: a batch does not fit into GPU memory.
    """
    texts = {id_: pair for id_, pair in pairs.items() if all(isinstance(side, str) for side in pair)}
    found = _aligned(aligner, direction, texts)
    return {id_: found.get(id_) or AlignedPair(id_, None, NOT_TEXT) for id_ in pairs}


def _aligned(aligner: Aligner, direction: Direction, pairs: Mapping[int, tuple[str, str]]) -> dict[int, AlignedPair]:
    try:
        window = [(id_, (direction.read(one, 0), direction.read(other, 1))) for id_, (one, other) in pairs.items()]
        return {pair.id: pair for pair in aligner.align([window])}
    except (MemoryError, torch.OutOfMemoryError):  # of no single pair
        raise
    except Exception as error:
        if len(pairs) == 1:
            (id_,) = pairs
            return {id_: AlignedPair(id_, None, FAILED + printable((str(error) or type(error).__name__)[:300]))}
    items = list(pairs.items())
    middle = len(items) // 2
    return {
        **_aligned(aligner, direction, dict(items[:middle])),
        **_aligned(aligner, direction, dict(items[middle:])),
    }
