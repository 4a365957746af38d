"""Scores of pairs and words, against sums word by word."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.extraction.extract import WordMap
from alignment_eval.extraction.pair_scores import PairScores, join_scores, score_pair
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide

SOURCE = SentenceSide(("a@@", "b", ".", "c", "Ab", "</s>"), np.array([0, 0, 1, 2, 3, -1], dtype=np.int32))
# its second piece spans two words
TARGET = SentenceSide(
    ("<tag>", "x", "Xc", "!", "x", "x", "</s>"),
    np.array([-1, 0, 1, 2, 3, 4, -1]),
    np.array([1, 2, 1, 1, 1]),
    ("x", "X", "C", "!", "x", "x"),
)
#: The words of each side with letters, and the tokens of each word.
WORDS = [0, 2, 3], [0, 1, 2, 4, 5]
PIECES = [[0, 1], [2], [3], [4]], [[1], [2], [2], [3], [4], [5]]


def word_map(source, target, chance):
    sentence = SentenceMaps(0, source, target, ())
    scores = chance.random((target.word_count, source.word_count + 1))
    return WordMap(replace(sentence, log_probs=-3 * chance.random(len(target.tokens))), scores)


def slow(forward, reverse, linked):
    """The scores by the equations of pair_scores."""
    sources, targets = WORDS

    def share(pair, row, column):
        return pair.scores[row, column] / pair.scores[row].sum()

    def support(i, j):
        if (i in sources) != (j in targets):
            return 0
        one = share(forward, j, i)
        return one if reverse is None else math.sqrt(one * share(reverse, i, j))

    def surprise(pair, pieces):
        if pair is None:
            return 0.5
        surprisal = sum(-pair.sentence.log_probs[piece] for piece in pieces) / len(pieces)
        return surprisal / (surprisal + 3)

    def extra(copies, j):
        """ab is there twice, c once."""
        found = 0
        for occurrences in ([0, 3], [2]):
            own = [sum(share(forward, copy, i) for i in occurrences) for copy in copies]
            at = copies.index(j)
            beyond = sum(own[: at + 1]) - len(occurrences) * max(own)
            found += min(max(beyond, 0), own[at])
        return found

    supports = (
        [max(support(i, j) for j in range(6)) for i in range(4)],
        [max(support(i, j) for i in range(4)) for j in range(6)],
    )
    surprises = tuple([surprise(pair, p) for p in pieces] for pair, pieces in zip((reverse, forward), PIECES))
    new = [[s * (1 - g) for s, g in zip(*side)] for side in zip(surprises, supports)]
    weak = [np.mean([surprises[k][w] * (1 - supports[k][w] / 2) for w in WORDS[k]]) for k in (0, 1)]
    missing = new if reverse is not None else [[0.5 * (1 - g) for g in side] for side in supports]
    y = float(np.mean([missing[1][w] for w in targets]) - np.mean([missing[0][w] for w in sources]))
    extras = [extra([0, 1, 4, 5], j) if j in (0, 1, 4, 5) else 0 for j in range(6)]
    copied = [j == 2 for j in range(6)]
    repeated, again = (
        sum(surprises[1][j] ** 2 * values[j] for j in targets) / math.sqrt(len(targets)) for values in (extras, copied)
    )
    z = max(min(4 * repeated, 0.5), again)
    return {
        "unsupported": 1 / (1 + math.exp(-20 * max(sum(weak) / 2 - 0.45, y - 0.25, z - 0.45))),
        "omitted": 1 / (1 + math.exp(-20 * (-y - 0.25))),
        "unsupported_words": [
            surprises[1][j] * (1 - supports[1][j] * (1 - max(extras[j], copied[j]))) for j in range(6)
        ],
        "omitted_words": new[0],
        "unlinked_source": np.mean([not linked[w].any() for w in sources]),
        "unlinked_target": np.mean([not linked[:, w].any() for w in targets]),
    }


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_scores_are_those_of_the_equations(models, seed):
    chance = np.random.default_rng(seed)
    forward = word_map(SOURCE, TARGET, chance)
    reverse = word_map(TARGET, SOURCE, chance) if models == 2 else None
    linked = chance.random((4, 6)) < 0.4
    found = score_pair((forward, reverse), linked, forward.shares)
    expected = slow(forward, reverse, linked)
    decimals = dict.fromkeys(expected, 3) | {"unsupported_words": 2, "omitted_words": 2}
    assert {name: getattr(found, name) for name in expected} == {
        name: np.round(value, decimals[name]).tolist() for name, value in expected.items()
    }
    assert found.log_prob == round(forward.sentence.log_probs.mean(), 3)
    assert (found.reverse_log_prob is None) == (models == 1)
    confidences = forward.shares[:, :-1].T[linked]
    assert found.confidence == (round(np.mean(confidences), 3) if len(confidences) else 0)
    assert score_pair((forward, reverse), linked, None).confidence is None


#: The first target word takes the source word, the others null.
MORE = np.array([[1.0, 0], [0, 1], [0, 1], [0, 1]])


def test_a_target_that_says_more():
    """Three of its four words have no source word: y - 1/4 is 1/8, more than x - 0.45, which is 0.07."""
    sides = [SentenceSide.of_words(words) for words in (["a"], ["x", "y", "z", "v"])]
    sentence = SentenceMaps(0, sides[0], sides[1], (), log_probs=np.full(4, -30.0))
    found = score_pair((WordMap(sentence, MORE), None), np.eye(1, 4, dtype=np.bool_), None)
    assert found.unsupported == round(1 / (1 + math.exp(-20 / 8)), 3)
    nothing = np.zeros((1, 4), np.bool_)
    assert score_pair((WordMap(sentence, np.ones((4, 2))), None), nothing, np.ones((4, 2))).confidence == 0


def test_a_pair_of_punctuation_has_scores():
    side = SentenceSide((".", "</s>"), np.array([0, -1], dtype=np.int32))
    found = score_pair((word_map(side, side, np.random.default_rng(1)), None), np.ones((1, 1), np.bool_), None)
    assert found.unlinked_source == 0
    assert found.reverse_log_prob is None


def scored(source, target, counterparts, log_probs):
    """The scores by one model whose target words each take one source word, with 0.9 of their attention."""
    sides = SentenceSide.of_words(source), SentenceSide.of_words(target)
    sentence = SentenceMaps(0, sides[0], sides[1], (), log_probs=np.array(log_probs))
    scores = np.full((len(target), len(source) + 1), 0.1 / len(source))
    scores[np.arange(len(target)), counterparts] = 0.9
    return score_pair((WordMap(sentence, scores), None), np.zeros((len(source), len(target)), np.bool_), None)


EXPECTED, NOT_EXPECTED = st.floats(-0.5, -0.01), st.floats(-20, -6)
TEXTS = st.lists(st.text("abcdefghij", min_size=2), min_size=3, max_size=25, unique=True)


@given(TEXTS, st.data())
def test_copies_of_a_word_beyond_those_of_its_source_word_are_unsupported(words, data):
    """Two or more, anywhere after the first, if less than what is made up; as many as the source has are supported."""
    word = data.draw(st.integers(0, len(words) - 1))
    at = [*range(len(words)), *[word] * data.draw(st.integers(2, 8))]
    log_probs = data.draw(st.lists(EXPECTED, min_size=len(words), max_size=len(words)))
    log_probs += data.draw(st.lists(NOT_EXPECTED, min_size=len(at) - len(words), max_size=len(at) - len(words)))
    order = np.concatenate([[0], 1 + np.random.default_rng(len(at)).permutation(len(at) - 1)])
    copies = np.flatnonzero(np.array(at)[order] == word)
    order[copies] = np.sort(order[copies])  # the first one is expected
    at, log_probs = ([values[place] for place in order] for values in (at, log_probs))
    target = [words[i].upper() for i in at]
    source = [f"{word}{k}" for k, word in enumerate(words)]
    assert 0.5 < scored(source, target, at, log_probs).unsupported < 0.8
    assert scored([source[i] for i in at], target, range(len(at)), log_probs).unsupported < 0.2


@given(TEXTS, EXPECTED)
def test_a_sentence_that_the_target_says_twice_is_unsupported(words, log_prob):
    """The second time the model expects it more than it does copies of one word."""
    source = [f"{word}{k}" for k, word in enumerate(words)]
    once = scored(source, words, range(len(words)), [log_prob] * len(words))
    log_probs = [log_prob] * len(words) + [-2.0] * len(words)
    twice = scored(source, [*words, *words], [*range(len(words))] * 2, log_probs)
    assert once.unsupported < 0.2
    assert twice.unsupported > 0.5
    assert min(twice.unsupported_words[len(words) :]) > max(twice.unsupported_words[: len(words)])


@given(TEXTS, st.data())
def test_copies_of_the_source_are_unsupported_unless_the_model_expects_them(words, data):
    """Half of the words or more; names are expected.  Numbers, addresses and other strings are never copies."""
    size = len(words)
    copies = data.draw(st.integers(max(3, (size + 1) // 2), size))
    log_probs = data.draw(st.lists(NOT_EXPECTED, min_size=copies, max_size=copies))
    log_probs += data.draw(st.lists(EXPECTED, min_size=size - copies, max_size=size - copies))
    found = scored(words, [*words[:copies], *(f"x{word}" for word in words[copies:])], range(size), log_probs)
    assert found.unsupported > 0.5
    assert min(found.unsupported_words[:copies]) > 0.6
    assert scored(words, [word.title() for word in words], range(size), [-0.5] * size).unsupported < 0.2
    strings = [f"{word}.{k}" for k, word in enumerate(words)]
    assert scored(strings, strings, range(size), log_probs).unsupported < 0.5


@pytest.mark.parametrize("models", [1, 2])
@given(words=TEXTS, signs=st.lists(st.text(".…?!*-–♪+=|", min_size=1), min_size=1, max_size=4), seed=st.integers(0, 99))
def test_a_target_without_words_omits_the_source(models, words, signs, seed):
    """Whatever attends to it; exchanged, the target says more."""
    chance = np.random.default_rng(seed)
    text, none = map(SentenceSide.of_words, (words, signs))
    for source, target, bad, good in (
        (text, none, "omitted", "unsupported"),
        (none, text, "unsupported", "omitted"),
    ):
        maps = [word_map(source, target, chance), word_map(target, source, chance)]
        maps = [replace(one, sentence=replace(one.sentence, log_probs=np.full(len(one.scores), -20.0))) for one in maps]
        linked = np.ones((source.word_count, target.word_count), np.bool_)
        found = score_pair((maps[0], maps[1] if models == 2 else None), linked, None)
        assert getattr(found, bad) > 0.9
        assert getattr(found, good) < 0.1


SENTENCES = [
    PairScores(log_prob=value, reverse_log_prob=value, unsupported=new, omitted=lost)
    for value, new, lost in ((-1.0, 0.9, 0.1), (-2.0, 0.2, 0.8))
]


def test_log_probabilities_of_sentences_weigh_by_the_tokens_that_they_are_of():
    """Of target tokens, and by the reverse model of source tokens."""
    joined = join_scores(SENTENCES, [[1, 3], [3, 1]], (["a"], ["b"]), [(0, 0)], {})
    assert (joined.log_prob, joined.reverse_log_prob) == (-1.75, -1.25)


def test_the_sentence_that_is_most_suspect_decides():
    joined = join_scores(SENTENCES, [[1, 1], [1, 1]], (["a"], ["b"]), [(0, 0)], {})
    assert (joined.unsupported, joined.omitted) == (0.9, 0.8)
