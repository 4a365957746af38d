"""Scores of pairs and words, against sums word by word."""

import math
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.extraction.extract import WordMap
from alignment_eval.extraction.pair_scores import PairScores, join_scores, score_pair
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide

SOURCE = SentenceSide(("a@@", "b", ".", "c", "</s>"), np.array([0, 0, 1, 2, -1], dtype=np.int32))
# its second piece spans two words
TARGET = SentenceSide(
    ("<tag>", "x", "yz", "!", "</s>"), np.array([-1, 0, 1, 2, -1]), np.array([1, 2, 1]), ("x", "y", "z", "!")
)


def word_map(source, target, chance):
    sentence = SentenceMaps(0, source, target, ())
    scores = chance.random((target.word_count, source.word_count + 1))
    return WordMap(replace(sentence, log_probs=-3 * chance.random(len(target.tokens))), scores)


def slow(forward, reverse, linked):
    """The scores by the equations of pair_scores."""

    def share(pair, row, column):
        return pair.scores[row, column] / pair.scores[row].sum()

    def support(i, j):
        one = share(forward, j, i)
        return one if reverse is None else math.sqrt(one * share(reverse, i, j))

    def surprise(pair, pieces):
        if pair is None:
            return 0.5
        surprisal = sum(-pair.sentence.log_probs[piece] for piece in pieces) / len(pieces)
        return surprisal / (surprisal + 3)

    source_pieces, target_pieces = [[0, 1], [2], [3]], [[1], [2], [2], [3]]
    supports = (
        [max(support(i, j) for j in range(4)) for i in range(3)],
        [max(support(i, j) for i in range(3)) for j in range(4)],
    )
    surprises = [surprise(reverse, p) for p in source_pieces], [surprise(forward, p) for p in target_pieces]
    counted = [0, 2], [0, 1, 2]
    new = [[s * (1 - g) for s, g in zip(*side)] for side in zip(surprises, supports)]
    x = sum(sum(surprises[k][w] * (1 - supports[k][w] / 2) for w in counted[k]) / len(counted[k]) for k in (0, 1)) / 2
    missing = new if reverse is not None else [[0.5 * (1 - g) for g in side] for side in supports]
    y = float(np.mean([missing[1][w] for w in counted[1]]) - np.mean([missing[0][w] for w in counted[0]]))
    return {
        "unsupported": 1 / (1 + math.exp(-20 * max(x - 0.45, y - 0.25))),
        "omitted": 1 / (1 + math.exp(-20 * (-y - 0.25))),
        "unsupported_words": new[1],
        "omitted_words": new[0],
        "unlinked_source": np.mean([not linked[w].any() for w in counted[0]]),
        "unlinked_target": np.mean([not linked[:, w].any() for w in counted[1]]),
    }


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_equations(models, seed):
    chance = np.random.default_rng(seed)
    forward = word_map(SOURCE, TARGET, chance)
    reverse = word_map(TARGET, SOURCE, chance) if models == 2 else None
    linked = chance.random((3, 4)) < 0.4
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
