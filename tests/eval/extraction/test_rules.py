import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import RULE_NAMES, RULES, ExtractionOptions, apply_rule, rule_of
from tests.eval.maps.test_order import slow_two_way
from tests.facts import facts

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
        ("threshold", "unknown rule 'threshold' … threshold=SHARE"),
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
