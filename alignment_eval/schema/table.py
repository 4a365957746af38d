"""Checks tables that were read from Parquet against the schema that they should have."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from alignment_eval.errors import printable, shown
from alignment_eval.schema.foreign import ForeignFile

#: The bits of infinity in each type of values: those of finite numbers from 0 on are smaller, all others larger.
_INFINITY = {type_: np.array(np.inf, type_).view(f"u{np.dtype(type_).itemsize}") for type_ in ("f2", "f4", "f8")}


def check_columns(found: pa.Schema, expected: pa.Schema, file: ForeignFile) -> None:
    """Check the names and types of columns, in any order.

    Raises:
        InputError: a column is missing, unknown, duplicate or of another type.
    """
    types = dict(zip(expected.names, expected.types))
    for name, type_ in zip(found.names, found.types):
        known = types.pop(name, None)
        if known != type_:
            wanted = "no such column, or only one" if known is None else known
            raise file.error(f"column {shown(name)} has type {type_}: expected {wanted}")
    for name, type_ in types.items():
        raise file.error(f"column {shown(name)} is missing: expected type {type_}")


def check_values(batch: pa.RecordBatch, expected: pa.Schema, file: ForeignFile, signed: Collection[str] = ()) -> None:
    """Check the values of columns of the right types.

    Args:
        batch: the columns.
        expected: their schema; it says which may hold nulls.
        file: the file that they are from.
        signed: the columns of floats that may be below 0.

    Raises:
        InputError: a text is not UTF-8, a list holds a null, or a column that must not; or a float is NaN, infinite
            or below 0.
    """
    try:
        batch.validate(full=True)
    except pa.ArrowException as error:
        raise file.error(printable(str(error), 200)) from error
    for name, column in zip(batch.schema.names, batch.columns):
        values = column.values if pa.types.is_list(column.type) else column
        nullable = values is column and expected.field(name).nullable
        if not nullable and (column.null_count or values.null_count):
            raise file.error(f"column {name} has null values")
        if pa.types.is_floating(values.type):
            _check_floats(values.drop_null() if nullable else values, name, name in signed, file)


def _check_floats(column: pa.Array, name: str, signed: bool, file: ForeignFile) -> None:
    values = column.to_numpy(zero_copy_only=False)
    infinity = _INFINITY[values.dtype.str[1:]]
    if values.view(infinity.dtype).max(initial=0) < infinity:
        return
    wrong = ~np.isfinite(values) if signed else ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        expected = "a finite number" if signed else "a finite number, 0 or more"
        raise file.error(f"column {name} has the value {values[wrong][0]}: expected {expected}")


def list_lengths(column: pa.ListArray) -> NDArray[np.int32]:
    """The number of values in each list of a column without nulls."""
    lengths: NDArray[Any] = np.diff(column.offsets.to_numpy())
    return lengths
