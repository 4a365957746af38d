"""What is read from a model by default."""

from __future__ import annotations

import pytest

from alignment_eval.extraction.defaults import (
    FEWEST_PAIRS,
    both_directions,
    has_formed,
    method_for,
    one_direction,
    product_of,
    upper_layers,
)
from alignment_eval.extraction.options import MapName, parse_maps

FORMED = product_of([MapName(0, 0, "awi"), MapName(2, None, "awo")])
UPPER = upper_layers(range(3))


def test_the_maps_of_a_formed_model_and_of_another():
    assert (FORMED.maps, FORMED.combine, FORMED.kind) == (parse_maps("0.0:awi,2"), "product", "attn_n")
    assert (UPPER.maps, UPPER.combine, UPPER.setting) == (parse_maps("1,2"), "mean", "awo")
    assert upper_layers([0]).maps == (MapName(0),)
    assert has_formed(FORMED)
    assert not has_formed(UPPER)


@pytest.mark.parametrize(
    ("forward", "reverse", "pairs", "rule", "passes"),
    [
        (FORMED, None, FEWEST_PAIRS, "balanced=0.3", 2),
        (FORMED, None, FEWEST_PAIRS - 1, "balanced=0.25", 0),
        (FORMED, None, None, "balanced=0.25", 0),
        (UPPER, None, FEWEST_PAIRS, "balanced=0.35", 2),
        (UPPER, None, 1, "balanced=0.25", 0),
        (FORMED, FORMED, 1, "grow=0.4", 0),
        (FORMED, FORMED, 10**6, "grow=0.4", 0),  # one pair as within a million
        (FORMED, UPPER, FEWEST_PAIRS, "grow=0.4", 2),
        (UPPER, FORMED, None, "grow=0.4", 0),
    ],
)
def test_the_method_by_text_and_models(forward, reverse, pairs, rule, passes):
    method = method_for(forward, reverse, pairs)
    assert (method.forward.rule, method.lexicon_passes) == (rule, passes)
    assert method.forward.maps == forward.maps
    if reverse is None:
        assert method.both is None
    else:
        assert (method.reverse.maps, method.reverse.rule) == (reverse.maps, rule)
        assert method.both.join == "product"


def test_shares_do_not_depend_on_what_was_given_before():
    again = both_directions(FORMED.with_rule("two-way=0.9"), UPPER, lexicon=False)
    assert again == both_directions(FORMED, UPPER, lexicon=False)


def test_a_stated_share():
    assert one_direction(FORMED, lexicon=False, share=0.4).forward.rule == "balanced=0.4"
    assert one_direction(FORMED, lexicon=True, share=0.4).forward.rule == "balanced=0.45"
    both = both_directions(FORMED, UPPER, lexicon=False, share=0.5)
    assert (both.forward.rule, both.reverse.rule) == ("grow=0.5", "grow=0.5")
