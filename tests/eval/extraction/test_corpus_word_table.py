"""Word tables of a corpus: what is counted, what is reweighted, in whatever order the pairs come."""

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.corpus import align_corpus, join_maps, read_word_map
from alignment_eval.extraction.extract import PairMap, pair_map, word_links
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.extraction.word_table import count_word_table
from alignment_eval.maps.sentence import words_of

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


def read(sentences, options):
    return [(read_word_map(sentence, options), None) for sentence in sentences]


def by_hand(sentences, options, exponent, first):
    """The first pairs by the word table that they make, each without its own cells, the others by its totals."""
    maps = {s.id: (s, words_of(s), word_links(s, options).shares[:, :-1]) for s in sentences if s.ok}
    counted = [id_ for id_ in maps if id_ < first]
    word_table, scores = count_word_table([maps[id_][1:] for id_ in counted], 2, exponent)
    weighed = dict(zip(counted, scores))
    for id_, (_, words, shares) in maps.items():
        if id_ not in weighed:
            weighed[id_] = word_table.reweight(words, shares, exponent)
    return {k: PairMap(maps[k][0], np.pad(w, ((0, 0), (0, 1)))).links(options) for k, w in weighed.items()}


def check(found, expected):
    for pair in found:
        if pair.id not in expected:
            assert (pair.links, pair.status) == (None, "too long")
            continue
        np.testing.assert_array_equal(pair.links.linked, expected[pair.id].linked)
        np.testing.assert_allclose(pair.links.shares, expected[pair.id].shares, rtol=1e-9)


@pytest.mark.parametrize(("options", "exponent"), [(TWO_WAY, 1.0), (PRODUCT, 0.5)], ids=["one map", "product of two"])
@pytest.mark.parametrize("first", [1, 5, SIZE, SIZE + 1])
def test_the_first_pairs_are_counted(sentences, options, exponent, first):
    method = AlignmentMethod(options, word_table_passes=2, word_table_pairs=first)
    assert method.word_table_exponent == exponent
    counted = []
    found = list(align_corpus(read(sentences, options), method, on_count=counted.append))
    assert [pair.id for pair in found] == list(range(SIZE))
    check(found, by_hand(sentences, options, exponent, first))
    assert [word_table.pairs for word_table in counted] == [min(first, SIZE) - (first > 2)]


def test_a_pair_comes_as_soon_as_the_word_table_is_counted(sentences):
    method = AlignmentMethod(TWO_WAY, word_table_passes=1, word_table_pairs=3)
    taken = []

    def pairs():
        for sentence in sentences:
            taken.append(sentence.id)
            yield read_word_map(sentence, TWO_WAY), None

    after = [(pair.id, len(taken)) for pair in align_corpus(pairs(), method)]
    assert after == [(0, 3), (1, 3), (2, 3), *((k, k + 1) for k in range(3, SIZE))]


def test_a_given_word_table_and_each_pair_by_itself(sentences):
    """What is aligned with a given word table depends on nothing else in the text."""
    method = AlignmentMethod(TWO_WAY, word_table_passes=2)
    counted = []
    list(align_corpus(read(sentences[5:], TWO_WAY), method, on_count=counted.append))
    given = counted.pop()
    whole = list(align_corpus(read(sentences, TWO_WAY), method, given, counted.append))
    assert not counted
    for pair in whole:
        ((alone,),) = [list(align_corpus(read([sentences[pair.id]], TWO_WAY), AlignmentMethod(TWO_WAY), given))]
        if pair.links is None:
            assert alone.links is None
        else:
            np.testing.assert_array_equal(alone.links.shares, pair.links.shares)
            np.testing.assert_array_equal(alone.links.linked, pair.links.linked)


def test_both_directions(make_sentence):
    """The word table is of the joined map; the exponent that of the direction that multiplies more maps."""
    texts = [("a b c </s>", "x y z </s>"), ("b a </s>", "y x </s>")]
    forward = [make_sentence(k, source=source, target=target) for k, (source, target) in enumerate(texts)]
    back = [make_sentence(k, source=target, target=source) for k, (source, target) in enumerate(texts)]
    method = AlignmentMethod(TWO_WAY, PRODUCT, BidirectionalOptions("product"), 2)
    assert method.word_table_exponent == 0.5
    maps = [
        join_maps("product", pair_map(f, TWO_WAY), pair_map(r, PRODUCT)).shares[:, :-1] for f, r in zip(forward, back)
    ]
    _, scores = count_word_table([(words_of(f), shares) for f, shares in zip(forward, maps)], 2, 0.5)
    pairs = [(read_word_map(f, TWO_WAY), read_word_map(r, PRODUCT)) for f, r in zip(forward, back)]
    expected = {k: PairMap(forward[k], np.pad(w, ((0, 0), (0, 1)))).links(TWO_WAY) for k, w in enumerate(scores)}
    check(list(align_corpus(pairs, method)), expected)


def test_a_word_table_is_checked_on_the_first_1000_pairs(make_sentence):
    """No link is given before; a pair after them may have any words."""
    word_table, _ = count_word_table([((["a"], ["x"]), np.ones((1, 1)))], 1, 1)
    known, strange = (read_word_map(make_sentence(0, f"{a} </s>", f"{b} </s>"), TWO_WAY) for a, b in ("ax", "??"))
    for unknown, refused in ((501, True), (500, False)):  # more than half of 1,000 words
        taken = []

        def pairs(unknown=unknown, taken=taken):
            for number in range(2000):
                taken.append(number)
                yield strange if number < unknown or number >= 1000 else known, None

        aligned = align_corpus(pairs(), AlignmentMethod(TWO_WAY), word_table)
        if refused:
            with pytest.raises(InputError, match="501"):
                next(aligned)
        else:
            next(aligned)
        assert len(taken) == 1000


def test_a_word_table_that_is_not_checked_holds_no_pair_back(make_sentence):
    word_table, _ = count_word_table([((["a"], ["x"]), np.ones((1, 1)))], 1, 1)
    strange = read_word_map(make_sentence(0, "? </s>", "? </s>"), TWO_WAY)
    pairs = iter([(strange, None)] * 2)
    assert next(align_corpus(pairs, AlignmentMethod(TWO_WAY), word_table, check=False)).links is not None
    assert len(list(pairs)) == 1


def test_the_order_in_which_the_first_pairs_come_changes_nothing(sentences):
    method = AlignmentMethod(TWO_WAY, word_table_passes=2, word_table_pairs=5)
    expected = {pair.id: pair for pair in align_corpus(read(sentences, TWO_WAY), method)}
    shuffled = [sentences[k] for k in (4, 1, 0, 3, 2, 8, 5, 7, 6)]
    for pair, sentence in zip(align_corpus(read(shuffled, TWO_WAY), method), shuffled):
        assert pair.id == sentence.id
        if pair.links is not None:
            np.testing.assert_array_equal(pair.links.shares, expected[pair.id].links.shares)
