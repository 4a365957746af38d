"""What is read from a model by default; profiles/test_chosen.py has when a word table is counted."""

import pytest

from alignment_eval.extraction.defaults import (
    both_directions,
    has_formed,
    one_direction,
    product_of,
    upper_layers,
    with_word_table,
)
from alignment_eval.extraction.method import AlignmentMethod, MapName, parse_maps

FORMED = product_of([MapName(0, 0, "awi"), MapName(2, None, "awo")])
UPPER = upper_layers(range(3))


def test_the_maps_of_a_formed_model_and_of_another():
    assert (FORMED.heads, FORMED.combine, FORMED.kind) == (parse_maps("0.0:awi,2"), "product", "attn_n")
    assert (UPPER.heads, UPPER.combine, UPPER.setting) == (parse_maps("1,2"), "mean", "awo")
    assert upper_layers([0]).heads == (MapName(0),)
    assert has_formed(FORMED)
    assert not has_formed(UPPER)


@pytest.mark.parametrize(
    "method",
    [
        one_direction(FORMED, word_table=True),
        both_directions(FORMED, FORMED, word_table=False),
        AlignmentMethod(FORMED.with_rule("two-way=0.25")),
    ],
)
def test_other_shares_stay_with_a_word_table(method):
    assert with_word_table(method) == method


def test_a_stated_share():
    assert one_direction(FORMED, word_table=False, share=0.4).forward.rule == "balanced=0.4"
    assert one_direction(FORMED, word_table=True, share=0.4).forward.rule == "balanced=0.45"
    assert one_direction(FORMED, word_table=True, share=0.55).forward.rule == "balanced=0.6"  # the sum is not quite 0.6
    both = both_directions(FORMED, UPPER, word_table=False, share=0.5)
    assert (both.forward.rule, both.reverse.rule) == ("grow=0.5", "grow=0.5")
