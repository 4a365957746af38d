"""Batches of columns as the engines of data frames pass them on: Arrow, pandas, or a mapping of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from alignment_eval.errors import InputError, shown
from alignment_eval.links.table import TYPES

#: The columns of an alignment that a batch gets; its text is in the batch.
COLUMNS = ("source_spans", "target_spans", "links", "confidences", "status")


def columns_of(batch: Any, names: Sequence[str]) -> list[list[Any]]:
    """The values of columns of a batch.

    Args:
        batch: a ``pyarrow.Table`` or ``RecordBatch``, a ``pandas.DataFrame``, or a mapping of lists or arrays.
        names: the columns.

    Raises:
        InputError: a column is missing, or columns differ in length.
    """
    for name in names:
        if name not in column_names(batch):
            known = ", ".join(map(shown, column_names(batch)))
            raise InputError(f"the batch has no column {name}, only {known}; name the columns")
    is_arrow = isinstance(batch, (pa.Table, pa.RecordBatch))
    columns = [batch[name].to_pylist() if is_arrow else list(batch[name]) for name in names]
    if len({len(column) for column in columns}) > 1:
        raise InputError(f"columns {', '.join(names)} of a batch have different lengths: expected a value in each row")
    return columns


def column_names(batch: Any) -> Sequence[str]:
    """The names of the columns of a batch."""
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        return list(batch.schema.names)
    return list(batch)


def like(batch: Any, kept: Sequence[str], found: Mapping[str, list[Any]]) -> Any:
    """A batch of the same kind, with columns that are ``kept`` as they are, and those that are ``found``."""
    if isinstance(batch, (pa.Table, pa.RecordBatch)):
        arrays = {name: batch[name] for name in kept}
        return type(batch).from_pydict(
            {**arrays, **{name: pa.array(values, TYPES[name]) for name, values in found.items()}}
        )
    if isinstance(batch, pd.DataFrame):
        return pd.DataFrame({**{name: batch[name] for name in kept}, **found}, index=batch.index)
    return {**{name: batch[name] for name in kept}, **found}
