from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Optional

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.schema import Count, ForeignFile
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
def test_one_sentence(content: bytes, problem: str) -> None:
    with pytest.raises(InputError, match=facts(f"f.json: damaged, or not a thing ( … {problem} … ); make it")) as error:
        FILE.decode(content, Thing, version=1)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 300


def test_values() -> None:
    thing = FILE.decode(b'{"inner": {"layers": [0, 5]}, "version": 1, "more": 3}', Thing, version=1)
    assert thing == Thing(1, Inner((0, 5)))
    with pytest.raises(InputError, match=facts("(inner.layers is 3: expected array)")):
        FILE.convert({"layers": 3}, Inner, "inner")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["layers", "inner"]), inner),
)


@given(content=values, type_=st.sampled_from([Thing, Inner, dict[str, Any], dict[str, int], list[Inner]]))
def test_any_json_is_read_or_refused(content: Any, type_: Any) -> None:
    with suppress(InputError):
        FILE.decode(json.dumps(content), type_)
