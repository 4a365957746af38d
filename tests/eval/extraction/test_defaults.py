"""What is read from a model by default."""

import pytest

from alignment_eval.extraction.defaults import (
    FEWEST_PAIRS,
    PASSES,
    both_directions,
    has_formed,
    one_direction,
    product_of,
    upper_layers,
    wants_word_table,
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
    ("maps", "pairs", "wanted"),
    [
        ([FORMED], 10**6, False),  # one pair as within a million
        ([FORMED, FORMED], 10**6, False),
        ([UPPER], FEWEST_PAIRS, True),
        ([FORMED, UPPER], FEWEST_PAIRS, True),
        ([UPPER, FORMED], FEWEST_PAIRS, True),
        ([UPPER], FEWEST_PAIRS - 1, False),
        ([UPPER], None, False),
    ],
)
def test_a_word_table_by_text_and_models(maps, pairs, wanted):
    assert wants_word_table(maps, pairs) == wanted


@pytest.mark.parametrize(("maps", "without", "rule"), [(FORMED, 0.25, "balanced=0.3"), (UPPER, 0.25, "balanced=0.35")])
def test_a_word_table_takes_a_larger_share(maps, without, rule):
    with_one = with_word_table(one_direction(maps, word_table=False, share=without))
    assert with_one == one_direction(maps, word_table=True, share=without)
    assert (with_one.forward.rule, with_one.forward.heads, with_one.word_table_passes) == (rule, maps.heads, PASSES)


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
