"""Align raw sentence pairs so that a pair that fails costs only itself, not the pairs beside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from alignment_eval.errors import printable
from alignment_eval.report.alignment_view import Alignment
from fairseq_norm_plugin.aligner.aligner import Aligner


def align_separately(aligner: Aligner, pairs: Mapping[int, tuple[Any, Any]]) -> dict[int, Alignment]:
    """Align source-target pairs of raw lines, by id; they are sorted by length together.

    If they cannot be aligned together, each half is aligned by itself, and so on, until the pairs that fail are found.

    Args:
        aligner: aligns them; it must not count a word table.
        pairs: source and target of each pair; what is no text gets no links, and ``not text`` as its status.
    """
    texts = {id_: pair for id_, pair in pairs.items() if all(isinstance(side, str) for side in pair)}
    aligned = _aligned(aligner, texts)
    return {id_: aligned.get(id_) or Alignment("", "", (), (), [], status="not text") for id_ in pairs}


def _aligned(aligner: Aligner, pairs: Mapping[int, tuple[str, str]]) -> dict[int, Alignment]:
    source, target = aligner.directions[0].pipelines
    try:
        lines = {id_: (source.read(line), target.read(other)) for id_, (line, other) in pairs.items()}
        aligned = aligner.align([lines.items()])
        return {pair.id: Alignment.of(*lines[pair.id], pair) for pair in aligned}
    except (MemoryError, torch.OutOfMemoryError):  # of no single pair
        raise
    except Exception as error:
        if len(pairs) == 1:
            (id_,) = pairs
            reason = printable((str(error) or type(error).__name__)[:300])
            return {id_: Alignment(*pairs[id_], (), (), [], status=f"failed: {reason}")}
    items = list(pairs.items())
    middle = len(items) // 2
    return {**_aligned(aligner, dict(items[:middle])), **_aligned(aligner, dict(items[middle:]))}
