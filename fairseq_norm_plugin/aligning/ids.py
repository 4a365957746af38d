"""Find an id that occurs twice in a column that may be larger than memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Optional

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def duplicate_id(batches: Callable[[], Iterable[pa.Array]]) -> Optional[tuple[Any, int, int]]:
    """The first id that occurs a second time, with both of its rows, from 0; None if there is none.

    Ids that increase from row to row need no memory, others 8 bytes a row.

    Args:
        batches: begins to read the column, batch by batch; called once to three times.
    """
    if _increase(batches()):
        return None
    hashes = np.sort(np.concatenate([_hashes(batch) for batch in batches()]))
    suspects = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    return _first_repeated(batches(), suspects) if len(suspects) else None


def _increase(batches: Iterable[pa.Array]) -> bool:
    last = None
    for batch in (batch for batch in batches if len(batch)):
        if last is not None and batch[0].as_py() <= last:
            return False
        if len(batch) > 1 and not pc.all(pc.less(batch[:-1], batch[1:])).as_py():
            return False
        last = batch[-1].as_py()
    return True


def _hashes(batch: pa.Array) -> NDArray[np.uint64]:
    return pd.util.hash_array(batch.to_numpy(zero_copy_only=False), categorize=False)


def _first_repeated(batches: Iterable[pa.Array], suspects: NDArray[np.uint64]) -> Optional[tuple[Any, int, int]]:
    seen: dict[Any, int] = {}
    for row, id_ in _suspected(batches, suspects):
        if id_ in seen:
            return id_, seen[id_], row
        seen[id_] = row
    return None


def _suspected(batches: Iterable[pa.Array], suspects: NDArray[np.uint64]) -> Iterator[tuple[int, Any]]:
    start = 0
    for batch in batches:
        for place in np.flatnonzero(np.isin(_hashes(batch), suspects)).tolist():
            yield start + place, batch[place].as_py()
        start += len(batch)
