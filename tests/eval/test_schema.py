"""Files of others are read against types and schemas; whatever is wrong becomes one sentence."""

import json
from typing import Optional

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from alignment_eval.errors import InputError
from alignment_eval.schema import Count, ForeignFile, check_columns, check_values
from tests.facts import facts

FILE = ForeignFile("f", "a thing", "make it again")


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    layers: tuple[Count, ...]


class Thing(msgspec.Struct):
    version: int
    inner: Inner
    name: Optional[str] = None


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"version": 1', "truncated"),
        (b'"\xff"', "utf-8"),
        (b"[" * 10**6, "recursion"),
        (b"[1]", "the content is [1]: expected object"),
        (b'{"version": 2}', "version is 2: expected version 1"),
        (b'{"version": 1}', "missing required field inner"),
        (b'{"version": 1, "inner": {"layers": [0, -1]}}', "inner.layers[1] is -1: expected int >= 0"),
        (b'{"version": 1, "inner": {"layers": [], "a": 0}}', "inner: … unknown field a"),
        (json.dumps({"version": 1, "inner": "\x1b" * 999}).encode(), r"inner is '\x1b\x1b"),
    ],
)
def test_json_of_another_form(content, problem):
    with pytest.raises(InputError, match=facts(f"f: damaged, or not a thing ( … {problem} … ); make it")) as error:
        FILE.decode(content, Thing, version=1)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_values():
    thing = FILE.decode(b'{"inner": {"layers": [0, 5]}, "version": 1, "more": 3}', Thing, version=1)
    assert thing == Thing(1, Inner((0, 5)))
    with pytest.raises(InputError, match=facts("(inner.layers is 3: expected array)")):
        FILE.convert({"layers": 3}, Inner, "inner")


SCHEMA = pa.schema([pa.field("n", pa.int64(), nullable=False), pa.field("x", pa.list_(pa.float32()), nullable=False)])


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (pa.schema([]), "column 'n' is missing: expected type int64"),
        (pa.schema([*SCHEMA, SCHEMA.field("n")]), "column 'n' has type int64: expected no such column, or only one"),
        (pa.schema([SCHEMA.field("n"), pa.field("x", pa.list_(pa.float16()))]), "column 'x' has type"),
    ],
)
def test_columns(found, problem):
    check_columns(pa.schema([SCHEMA.field("x"), SCHEMA.field("n")]), SCHEMA, FILE)  # in any order
    with pytest.raises(InputError, match=facts(f"f: damaged, or not a thing ({problem}")):
        check_columns(found, SCHEMA, FILE)


@pytest.mark.parametrize("wrong", [np.nan, -np.inf, -1.0])
def test_floats(wrong):
    schema = pa.schema([pa.field("x", pa.float64())])
    check_values(pa.record_batch([pa.array([0.0, 1e-7, 65504.0, None])], schema=schema), schema, FILE)
    batch = pa.record_batch([pa.array([0.0, wrong])], schema=schema)
    if wrong == -1:
        check_values(batch, schema, FILE, signed=["x"])
    with pytest.raises(InputError, match=facts(f"column x has the value {wrong}: expected a finite number")):
        check_values(batch, schema, FILE)


def test_nulls():
    column = pa.record_batch([pa.array([1.0, None])], names=["x"])
    with pytest.raises(InputError, match="column x has null values"):
        check_values(column, pa.schema([pa.field("x", pa.float64(), nullable=False)]), FILE)
