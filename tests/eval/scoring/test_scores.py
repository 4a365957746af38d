"""Scores against oracles link by link; gold whose words do not fit."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.links.files import Texts
from alignment_eval.links.formats import GoldSentence
from alignment_eval.scoring.aer import METRICS, Counts, aer, score
from alignment_eval.scoring.classes import SIDES, confusion_table, error_table
from alignment_eval.scoring.gold_corpus import confirmed_by_texts, with_gold
from tests.facts import facts

LINKS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=8)
CORPORA = st.lists(st.tuples(LINKS, st.builds(GoldSentence, LINKS, LINKS)), max_size=6)


def oracle(pairs):
    """AER, precision, recall, link by link."""
    a = s = a_s = a_p = 0
    for hypothesis, gold in pairs:
        s += len(gold.sure)
        for link in hypothesis:
            a += 1
            a_s += link in gold.sure
            a_p += link in gold.possible or link in gold.sure
    error = 1 - (a_s + a_p) / (a + s) if a + s else 0.0
    return error, a_p / a if a else None, a_s / s if s else None


@given(CORPORA)
def test_equals_the_oracle(pairs):
    hypotheses, gold = [h for h, _ in pairs], [g for _, g in pairs]
    result = score(hypotheses, gold)
    error, *others = oracle(pairs)
    assert result.aer == pytest.approx(error, abs=1e-15)
    assert 0 <= result.aer <= 1
    assert [result.precision, result.recall] == others
    counts, expected = result.per_sentence, [oracle([pair]) for pair in pairs]
    for k, column in enumerate(metric(counts) for metric in METRICS.values()):
        wanted = [math.nan if row[k] is None else row[k] for row in expected]
        np.testing.assert_allclose(column, np.array(wanted, dtype=float), atol=1e-15)


def test_aer_is_rounded_once():
    assert aer(Counts(*map(np.int64, (1, 2, 1, 1)))) == 1 / 3


def test_unequal_numbers_of_sentences():
    with pytest.raises(InputError, match=facts("1 hypotheses … 3 gold sentences")):
        score(iter([frozenset()]), iter([GoldSentence(frozenset())] * 3))


COUNTS = ["hypothesis_links", "sure_links", "hypothesis_links_sure", "hypothesis_links_possible"]


@st.composite
def sentences(draw):
    """Texts of both sides, two hypotheses and gold."""
    texts = [draw(st.lists(st.sampled_from(["a", "b", ".", "...", "x."]), max_size=13)) for _ in SIDES]
    pairs = [(i, j) for i in range(len(texts[0])) for j in range(len(texts[1]))]
    links = st.frozensets(st.sampled_from(pairs), max_size=12) if pairs else st.just(frozenset())
    return (texts[0], texts[1]), draw(links), draw(links), GoldSentence(draw(links), draw(links))


TABLED = st.lists(sentences(), min_size=1, max_size=5)


def tables(corpus):
    """Both hypotheses, gold and texts."""
    texts, *others = map(list, zip(*corpus))
    return (*others, [both[0] for both in texts], [both[1] for both in texts])


def named(value, classes):
    """The class of a number, among e.g. ``0 1 2-9 10+``."""
    for name in classes.split():
        low, _, high = name.rstrip("+").partition("-")
        if int(low) <= value <= (math.inf if name.endswith("+") else int(high or low)):
            return name
    raise AssertionError(value)


def slow_tables(corpus, frequencies):
    """(property, side, class) -> counts, word by word and link by link."""
    result = {}
    for axis, side in enumerate(SIDES):
        own = Counter(word for texts, *_ in corpus for word in texts[axis])
        known = own if frequencies is None else frequencies[axis]
        for texts, hypothesis, _, gold in corpus:
            for k, word in enumerate(texts[axis]):
                mine = {link for link in hypothesis if link[axis] == k}
                sure = {link for link in gold.sure if link[axis] == k}
                possible = {link for link in gold.possible if link[axis] == k}
                classes = {
                    "all": "all",
                    "sentence_length": named(len(texts[axis]), "1-10 11-20 21-30 31-40 41-50 51+"),
                    "frequency": named(known.get(word, 0), "0 1 2-9 10-99 100-999 1000-9999 10000+"),
                    "word_type": "punctuation" if set(word) <= {"."} else "word",
                    "fertility": named(len(possible), "0 1 2 3 4+"),
                }
                for by, name in classes.items():
                    row = result.setdefault((by, side, name), Counter())
                    row["words"] += 1
                    row["null_gold"] += not possible
                    row["null_hypothesis"] += not mine
                    row["hypothesis_links"] += len(mine)
                    row["sure_links"] += len(sure)
                    row["hypothesis_links_sure"] += len(mine & sure)
                    row["hypothesis_links_possible"] += len(mine & possible)
                    row["missed_sure"] += len(sure - mine)
                    row["wrong_links"] += len(mine - possible)
    return result


@given(TABLED, st.sampled_from([None, ({"a": 1, "b": 15}, {".": 20_000, "a": 9})]))
@settings(deadline=None, max_examples=25)
def test_is_what_the_oracle_counts(corpus, frequencies):
    hypothesis, _, gold, source, target = tables(corpus)
    table = error_table(hypothesis, gold, source, target, frequencies)
    expected = slow_tables(corpus, frequencies)
    assert {(row["by"], row["side"], row["class"]) for row in table} == set(expected)
    for row in table:
        counts = expected[row["by"], row["side"], row["class"]]
        for name in ("words", *COUNTS, "missed_sure", "wrong_links"):
            assert row[name] == counts[name], name
        for name in ("null_gold", "null_hypothesis"):
            assert row[name] == counts[name] / counts["words"]
        a, s, a_s, a_p = (counts[name] for name in COUNTS)
        assert row["aer"] == pytest.approx(1 - (a_s + a_p) / (a + s) if a + s else 0)
        assert row["precision"] == (a_p / a if a else None)
        assert row["recall"] == (a_s / s if s else None)


@given(TABLED)
@settings(deadline=None, max_examples=25)
def test_confusion_is_what_the_oracle_counts(corpus):
    hypothesis, other, gold, *_ = tables(corpus)
    for row in confusion_table(hypothesis, other, gold):
        cells = Counter[str]()
        for (source, target), mine, its, links in corpus:
            for pair in ((i, j) for i in range(len(source)) for j in range(len(target))):
                kind = "sure" if pair in links.sure else "possible" if pair in links.possible else "none"
                if kind == row["gold"]:
                    cells["both" if pair in mine & its else "only_hypothesis" if pair in mine else
                          "only_other" if pair in its else "neither"] += 1  # fmt: skip
        neither = None if row["gold"] == "none" else cells["neither"]
        names = ("both", "only_hypothesis", "only_other")
        assert row == {"gold": row["gold"], **{name: cells[name] for name in names}, "neither": neither}


NO_LINKS = GoldSentence(frozenset())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([3], "sentence 3 has no gold … has 3 sentences … each id from 0 to 2 once"),
        ([0, 0, 0], "sentence 0 is a duplicate … each id from 0 to 2 once"),
    ],
)
def test_numbers_of_sentences(make_sentence, ids, message):
    with pytest.raises(InputError, match=facts(message)):
        list(with_gold([make_sentence(id_) for id_ in ids], [NO_LINKS] * 3))


@pytest.mark.parametrize(
    ("link", "texts", "message"),
    [
        ((3, 0), None, "gold: sentence 1 (line 2) … link 3-0 … outside … 3 and 3 words"),
        ((0, 0), ((3, 3), (3, 4)), "sentence 1 (line 2) … 3 target words in the records … 4 in tgt"),
    ],
)
def test_words_that_do_not_fit(make_sentence, link, texts, message):
    """The wrong BPE mark, another text, or the other direction."""
    gold = [NO_LINKS, GoldSentence(frozenset(), frozenset({link}))]
    lengths = texts and Texts("src", np.array(texts[0]), "tgt", np.array(texts[1]))
    with pytest.raises(InputError, match=facts(message)) as caught:
        list(with_gold([make_sentence(0), make_sentence(1)], gold, lengths))
    assert "--norm-subword-mark" in str(caught.value)


def test_uncertain_words_are_confirmed_by_their_number(make_sentence):
    certain = make_sentence(0)  # three words on either side
    sources, targets = replace(make_sentence(1), status="unknown source subwords"), make_sentence(2, status="long")
    both = replace(make_sentence(3), status="unknown subwords on both sides")
    texts = Texts("s", np.array([3, 3, 3, 3]), "t", np.array([3, 3, 3, 2]))
    found = [confirmed_by_texts(sentence, texts).status for sentence in (certain, sources, targets, both)]
    assert found == ["ok", "ok", "long", "unknown subwords on both sides"]
