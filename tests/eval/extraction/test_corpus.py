from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.corpus import align_corpus, align_pair, check_same_text, read_word_map
from alignment_eval.extraction.extract import extract, pair_map
from alignment_eval.extraction.method import JOINS, AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.extraction.rules import apply_rule, rule_of
from alignment_eval.links.sets import transpose
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import words_of
from alignment_eval.maps.words import UnitMap
from tests.facts import facts

FORWARD = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.2")
REVERSE = replace(FORWARD, heads="0")
TEXT = {7: ("a b c </s>", "x y z </s>"), 2: ("b a@@ a </s>", "y x </s>"), 5: ("a </s>", "x y y </s>")}


@pytest.fixture
def sentences(make_sentence):
    """Pairs in both directions, by id, not in order; two have no maps in a direction."""
    found = {}
    for id_, (source, target) in TEXT.items():
        other = replace(make_sentence(id_ + 10, source=target, target=source), id=id_)
        found[id_] = make_sentence(id_, source=source, target=target), other
    found[1] = make_sentence(1, status="empty"), make_sentence(1, status="empty")
    found[4] = make_sentence(4, source="a </s>", target="x </s>"), make_sentence(4, status="too long")
    return found


def pairs_of(sentences, method):
    return [
        (read_word_map(one, method.forward), read_word_map(other, method.reverse) if method.reverse else None)
        for one, other in sentences.values()
    ]


@pytest.mark.parametrize("how", [None, "union", "grow-diag-final"])
def test_links_are_those_of_each_pair_alone(sentences, how):
    method = AlignmentMethod(FORWARD, how and REVERSE, how and BidirectionalOptions(method=how))
    aligned = list(align_corpus(pairs_of(sentences, method), method))
    assert [pair.id for pair in aligned] == [7, 2, 5, 1, 4]
    statuses = {pair.id: pair.status for pair in aligned if pair.links is None}
    assert statuses == ({1: "empty", 4: "too long in the other direction"} if how else {1: "empty"})
    found = {pair.id: pair.links.links for pair in aligned if pair.links is not None}
    for id_ in TEXT:
        one, other = sentences[id_]
        expected = extract(one, FORWARD)
        assert found[id_] == (symmetrize(expected, transpose(extract(other, REVERSE)), how) if how else expected)
    assert any(found.values())


SOURCES = ("a@@ b c . </s>", "a </s>", "</s>", "<de> a b@@ c d@@ e f </s>")
TARGETS = ("x y@@ z . </s>", "x </s>", "</s>", "x@@ y z v . </s>")


def pair(make_sentence, source, target, seed):
    forward = make_sentence(seed, source=source, target=target)
    return forward, replace(make_sentence(seed + 1, source=target, target=source), id=seed)


def both(forward, reverse, how, options):
    maps = pair_map(forward, options), pair_map(reverse, options)
    aligned = align_pair(maps, AlignmentMethod(options, options, BidirectionalOptions(how)))
    return aligned.links, maps[0].links(options), maps[1].links(options)


CASES = {
    "source": st.sampled_from(SOURCES),
    "target": st.sampled_from(TARGETS),
    "seed": st.integers(0, 1000),
    "setting": st.sampled_from(["awo", "awi"]),
    "null": st.sampled_from(["allow", "mask"]),
}


@given(rule=st.sampled_from(["kobayashi2020", "shift-att", "threshold=0.2", "top-k=2"]), **CASES)
def test_mutual_is_what_both_directions_have(make_sentence, source, target, seed, setting, null, rule):
    forward, reverse = pair(make_sentence, source, target, seed)
    options = ExtractionOptions("attn_n", "1.2", "mean", setting, rule, None if rule == "shift-att" else null)
    found, one, other = both(forward, reverse, "mutual", options)
    assert found.links == extract(forward, options) & transpose(extract(reverse, options))
    assert found.links <= one.links
    assert transpose(found.links) <= other.links
    for (i, j), p in found.confidences().items():
        assert p == min(one.confidences()[i, j], other.confidences()[j, i])


@given(rule=st.sampled_from(["kobayashi2020", "threshold=0.2", "top-k=2"]), **CASES)
def test_average_cell_by_cell(make_sentence, source, target, seed, setting, null, rule):
    forward, reverse = pair(make_sentence, source, target, seed)
    options = ExtractionOptions("attn_n", "1", "mean", setting, rule, null)
    found, one, other = both(forward, reverse, "average", options)
    source_words, target_words = one.linked.shape
    average = np.zeros((target_words, source_words + 1))
    for j in range(target_words):
        for i in range(source_words):
            average[j, i] = (one.shares[j, i] + other.shares[i, j]) / 2
        average[j, source_words] = one.shares[j, source_words] / 2
    units = UnitMap(average, np.arange(target_words), np.append(np.arange(source_words), -1))
    np.testing.assert_array_equal(found.linked, apply_rule(rule_of(rule), units, null, False))
    np.testing.assert_allclose(found.shares, average / average.sum(axis=1, keepdims=True), rtol=1e-12)


@given(**{name: case for name, case in CASES.items() if name != "null"})
def test_product_cell_by_cell(make_sentence, source, target, seed, setting):
    forward, reverse = pair(make_sentence, source, target, seed)
    options = ExtractionOptions("attn_n", "1", "mean", setting, "threshold=0.2", "mask")
    found, one, other = both(forward, reverse, "product", options)
    for j in range(one.linked.shape[1]):
        products = [one.shares[j, i] * other.shares[i, j] for i in range(one.linked.shape[0])]
        shares = [value / sum(products) if sum(products) else 0.0 for value in products]
        assert {i for i, k in found.links if k == j} == {i for i, share in enumerate(shares) if share >= 0.2}
        np.testing.assert_allclose(found.shares[j], [*shares, 0], rtol=1e-12)


def test_refusals(make_sentence):
    forward, reverse = pair(make_sentence, "a b c </s>", "x y </s>", 3)
    with pytest.raises(UsageError, match=facts("join 'average' … with rule 'shift-att' … reads maps between subwords")):
        both(forward, reverse, "average", ExtractionOptions("attn_w", "0", rule="shift-att"))
    options = ExtractionOptions("attn_w", "0", null="mask")
    for how in JOINS:
        with pytest.raises(
            InputError,
            match=r"sentence 3 \(line 4\) has 3 source and 2 target words, but 2 and 3 in the other direction",
        ):
            both(forward, forward, how, options)


def test_same_text(make_sentence):
    forward, reverse = pair(make_sentence, "a@@ b c d </s>", "x y </s>", 3)
    assert words_of(forward) == (["ab", "c", "d"], ["x", "y"])
    changed = (["X", "Y"], ["ab", "?", "?"])  # target, source; case does not count: 3 of 5 are equal
    check_same_text([(words_of(forward), words_of(reverse)), (words_of(forward), changed)])
    check_same_text([(words_of(forward), changed)])
    check_same_text([])
    with pytest.raises(InputError, match=facts("only 2 of 5 words are the same in")):
        check_same_text([(words_of(forward), (["x", "y"], ["?", "?", "?"]))])
