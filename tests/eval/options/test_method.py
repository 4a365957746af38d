from __future__ import annotations

import argparse

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import BidirectionalOptions, ExtractionOptions, parse_maps
from alignment_eval.options.method import add_map_arguments, stated_method, states_maps

PRODUCT = BidirectionalOptions("product")


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_map_arguments(parser, "what is read")
    parser.add_argument("--reverse-heads")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (
            ("--heads", "1.2", "--kind", "attn_w", "--setting", "awi", "--rule", "kobayashi2020", "--null", "mask"),
            ExtractionOptions("attn_w", 1, 2, "awi", null="mask"),
        ),
        (
            ("--heads", "max-norm", "--final-punctuation", "--rule", "kobayashi2020"),
            ExtractionOptions("attn_n", 5, None, "awo", final_punctuation=True),
        ),
        (
            ("--heads", "1.2,0:awi", "--combine", "product", "--rule", "kobayashi2020"),
            ExtractionOptions("attn_n", heads=parse_maps("1.2,0:awi"), combine="product", setting="awo"),
        ),
    ],
    ids=str,
)
def test_options_that_are_stated(words, options):
    args = parsed(*words)
    assert states_maps(args)
    assert stated_method(args, None, 0, max_norm=5).forward == options


def test_two_directions():
    method = stated_method(parsed("--heads", "1"), PRODUCT, 2)
    assert (method.forward.rule, method.reverse, method.both) == ("grow=0.4", method.forward, PRODUCT)
    assert method.lexicon_passes == 2
    assert stated_method(parsed("--heads", "1"), BidirectionalOptions("average"), 0).forward.rule == "grow=0.25"
    other = stated_method(parsed("--heads", "1", "--reverse-heads", "0.3"), BidirectionalOptions("mutual"), 0).reverse
    assert other is not None
    assert (other.map_names, other.rule) == ("0.3", "balanced=0.25")


def test_maps_and_profile():
    assert not states_maps(parsed("--rule", "top-k=2", "--profile", "p", "--no-final-punctuation"))
    assert states_maps(parsed("--heads", "1", "--profile", "none"))
    for words in (("--heads", "1", "--profile", "p"), ("--combine", "mean"), ("--reverse-heads", "1")):
        with pytest.raises(UsageError, match="--heads"):
            states_maps(parsed(*words))
