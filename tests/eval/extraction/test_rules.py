import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.extraction.rules import RULE_NAMES, RULES, apply_rule, grown, rule_of
from alignment_eval.maps.words import balanced_shares, two_way_shares
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


def slow_grow(shares, least):
    """Rule ``grow`` or ``balanced`` by its shares [Wt, Ws], written out cell by cell."""
    cells = [(t, s) for t in range(shares.shape[0]) for s in range(shares.shape[1])]
    large = {(t, s) for t, s in cells if shares[t, s] >= least / 0.7}
    taken = set(large)
    for t, s in cells:
        free = [not any(row == t for row, _ in large), not any(column == s for _, column in large)]
        beside = bool(large & {(t - 1, s), (t + 1, s), (t, s - 1), (t, s + 1)})
        if shares[t, s] >= least and (all(free) or (any(free) and beside)):
            taken.add((t, s))
    return {(s, t) for t, s in taken}


@pytest.mark.parametrize(
    ("rule", "shares"), [("two-way", two_way_shares), ("grow", two_way_shares), ("balanced", balanced_shares)]
)
@given(shape=SHAPES, least=st.sampled_from([0.0, 0.2, 0.35, 0.5, 0.7, 1.0]), final=st.booleans())
@example(shape=(3, 3, 4, 0), least=0.35, final=False)
def test_rules_of_two_way_shares_are_those_of_the_slow_loop(rule, shares, shape, least, final):
    scores, (target, source) = random_maps(*shape), shape[:2]
    final = final and target > 0 and source > 0
    found = links(scores, f"{rule}={least}", "mask", final)
    for index in np.ndindex(2, 3):
        cells = shares(scores[index][:, :-1])
        expected = slow_grow(cells, least) if rule != "two-way" else set(zip(*np.nonzero((cells >= least).T)))
        if final:
            expected = {(s, t) for s, t in expected if s < source - 1 and t < target - 1} | {(source - 1, target - 1)}
        assert {(int(i), int(j)) for i, j in np.argwhere(found[index])} == expected


@pytest.mark.parametrize("turn", range(4))
def test_a_large_neighbour_on_any_side_supports_a_share(turn):
    """The first row has a large share; the smaller ones beside and below it are linked, the last one is not."""
    shares, linked = np.array([[0.9, 0.3, 0.3], [0.3, 0.0, 0.0]]), [[True, True, False], [True, False, False]]
    assert np.rot90(grown(np.rot90(shares, turn), 0.25), -turn).tolist() == linked


def test_a_share_is_large_from_0_7_of_it_on():
    """0.2857 is 0.2 / 0.7: a cell of a row and a column with large shares is linked from there on."""
    for share, linked in ((0.284, False), (0.288, True)):
        assert grown(np.array([[share, 0.9], [0.9, 0.0]]), 0.2)[0, 0] == linked


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
