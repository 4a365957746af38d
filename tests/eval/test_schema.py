import json
from typing import Optional

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from alignment_eval.errors import InputError
from alignment_eval.schema import Count, ForeignFile, check_columns, check_values
from tests.facts import facts

FILE = ForeignFile("f.json", "a thing", "make it again")


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    layers: tuple[Count, ...]


class Thing(msgspec.Struct):
    version: int
    inner: Inner
    name: Optional[str] = None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated"),
        (b'{"version": 1', "truncated"),
        (b"\xff", "malformed"),
        (b'"\xff"', "utf-8"),
        (b'"\\ud800"', "truncated"),
        (b"1e999", "out of range"),
        (b"[" * 10**6, "recursion"),
        (b"[1]", "the content is [1]: expected object"),
        (b"{}", "the content: object missing required field version"),
        (b'{"version": 2}', "version is 2: expected version 1"),
        (b'{"version": "x"}', "version is 'x': expected int"),
        (b'{"version": 1}', "the content: object missing required field inner"),
        (b'{"version": 1, "inner": {"layers": [0, -1]}}', "inner.layers[1] is -1: expected int >= 0"),
        (b'{"version": 1, "inner": {"layers": [1e30]}}', "inner.layers[0] is 1e+30: expected int"),
        (b'{"version": 1, "inner": {"layers": [], "a": 0}}', "inner: object contains unknown field a"),
        (json.dumps({"version": 1, "inner": "\x1b" * 999}).encode(), r"inner is '\x1b\x1b"),
    ],
)
def test_one_sentence(content, problem):
    with pytest.raises(InputError, match=facts(f"f.json: damaged, or not a thing ( … {problem} … ); make it")) as error:
        FILE.decode(content, Thing, version=1)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_values():
    thing = FILE.decode(b'{"inner": {"layers": [0, 5]}, "version": 1, "more": 3}', Thing, version=1)
    assert thing == Thing(1, Inner((0, 5)))
    with pytest.raises(InputError, match=facts("(inner.layers is 3: expected array)")):
        FILE.convert({"layers": 3}, Inner, "inner")


TABLE = ForeignFile("f.parquet", "a thing", "make it again")
SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("x", pa.list_(pa.float32()), nullable=False)])
EXTREMES = [0.0, -0.0, 1e-7, 1.0, 65504.0]


def test_columns_in_any_order():
    check_columns(pa.schema([SCHEMA.field("x"), SCHEMA.field("n")]), SCHEMA, TABLE)
    check_columns(
        pa.schema([SCHEMA.field("n"), pa.field("x", pa.list_(pa.field("element", pa.float32())))]), SCHEMA, TABLE
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
def test_other_columns(found, problem):
    with pytest.raises(InputError, match=facts(f"f.parquet: damaged, or not a thing ({problem}")):
        check_columns(found, SCHEMA, TABLE)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -1.0, None])
def test_floats(wrong):
    values = np.array([*EXTREMES, *([] if wrong is None else [wrong])])
    schema = pa.schema([pa.field("x", pa.float64())])
    batch = pa.record_batch([pa.array(values)], schema=schema)
    for signed in ([], ["x"]):
        if wrong is None or (wrong == -1 and signed):
            check_values(batch, schema, TABLE, signed)
        else:
            with pytest.raises(InputError, match=facts(f"column x has the value {wrong}: expected a finite number")):
                check_values(batch, schema, TABLE, signed)


def test_nulls():
    nullable = pa.schema([pa.field("x", pa.float64())])
    batch = pa.record_batch([pa.array([1.0, None])], schema=nullable)
    check_values(batch, nullable, TABLE)
    with pytest.raises(InputError, match="column x has null values"):
        check_values(batch, pa.schema([pa.field("x", pa.float64(), nullable=False)]), TABLE)
    lists = pa.schema([pa.field("x", pa.list_(pa.float32()))])
    with pytest.raises(InputError, match="column x has null values"):  # a list never holds nulls
        check_values(pa.record_batch([pa.array([[1.0, None]], lists.types[0])], schema=lists), lists, TABLE)


def test_text_that_is_not_utf8():
    schema = pa.schema([pa.field("x", pa.string())])
    text = pa.array([b"ok", b"\xff"]).view(pa.string())
    with pytest.raises(InputError, match=facts("f.parquet: … UTF8")):
        check_values(pa.record_batch([text], schema=schema), schema, TABLE)
