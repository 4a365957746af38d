"""From word maps to alignments: both directions, lexical tables, in whatever order the pairs come."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.align_pairs import TOGETHER, align_pairs
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import (
    check_same_text,
    combined_map,
    confidences,
    extract,
    links_of,
    read_word_map,
    sharp_map,
)
from alignment_eval.extraction.lexical_table import EMPTY, count_lexical_table
from alignment_eval.extraction.method import JOINS, AlignmentMethod, ExtractionOptions, apply_rule, rule_of
from alignment_eval.links.formats import transpose
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import words_of
from alignment_eval.maps.words import FORMED, FORMING, WITHOUT_TABLE, sharp_shares
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


def sharp_of(pair, sharpening, reweighted):
    """The sharp map of a pair of one model that a table has reweighted."""
    return sharp_map(pair[0], *sharp_shares([(reweighted.cells, None)], sharpening.of_order)[0])


def check(found, expected):
    """That alignments have these maps, by id, and the links and confidences of their shares."""
    for pair in found:
        if pair.id not in expected:
            assert (pair.links, pair.status) == ([], "too long")
            continue
        word_map = expected[pair.id]
        shares = word_map.scores[:, :-1]
        assert pair.links == [tuple(map(int, cell)) for cell in np.argwhere(shares.T >= 0.3)]
        sure = {(i, j): round(1 - max(1 - shares[j, i], 0) ** 2, 2) for i, j in pair.links}
        assert pair.confidences == pytest.approx(sure, abs=0.011)
        assert pair.weights == pytest.approx(
            {(i, j): 1 - max(1 - word_map.unordered[j, i], 0) ** 1.5 for i, j in pair.links}
        )
        np.testing.assert_allclose(pair.word_map, word_map.shares, rtol=1e-9)


@pytest.mark.parametrize("options", [TWO_WAY, PRODUCT], ids=["one map", "product of two"])
@pytest.mark.parametrize("first", [0, 1, 5, SIZE, SIZE + 1])
def test_a_lexical_table_is_counted_on_the_first_pairs(sentences, options, first):
    """Each of them is reweighted by the others, the pairs after them by all."""
    method = AlignmentMethod(options, sharpening=FORMING, table_pairs=first)
    pairs = one_way(sentences, options)
    found = list(align_pairs(pairs, method))
    assert [pair.id for pair in found] == list(range(SIZE))
    maps = {place: combined_map(pair, method).counted for place, pair in enumerate(pairs) if pair[0].scores is not None}
    of_table = [id_ for id_ in maps if id_ < first]
    table, reweight = count_lexical_table([maps[id_] for id_ in of_table], FORMING)
    expected = {id_: table.reweight(words, word_map, FORMING) for id_, (words, word_map) in maps.items()}
    expected |= {id_: reweight(maps[id_]) for id_ in of_table}
    check(found, {id_: sharp_of(pairs[id_], FORMING, reweighted) for id_, reweighted in expected.items()})


def test_the_map_of_one_model_is_smoothed(sentences):
    """Each row of shares gets a tenth more, in equal parts; null does not count."""
    pair = one_way(sentences)[0]
    combined = combined_map(pair, AlignmentMethod(TWO_WAY, sharpening=WITHOUT_TABLE))
    size = pair[0].scores.shape[1] - 1
    np.testing.assert_allclose(combined.scores[:, :-1], pair[0].shares[:, :-1] + 0.1 / size)
    assert not combined.scores[:, -1].any()


def test_a_given_lexical_table_and_each_pair_by_itself(sentences):
    """What is aligned with a given lexical table depends on nothing else in the text."""
    method = AlignmentMethod(TWO_WAY, sharpening=FORMED)
    counted = [combined_map(pair, method).counted for pair in one_way(sentences[5:])]
    table, _ = count_lexical_table(counted, FORMED)
    whole = list(align_pairs(one_way(sentences), method, table))
    for pair in whole:
        (alone,) = align_pairs(one_way([sentences[pair.id]]), method, table)
        assert alone == pair


@pytest.mark.parametrize("join", ["product", "average"])
def test_two_models_have_the_same_links_in_either_order(make_sentence, join):
    """With a table of the text, a given one, and none; the map is √(F ∘ Rᵀ), or the mean, of smoothed shares."""
    texts = [("a b c </s>", "x y z </s>"), ("b a </s>", "y x </s>"), ("a b b c </s>", "x z </s>")]
    pairs = [
        (read(make_sentence(k, *text), TWO_WAY), read(make_sentence(9 - k, *text[::-1]), PRODUCT))
        for k, text in enumerate(texts)
    ]
    pairs = [(one, replace(other, sentence=replace(other.sentence, id=one.sentence.id))) for one, other in pairs]
    method = AlignmentMethod(TWO_WAY, PRODUCT, join, FORMED)
    back = AlignmentMethod(PRODUCT, TWO_WAY, join, FORMED)
    for table_pairs in (0, 2, 3):
        there, turned = (
            list(align_pairs(maps, replace(how, table_pairs=table_pairs)))
            for how, maps in ((method, pairs), (back, [pair[::-1] for pair in pairs]))
        )
        assert any(one.links for one in there)
        for one, other in zip(there, turned):
            assert one.links == sorted(transpose(other.links))
            assert one.confidences == {(i, j): sure for (j, i), sure in other.confidences.items()}
    forward, reverse = pairs[0]
    combined = combined_map(pairs[0], method)
    one, other = (each.shares[:, :-1] + 0.1 / 3 for each in (forward, reverse))
    expected = np.sqrt(one * other.T) if join == "product" else (one + other.T) / 2
    np.testing.assert_allclose(combined.scores[:, :-1], expected)
    given, received = forward.shares[:, :-1].sum(axis=0), reverse.shares[:, :-1].sum(axis=0)
    np.testing.assert_allclose(combined.fertility, [[max(a, b) for a in given] for b in received])
    (found,) = align_pairs([pairs[0]], method)
    reweighted = EMPTY.reweight(*combined.counted, FORMED)
    check([found], {0: sharp_map(combined, *sharp_shares([(reweighted.cells, combined.fertility)], 0.5)[0])})


def test_pairs_are_taken_a_few_at_a_time(make_sentence):
    """So that the maps of a long text are not all in memory."""
    taken = []
    pairs = ((taken.append(number), (read(make_sentence(number)), None))[1] for number in range(100))
    assert next(align_pairs(pairs, AlignmentMethod(TWO_WAY, sharpening=FORMED))).ok
    assert len(taken) == TOGETHER


def test_a_lexical_table_of_extract(tmp_path, make_sentence, make_records, call):
    """Of the pairs of the corpus, in whatever order the records hold them."""
    texts = ["a b", "b a", "a a b", "c", "b c a", "c a b a", "a"]
    pairs = [make_sentence(k, source=f"{t} </s>", target=f"{t.upper()} </s>") for k, t in enumerate(texts)]
    pairs[3] = make_sentence(3, status="too long")
    directory = make_records(tmp_path / "run", [pairs[k] for k in (3, 6, 0, 1, 2, 4, 5)], shards=2)
    words = ("extract", directory, "--kind", "attn_n", "--heads", 1, "--setting", "awo", "--rule", "two-way=0.3")
    _, out, err = call(*words, "--table", "text")
    found = align_pairs(one_way(pairs), AlignmentMethod(TWO_WAY, sharpening=FORMED, table_pairs=7))
    assert out.splitlines() == [alignment.to_pharaoh() for alignment in found]
    assert out != call(*words)[1]
    assert "|table:text|" in err
    assert "warning: 1 of 7 sentences cannot be aligned" in err
    status, _, err = call(*words, "--table", directory)
    assert (status, f"{directory}: " in err) == (1, True)
