"""From word maps to alignments: both directions, lexical tables, in whatever order the pairs come."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.align_pairs import align_pairs
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import WordMap, check_same_text, confidences, extract, links_of, read_word_map
from alignment_eval.extraction.lexical_table import count_lexical_table, supported
from alignment_eval.extraction.method import JOINS, AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.rules import apply_rule, rule_of
from alignment_eval.links.formats import transpose
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import words_of
from alignment_eval.maps.words import two_way_shares
from tests.facts import facts

FORWARD = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.2")
REVERSE = replace(FORWARD, heads="0")
TEXT = {7: ("a b c </s>", "x y z </s>"), 2: ("b a@@ a </s>", "y x </s>"), 5: ("a </s>", "x y y </s>")}


def read(sentence, options=FORWARD):
    return read_word_map(sentence, options, keep=True)


@pytest.mark.parametrize("how", [None, "union", "grow-diag-final"])
def test_links_are_those_of_each_pair_alone(make_sentence, how):
    """In the order in which the pairs come; two cannot be aligned."""
    method = AlignmentMethod(FORWARD, how and REVERSE, how)
    pairs = {k: (make_sentence(k, *text), make_sentence(k, *text[::-1])) for k, text in TEXT.items()}
    pairs[1] = make_sentence(1, status="empty"), make_sentence(1, status="empty")
    pairs[4] = make_sentence(4, source="a </s>", target="x </s>"), make_sentence(4, status="too long")
    maps = [(read(one), read(other, REVERSE) if how else None) for one, other in pairs.values()]
    aligned = {pair.id: pair for pair in align_pairs(maps, method)}
    assert list(aligned) == [7, 2, 5, 1, 4]
    statuses = {id_: pair.status for id_, pair in aligned.items() if not pair.ok}
    assert statuses == ({1: "empty", 4: "too long in the other direction"} if how else {1: "empty"})
    for id_ in TEXT:
        one, other = pairs[id_]
        expected = extract(one, FORWARD)
        expected = symmetrize(expected, transpose(extract(other, REVERSE)), how) if how else expected
        assert aligned[id_].links == sorted(expected)
        assert bool(aligned[id_].confidences) != bool(how)
    assert (aligned[2].source, aligned[2].source_words) == ("b aa", ("b", "aa"))
    assert any(pair.links for pair in aligned.values())


SOURCES = ("a@@ b c . </s>", "a </s>", "</s>", "<de> a b@@ c d@@ e f </s>")
TARGETS = ("x y@@ z . </s>", "x </s>", "</s>", "x@@ y z v . </s>")
CASES = {
    "source": st.sampled_from(SOURCES),
    "target": st.sampled_from(TARGETS),
    "seed": st.integers(0, 1000),
    "setting": st.sampled_from(["awo", "awi"]),
    "null": st.sampled_from(["allow", "mask"]),
}


def both(forward, reverse, how, options):
    """The alignment of both directions, and the word maps of each."""
    maps = read(forward, options), read(reverse, options)
    (aligned,) = align_pairs([maps], AlignmentMethod(options, options, how))
    return aligned, *maps


def directions(make_sentence, source, target, seed):
    return make_sentence(seed, source, target), replace(make_sentence(seed + 1, target, source), id=seed)


def slow_join(one, other, how):
    """The map of both directions cell by cell: half the sum of the shares, or their product where both have one."""
    joined = one.shares / 2 if how == "average" else np.zeros(one.shares.shape)
    for j, i in np.ndindex(joined.shape[0], joined.shape[1] - 1):
        a, b = one.shares[j, i], other.shares[i, j]
        joined[j, i] = (a + b) / 2 if how == "average" else a * b
    sums = joined.sum(axis=1, keepdims=True)
    return joined / np.where(sums > 0, sums, 1)


@given(rule=st.sampled_from(["kobayashi2020", "shift-att", "threshold=0.2", "top-k=2"]), **CASES)
def test_joins_cell_by_cell(make_sentence, source, target, seed, setting, null, rule):
    forward, reverse = directions(make_sentence, source, target, seed)
    options = ExtractionOptions("attn_n", "1.2", "mean", setting, rule, None if rule == "shift-att" else null)
    found, one, other = both(forward, reverse, "mutual", options)
    assert set(found.links) == extract(forward, options) & transpose(extract(reverse, options))
    sure, back = confidences(one.scores), confidences(other.scores)
    assert found.confidences == {(i, j): min(sure[j, i], back[i, j]) for i, j in found.links}
    if rule == "shift-att":
        return
    for how in ("average", "product"):
        options = replace(options, null=null if how == "average" else "mask")
        found, one, other = both(forward, reverse, how, options)
        joined = slow_join(one, other, how)
        np.testing.assert_allclose(found.word_map, joined, rtol=1e-12)
        assert set(found.links) == links_of(apply_rule(rule_of(rule), joined, options.null, False))


def test_directions_that_do_not_fit(make_sentence):
    forward, reverse = directions(make_sentence, "a b c </s>", "x y </s>", 3)
    with pytest.raises(UsageError, match=facts("join 'average' … with rule 'shift-att'")):
        both(forward, reverse, "average", ExtractionOptions("attn_w", "0", rule="shift-att"))
    for how in JOINS:
        with pytest.raises(InputError, match=facts("sentence 3 (line 4) … 3 source and 2 target words … 2 and 3")):
            both(forward, forward, how, ExtractionOptions("attn_w", "0", null="mask"))
    changed = (["X", "Y"], ["a", "?", "?"])  # target, source; case does not count: 3 of 5 are equal
    for pairs in ([(words_of(forward), words_of(reverse))], [(words_of(forward), changed)]):
        check_same_text(pairs)
    check_same_text([])
    with pytest.raises(InputError, match=facts("2 of 5 words")):
        check_same_text([(words_of(forward), (["x", "y"], ["?", "?", "?"]))])


TWO_WAY = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
PRODUCT = ExtractionOptions("attn_n", "0,1", "product", setting="awo", rule="two-way=0.3")
SIZE = 9


@pytest.fixture
def sentences(make_sentence):
    """Nine pairs of few words; the third has no maps."""
    rng = np.random.default_rng(4)
    texts = [
        [" ".join([*rng.choice(list(of), rng.integers(1, 6)), "</s>"]) for of in ("abc", "xyz")] for _ in range(SIZE)
    ]
    found = [make_sentence(k, source=source, target=target) for k, (source, target) in enumerate(texts)]
    found[2] = make_sentence(2, status="too long")
    return found


def one_way(sentences, options=TWO_WAY):
    return [(read(sentence, options), None) for sentence in sentences]


def check(found, expected):
    """That alignments have these maps, by id, and the links that the rule makes of them."""
    for pair in found:
        if pair.id not in expected:
            assert (pair.links, pair.status) == ([], "too long")
            continue
        word_map = expected[pair.id]
        assert set(pair.links) == links_of(word_map.linked(TWO_WAY))
        np.testing.assert_allclose(pair.word_map, word_map.shares, rtol=1e-9)


def sharpened(scores):
    """The word map of scores that a table has reweighted."""
    return WordMap(None, np.pad(supported(scores, two_way_shares), ((0, 0), (0, 1))))


@pytest.mark.parametrize("options", [TWO_WAY, PRODUCT], ids=["one map", "product of two"])
@pytest.mark.parametrize("first", [0, 1, 5, SIZE, SIZE + 1])
def test_a_lexical_table_is_counted_on_the_first_pairs(sentences, options, first):
    """Each of them is reweighted by the others, the pairs after them by all; then neighbours support each other."""
    method = AlignmentMethod(options, sharpened=True, table_pairs=first)
    found = list(align_pairs(one_way(sentences, options), method))
    assert [pair.id for pair in found] == list(range(SIZE))
    maps = {s.id: read(s, options).counted for s in sentences if s.ok}
    of_table = [id_ for id_ in maps if id_ < first]
    table, scores = count_lexical_table([maps[id_] for id_ in of_table], two_way_shares)
    expected = {id_: table.reweight(words, word_map, two_way_shares) for id_, (words, word_map) in maps.items()}
    expected |= dict(zip(of_table, scores))
    check(found, {id_: sharpened(scores) for id_, scores in expected.items()})


def test_a_given_lexical_table_and_each_pair_by_itself(sentences):
    """What is aligned with a given lexical table depends on nothing else in the text."""
    table, _ = count_lexical_table([pair.counted for pair, _ in one_way(sentences[5:])], two_way_shares)
    method = AlignmentMethod(TWO_WAY, sharpened=True)
    whole = list(align_pairs(one_way(sentences), method, table))
    for pair in whole:
        (alone,) = align_pairs(one_way([sentences[pair.id]]), method, table)
        assert alone == pair


def test_a_lexical_table_of_both_directions(make_sentence):
    """It is of the combined map, the geometric mean of both."""
    texts = [("a b c </s>", "x y z </s>"), ("b a </s>", "y x </s>")]
    method = AlignmentMethod(TWO_WAY, PRODUCT, "product", True, 2)
    pairs = [
        (read(make_sentence(k, *text), TWO_WAY), read(make_sentence(k, *text[::-1]), PRODUCT))
        for k, text in enumerate(texts)
    ]
    maps = [np.sqrt(one.shares[:, :-1] * other.shares[:, :-1].T) for one, other in pairs]
    words = [words_of(one.sentence) for one, _ in pairs]
    _, scores = count_lexical_table(list(zip(words, maps)), two_way_shares)
    check(align_pairs(pairs, method), dict(enumerate(map(sharpened, scores))))


@pytest.mark.parametrize(("unknown", "checked"), [(501, True), (500, True), (2000, False)])
def test_a_lexical_table_is_checked_on_the_first_1000_pairs(make_sentence, unknown, checked):
    """No pair is aligned before; a pair after them may have any words.  Unchecked, no pair is held back."""
    table, _ = count_lexical_table([((["a"], ["x"]), np.ones((1, 1)))], two_way_shares)
    known, strange = (read(make_sentence(0, f"{a} </s>", f"{b} </s>")) for a, b in ("ax", "??"))
    taken = []

    def pairs():
        for number in range(2000):
            taken.append(number)
            yield strange if number < unknown or number >= 1000 else known, None

    aligned = align_pairs(pairs(), AlignmentMethod(TWO_WAY, sharpened=True), table, check=checked)
    if checked and unknown > 500:  # more than half of 1,000 words
        with pytest.raises(InputError, match="501"):
            next(aligned)
    else:
        assert next(aligned).ok
    assert len(taken) == (1000 if checked else 1)


def test_a_lexical_table_of_extract(tmp_path, make_sentence, make_records, call):
    """Of the pairs of the corpus, in whatever order the records hold them."""
    texts = ["a b", "b a", "a a b", "c", "b c a", "c a b a", "a"]
    pairs = [make_sentence(k, source=f"{t} </s>", target=f"{t.upper()} </s>") for k, t in enumerate(texts)]
    pairs[3] = make_sentence(3, status="too long")
    directory = make_records(tmp_path / "run", [pairs[k] for k in (3, 6, 0, 1, 2, 4, 5)], shards=2)
    words = ("extract", directory, "--kind", "attn_n", "--heads", 1, "--setting", "awo", "--rule", "two-way=0.3")
    _, out, err = call(*words, "--table", "text")
    found = align_pairs(one_way(pairs), AlignmentMethod(TWO_WAY, sharpened=True, table_pairs=7))
    assert out.splitlines() == [alignment.to_pharaoh() for alignment in found]
    assert out != call(*words)[1]
    assert "|table:text|" in err
    assert "warning: 1 of 7 sentences cannot be aligned" in err
    status, _, err = call(*words, "--table", directory)
    assert (status, f"{directory}: " in err) == (1, True)
