"""The method that makes links, and its rules, against a slow obvious loop."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import (
    RULE_NAMES,
    RULES,
    AlignmentMethod,
    ExtractionOptions,
    MapName,
    MapNames,
    apply_rule,
    rule_of,
)
from alignment_eval.maps.words import FORMED
from tests.eval.maps.test_order import slow_two_way
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


SHAPES = st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 4), st.integers(0, 2**32 - 1))


def slow_links(scores, name, value, null, final):
    """``threshold`` and ``top-k`` of one word map [Wt, Ws + 1], written out cell by cell."""
    target_words, source_words = scores.shape[0], scores.shape[1] - 1
    links = set()
    for t in range(target_words):
        if final and t == target_words - 1:
            links.add((source_words - 1, t))
            continue
        columns = [s for s in range(source_words) if not (final and s == source_words - 1)]
        columns += [source_words] if null == "allow" else []
        total = sum(float(scores[t, s]) for s in columns)
        if name == "threshold":
            shares = {s: float(scores[t, s]) / total if total else 0.0 for s in columns}
            taken = [s for s in columns if shares[s] >= value]
        else:
            taken = sorted((s for s in columns if scores[t, s]), key=lambda s: (-scores[t, s], s))[: int(value)]
        links |= {(s, t) for s in taken if s < source_words}
    return links


def random_maps(target, source, levels, seed, leading=(2, 3)):
    """Word maps of small integers: many ties, rows of zeros, and sums that are exact in any order."""
    return np.random.default_rng(seed).integers(0, levels + 1, (*leading, target, source + 1)).astype(np.float64)


def links(scores, rule, null="allow", final=False):
    return apply_rule(rule_of(rule), scores, null, final)


@given(
    shape=SHAPES,
    rule=st.sampled_from([*(("threshold", v) for v in (0, 0.2, 0.5, 1)), *(("top-k", k) for k in range(1, 7))]),
    null=st.sampled_from(["allow", "mask"]),
    final=st.booleans(),
)
@example(shape=(3, 3, 1, 0), rule=("threshold", 0), null="allow", final=True)  # a barred word has a share of 0
def test_rules_are_those_of_the_slow_loop(shape, rule, null, final):
    scores = random_maps(*shape)
    final = final and shape[0] > 0 and shape[1] > 0
    found = links(scores, f"{rule[0]}={rule[1]}", null, final)
    assert found.shape == (2, 3, shape[1], shape[0])
    for index in np.ndindex(2, 3):
        expected = slow_links(scores[index], rule[0], rule[1], null, final)
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


@pytest.mark.parametrize("sharp", [False, True])
@given(shape=SHAPES, least=st.sampled_from([0.0, 0.2, 0.35, 0.5, 0.7, 1.0]), final=st.booleans())
def test_the_rule_of_two_way_shares_links_from_a_share_on(sharp, shape, least, final):
    """A sharp map already has the shares."""
    scores, (target, source) = random_maps(*shape) / 4, shape[:2]
    final = final and target > 0 and source > 0
    found = apply_rule(rule_of(f"two-way={least}"), scores, "mask", final, sharp=sharp)
    for index in np.ndindex(2, 3):
        cells = scores[index][:, :-1] if sharp else slow_two_way(scores[index][:, :-1])
        expected = set(zip(*np.nonzero((cells >= least).T)))
        if final:
            expected = {(s, t) for s, t in expected if s < source - 1 and t < target - 1} | {(source - 1, target - 1)}
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("argmax", "unknown rule 'argmax' … one of kobayashi2020, shift-att, threshold=SHARE, two-way=SHARE"),
        ("threshold", "rule 'threshold' … threshold=0.2"),
        ("threshold=", "rule 'threshold=' … from 0 to 1, such as threshold=0.2"),
        ("top-k=0", "rule 'top-k=0' … a number of … words, 1 or more, such as top-k=2"),
    ],
)
def test_bad_rules(text, message):
    with pytest.raises(UsageError, match=facts(message)):
        rule_of(text)


def test_names_are_the_same_however_written():
    assert rule_of("threshold=.20").name == "threshold=0.2"
    assert rule_of("top-k=02").name == "top-k=2"
    assert ExtractionOptions("attn_w", "0", rule="threshold=1e-1").rule == "threshold=0.1"
    assert all(rule_of(rule).name == rule for rule in RULES)
    assert set(RULES) < set(RULE_NAMES)
