"""The batches of a data set, none of whose sentences is lost."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import numpy as np

logger = logging.getLogger(__name__)


def all_batches(
    batch_by_size: Callable[..., Any], indices: Any, required_batch_size_multiple: int = 1, **sizes: Any
) -> tuple[list[Any], list[Any]]:
    """fairseq's batches of a data set, and batches of the sentences that it loses.

    fairseq drops the last batch unless its size is a multiple of ``--required-batch-size-multiple``.
    """
    multiple = required_batch_size_multiple
    batches = list(batch_by_size(indices, required_batch_size_multiple=multiple, **sizes) if len(indices) else ())
    lost = indices[~np.isin(indices, [id_ for batch in batches for id_ in batch])]
    if not len(lost):
        return batches, []
    logger.info(
        "%d of %d sentences come last: fairseq alone would lose them (--required-batch-size-multiple %d)",
        *(len(lost), len(indices), multiple),
    )
    return batches, list(batch_by_size(lost, **sizes))
