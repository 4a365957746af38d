from __future__ import annotations

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import ExtractionOptions, MapName, parse_maps
from tests.facts import facts


def options(names: str, **fields: object) -> ExtractionOptions:
    return ExtractionOptions("attn_n", heads=parse_maps(names), **{"setting": "awi", **fields})


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "attn_x"}, "unknown map kind 'attn_x' … one of attn_w, attn_n"),
        ({"setting": "awx"}, "unknown setting 'awx' … one of awo, awi"),
        ({"rule": "argmax"}, "unknown rule 'argmax' … one of kobayashi2020, shift-att"),
        ({"null": "maybe"}, "unknown null 'maybe' … one of allow, mask"),
        (
            {"rule": "shift-att", "null": "allow"},
            "null 'allow' … with rule 'shift-att' … special source",
        ),
    ],
)
def test_unknown_options(options: dict[str, str], text: str) -> None:
    with pytest.raises(UsageError, match=facts(text)):
        ExtractionOptions(**{"kind": "attn_w", "layer": 0, **options})


def test_null_defaults_to_the_rule_s() -> None:
    assert ExtractionOptions("attn_w", 0).null == "allow"
    assert ExtractionOptions("attn_w", 0, rule="shift-att").null == "mask"
    assert ExtractionOptions("attn_w", 0, rule="grow=0.4").with_rule("kobayashi2020").null == "allow"


def test_names_of_maps() -> None:
    assert parse_maps("1.2, 0.3,1") == (MapName(1, 2), MapName(0, 3), MapName(1))
    assert options("1.2,0.3,1").map_names == "1.2,0.3,1"
    assert options("1.2,0.3", combine="product").fields() == {
        "kind": "attn_n",
        "heads": "1.2,0.3",
        "combine": "product",
        "floor": 1e-6,
        "setting": "awi",
        "rule": "kobayashi2020",
        "null": "allow",
        "final_punctuation": False,
    }
    assert parse_maps("1:awi, 0.3:awo") == (MapName(1, None, "awi"), MapName(0, 3, "awo"))
    # a setting that is the others' is not named, and a single map has none but its own
    assert options("1.2:awi,0.3:awo").map_names == "1.2,0.3:awo"
    assert options("1.2:awo") == ExtractionOptions("attn_n", 1, 2, "awo")
    for text in ("", "1.", "1.2.3", "-1", "a", "1,,2", "1;2", "²", "1:", "1:aw", "1:awo:awi", ":awi"):
        with pytest.raises(UsageError, match=facts("LAYER.HEAD for a head or LAYER for")):
            parse_maps(text)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "by a layer (and a head) or by heads"),
        ({"layer": 1, "heads": (MapName(1, 2),)}, "by a layer (and a head) or by heads"),
        ({"head": 1, "heads": (MapName(1, 2),)}, "head 1 … heads 1.2"),
        ({"heads": (MapName(1), MapName(1))}, "duplicate head in heads 1,1"),
        ({"heads": (MapName(1), MapName(1, None, "awi"))}, "heads 1,1:awi"),
        ({"heads": (MapName(1), MapName(1, None, "all"))}, "unknown setting 'all' … one of awo, awi"),
        ({"layer": 1, "combine": "sum"}, "unknown combination 'sum' … one of mean, product"),
    ],
)
def test_options_that_name_no_maps(fields: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError, match=facts(text)):
        ExtractionOptions("attn_n", **fields)
