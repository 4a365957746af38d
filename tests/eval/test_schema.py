"""Files of others are read against types and schemas; whatever is wrong becomes one sentence."""

import json
from typing import Optional

import msgspec
import pytest

from alignment_eval.errors import InputError
from alignment_eval.schema import Count, ForeignFile
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
