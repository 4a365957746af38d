from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from alignment_eval.errors import InputError
from alignment_eval.schema import ForeignFile, check_columns, check_values, list_lengths
from tests.facts import facts

FILE = ForeignFile("f.parquet", "a thing", "make it again")
SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("x", pa.list_(pa.float32()), nullable=False)])
EXTREMES = [0.0, -0.0, 1e-7, 1.0, 65504.0]


def test_columns_in_any_order() -> None:
    check_columns(pa.schema([SCHEMA.field("x"), SCHEMA.field("n")]), SCHEMA, FILE)
    check_columns(
        pa.schema([SCHEMA.field("n"), pa.field("x", pa.list_(pa.field("element", pa.float32())))]), SCHEMA, FILE
    )


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (pa.schema([]), "column 'n' is missing: expected type int64"),
        (pa.schema([*SCHEMA, SCHEMA.field("n")]), "column 'n' has type int64: expected no such column, or only one"),
        (pa.schema([SCHEMA.field("n"), pa.field("x", pa.list_(pa.float16()))]), "column 'x' has type"),
        (pa.schema([pa.field("\x1b" * 99, pa.int8())]), r"column '\x1b"),
    ],
)
def test_other_columns(found: pa.Schema, problem: str) -> None:
    with pytest.raises(InputError, match=facts(f"f.parquet: damaged, or not a thing ({problem}")):
        check_columns(found, SCHEMA, FILE)


@pytest.mark.parametrize("type_", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("wrong", [np.nan, -np.nan, np.inf, -np.inf, -1.0, None])
def test_floats(type_: type, wrong: float | None) -> None:
    values = np.array([*EXTREMES, *([] if wrong is None else [wrong])], type_)
    schema = pa.schema([pa.field("x", pa.from_numpy_dtype(type_))])
    batch = pa.record_batch([pa.array(values)], schema=schema)
    if wrong is None:
        check_values(batch, schema, FILE)
        return
    with pytest.raises(InputError, match=facts(f"column x has the value {values[-1]}: expected a finite number, 0")):
        check_values(batch, schema, FILE)
    if wrong == -1:
        check_values(batch, schema, FILE, signed=["x"])
    else:
        with pytest.raises(InputError, match=facts(f"column x has the value {values[-1]}: expected a finite number")):
            check_values(batch, schema, FILE, signed=["x"])


def test_nulls() -> None:
    nullable = pa.schema([pa.field("x", pa.float64())])
    batch = pa.record_batch([pa.array([1.0, None])], schema=nullable)
    check_values(batch, nullable, FILE)
    with pytest.raises(InputError, match="column x has null values"):
        check_values(batch, pa.schema([pa.field("x", pa.float64(), nullable=False)]), FILE)
    lists = pa.schema([pa.field("x", pa.list_(pa.float32()))])
    with pytest.raises(InputError, match="column x has null values"):  # a list never holds nulls
        check_values(pa.record_batch([pa.array([[1.0, None]], lists.types[0])], schema=lists), lists, FILE)


def test_text_that_is_not_utf8() -> None:
    schema = pa.schema([pa.field("x", pa.string())])
    text = pa.array([b"ok", b"\xff"]).view(pa.string())
    with pytest.raises(InputError, match=facts("f.parquet: … UTF8")):
        check_values(pa.record_batch([text], schema=schema), schema, FILE)


def test_list_lengths() -> None:
    assert list_lengths(pa.array([[1, 2], [], [3]])[1:]).tolist() == [0, 1]
