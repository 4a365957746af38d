from dataclasses import replace

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapName, MapNames
from alignment_eval.maps.words import FORMED
from tests.facts import facts

TWO_WAY = ExtractionOptions("attn_n", "1.2,0:awi", "product", setting="awo", rule="two-way=.3")
KOBAYASHI = ExtractionOptions("attn_w", "1.2")


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reverse": TWO_WAY}, "both or neither"),
        ({"reverse": TWO_WAY, "join": "sum"}, "unknown join 'sum' … mutual, average, product, intersection"),
        ({"forward": KOBAYASHI, "sharpening": FORMED}, "rule 'kobayashi2020', null 'allow'"),
        ({"forward": KOBAYASHI, "reverse": KOBAYASHI, "join": "product"}, "join 'product' … with null 'allow'"),
        ({"reverse": TWO_WAY, "join": "mutual", "sharpening": FORMED}, "join 'mutual'"),
    ],
    ids=str,
)
def test_options_that_do_not_go_together(options, text):
    with pytest.raises(UsageError, match=facts(text)):
        AlignmentMethod(**{"forward": TWO_WAY, **options})


def test_fields_say_what_changes_links():
    def fields(*method, **options):
        return AlignmentMethod(*method, **options).fields()

    other = replace(TWO_WAY, heads="2,3", combine="mean")
    both = fields(TWO_WAY, other, "product", sharpening=FORMED)
    ways = {"join": "product", "reverse_heads": "2,3", "reverse_combine": "mean", "table": "none"}
    assert both == {**TWO_WAY.fields(), **ways}
    # how maps are combined does not matter where there is one
    one = fields(TWO_WAY, replace(other, heads="2"), "product")
    assert one == {**TWO_WAY.fields(), "join": "product", "reverse_heads": "2"}
    for join, variant in (("grow-diag", "moses"), ("union", None)):  # all variants agree on the latter
        ways = {"symmetrized": join, "variant": variant, "reverse_heads": "1.2"}
        assert fields(KOBAYASHI, KOBAYASHI, join) == {**KOBAYASHI.fields(), **ways}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"kind": "attn_x"}, "unknown map kind 'attn_x' … one of attn_w, attn_n"),
        ({"null": "maybe"}, "unknown null 'maybe' … one of allow, mask"),
        ({"heads": ()}, "no maps are named"),
        ({"heads": "1,1"}, "duplicate head in heads 1,1"),
        ({"heads": (MapName(1), MapName(1, None, "all"))}, "unknown setting 'all' … one of awo, awi"),
        ({"combine": "sum"}, "unknown combination 'sum' … one of mean, product"),
    ],
)
def test_unknown_options(options, text):
    with pytest.raises(UsageError, match=facts(text)):
        ExtractionOptions(**{"kind": "attn_n", "heads": "1", **options})


def test_names_of_maps():
    assert MapNames("1.2, 0.3,1") == (MapName(1, 2), MapName(0, 3), MapName(1))
    assert str(ExtractionOptions("attn_n", "1.2,0.3,1").heads) == "1.2,0.3,1"
    assert ExtractionOptions("attn_n", "1.2,0.3", combine="product").fields() == {
        "kind": "attn_n",
        "heads": "1.2,0.3",
        "combine": "product",
        "floor": 1e-6,
        "setting": "awi",
        "rule": "kobayashi2020",
        "null": "allow",
        "final_punctuation": False,
    }
    assert MapNames("1:awi, 0.3:awo") == (MapName(1, None, "awi"), MapName(0, 3, "awo"))
    # a setting that is the others' is not named, and a single map has none but its own
    assert str(ExtractionOptions("attn_n", "1.2:awi,0.3:awo").heads) == "1.2,0.3:awo"
    assert str(ExtractionOptions("attn_n", "1.2:awi,0.3", setting="awo").heads) == "1.2:awi,0.3"
    assert ExtractionOptions("attn_n", "1.2:awo") == ExtractionOptions("attn_n", "1.2", setting="awo")
    for text in ("", "1.", "1.2.3", "-1", "a", "1,,2", "1;2", "²", "1:", "1:aw", "1:awo:awi", ":awi"):
        with pytest.raises(UsageError, match=facts("LAYER.HEAD for a head or LAYER for")):
            MapNames(text)
