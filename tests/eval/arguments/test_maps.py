from __future__ import annotations

import argparse

import pytest

from alignment_eval.arguments.maps import (
    add_line_arguments,
    add_map_arguments,
    given_map_options,
    line_style,
    reverse_options,
    stated_options,
)
from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.formats.writing import LineStyle

WAY = ["--kind", "attn_n", "--setting", "awo", "--rule", "kobayashi2020"]


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_map_arguments(parser, "what is read")
    add_line_arguments(parser.add_argument_group("output"))
    parser.add_argument("--reverse-heads")
    return parser.parse_args([*WAY, *words])


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (("--layer", "1"), ExtractionOptions("attn_n", 1, setting="awo")),
        (("--layer", "1", "--head", "2", "--null", "mask"), ExtractionOptions("attn_n", 1, 2, "awo", null="mask")),
        (
            ("--layer", "max-norm", "--final-punctuation"),
            ExtractionOptions("attn_n", 5, None, "awo", final_punctuation=True),
        ),
        (
            ("--heads", "1.2,0:awi", "--combine", "product"),
            ExtractionOptions("attn_n", heads=parse_maps("1.2,0:awi"), combine="product", setting="awo"),
        ),
    ],
    ids=str,
)
def test_options_that_are_stated(words: tuple[str, ...], options: ExtractionOptions) -> None:
    assert stated_options(parsed(*words), max_norm=5) == options


def test_given_options_are_named() -> None:
    given = given_map_options(parsed("--layer", "0", "--final-punctuation"))
    assert given == ["--kind", "--layer", "--setting", "--rule"]


def test_maps_of_the_other_direction() -> None:
    forward = stated_options(parsed("--layer", "1"))
    assert reverse_options(parsed("--layer", "1"), forward) == forward
    assert reverse_options(parsed("--layer", "1", "--reverse-heads", "0.3"), forward).map_names == "0.3"


def test_line_styles() -> None:
    assert line_style(parsed()) == LineStyle()
    assert line_style(parsed("--confidences", "--min-confidence", "0.5")) == LineStyle(True, 0.5)
    for share in ("-0.1", "1.1"):
        with pytest.raises(UsageError, match=f"--min-confidence {share}"):
            line_style(parsed("--min-confidence", share))
