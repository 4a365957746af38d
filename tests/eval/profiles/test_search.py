"""Choosing the maps of a model by their agreement, without gold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.maps.sentence import words_of
from alignment_eval.profiles.search import Agreement, choose_by_agreement, map_names
from tests.eval.extraction.test_lexical_table import slow_balanced, slow_count

SOURCE, TARGET = "a@@ b c d e . </s>", "v w@@ x y z . </s>"
#: The aligned word of each target word.
PATH = [0, 2, 1, 3, 4]
TEXTS = [("a@@ b c . </s>", "x y@@ z . </s>"), ("a b c d </s>", "x y z v </s>"), ("a b@@ c </s>", "x y </s>")]


def planted(make_sentence, awi=(0, 1), awo=(1, None), noise=0.05, ids=range(6)):
    """Sentences with random maps, but for one in AWI and one in AWO that both follow PATH."""
    sentences = []
    for id_ in ids:
        sentence = make_sentence(id_, SOURCE, TARGET)
        arrays = {name: array.astype(np.float64) for name, array in sentence.arrays.items()}
        words, columns = sentence.target.words, sentence.source.words
        for (layer, head), shift in ((awi, 1), (awo, 0)):
            shown = np.full((len(words), len(columns)), noise)
            for row, word in enumerate(words[: len(words) - 1]):
                shown[row + shift, columns == PATH[word]] = 1
            if head is None:
                arrays["layer_attn_n"][layer] = shown
            else:
                arrays["head_attn_w"][layer, head] = shown
                arrays["transformed_norm"][layer, head] = 1
        sentences.append(replace(sentence, arrays=arrays))
    return sentences


def pairs_of(sentence, kind):
    """Each AWI map with each AWO map of a higher layer, by the AWO map, then by the AWI map."""
    names = map_names(sentence, kind)
    return [
        (MapName(awi.layer, awi.head, "awi"), MapName(awo.layer, awo.head, "awo"))
        for awo, awi in itertools.product(names, names)
        if awi.layer < awo.layer
    ]


def slow_links(sentences, kind, name):
    """The links of a map in each sentence, by balanced shares after a lexical table of all sentences."""
    maps = [read_word_map(sentence, ExtractionOptions(kind, [name])).shares[:, :-1] for sentence in sentences]
    _, sharp = slow_count(list(zip(map(words_of, sentences), maps)), slow_balanced)
    return [set(zip(*np.nonzero(slow_balanced(word_map) >= 0.3))) for word_map in sharp]


def slow_dice(sentences, kind, pair):
    """2 |A ∩ B| / (|A| + |B|) of the links of two maps, less what is chance in both.

    It is 0 if they share few links, or those on the diagonal only.
    """
    common = size = words = 0.0
    shared = straight = 0
    both = (slow_links(sentences, kind, name) for name in pair)
    for sentence, a, b in zip(sentences, *both):
        height, width = sentence.target.word_count, sentence.source.word_count
        chance = len(a) * len(b) / (height * width)
        common, size = common + len(a & b) - chance, size + len(a) + len(b) - 2 * chance
        shared, words = shared + len(a & b), words + (height + width) / 2
        straight += sum(i == int((j + 0.5) / height * width) for j, i in a & b)
    return 2 * common / size if size and common >= 0.15 * words and straight <= 0.9 * shared else 0


@pytest.mark.parametrize(("awi", "awo"), [((0, 1), (1, None)), ((0, 2), (1, 0)), ((0, None), (1, 2))])
def test_the_two_maps_that_align_agree(make_sentence, awi, awo):
    choice = choose_by_agreement(planted(make_sentence, awi, awo))
    assert choice.maps == (MapName(awi[0], awi[1], "awi"), MapName(awo[0], awo[1], "awo"))
    assert choice.formed
    assert choice.dice == pytest.approx(1)


def slow_order(pair):
    """Which of two pairs of maps that agree equally well is read."""
    awi, awo = pair
    return awi.layer, awi.head is None, -awo.layer, awo.head is not None


@pytest.mark.parametrize("kind", ["attn_n", "attn_w"])
@pytest.mark.parametrize("seed", range(6))
def test_the_choice_by_agreement_is_that_of_the_slow_loop(make_sentence, kind, seed):
    sentences = [make_sentence(10 * seed + k, *text, layers=3) for k, text in enumerate(TEXTS)]
    figures = {pair: slow_dice(sentences, kind, pair) for pair in pairs_of(sentences[0], kind)}
    close = [pair for pair, dice in figures.items() if dice >= max(figures.values()) - 0.03]
    best = sorted(close, key=lambda pair: (*slow_order(pair), -figures[pair]))[0]
    choice = choose_by_agreement(sentences, kind)
    assert (choice.maps, choice.dice) == (best, pytest.approx(figures[best]))


def test_maps_that_link_all_words_do_not_agree(make_sentence):
    """Of two words on each side a uniform map has shares of 0.5."""
    sentences = [make_sentence(id_, "a b </s>", "x y </s>") for id_ in range(5)]
    uniform = {name: np.ones_like(array) for name, array in sentences[0].arrays.items()}
    assert choose_by_agreement([replace(sentence, arrays=uniform) for sentence in sentences]) is None


@pytest.mark.parametrize("linked", [np.eye(7), np.eye(7)[:, [1, 0, 2, 3, 4, 5, 6]] * (np.arange(7)[:, None] < 2)])
def test_maps_that_agree_by_position_or_on_few_links_do_not_count(make_sentence, linked):
    """Their Dice coefficient is 1: on the diagonal, or on two words of one of three sentences."""
    sentences = []
    for id_ in range(3):
        words = (" ".join(f"{word}{id_}" for word in side) for side in ("abcdef", "uvwxyz"))
        sentence = make_sentence(id_, *(f"{side} </s>" for side in words))
        arrays = {name: np.zeros_like(array, dtype=np.float64) for name, array in sentence.arrays.items()}
        linked = linked if id_ == 0 or linked.trace() else 0 * linked
        flat = linked + 0.02 * (linked.sum(axis=1, keepdims=True) == 0)
        arrays["layer_attn_n"][1] = flat  # AWO
        arrays["layer_attn_n"][0] = np.roll(flat, 1, axis=0)  # the same in AWI
        sentences.append(replace(sentence, arrays=arrays))
    assert choose_by_agreement(sentences) is None


def test_an_alignment_has_formed_from_an_agreement_of_0_5_on():
    assert [Agreement(MapName(0), MapName(1), dice).formed for dice in (0.49, 0.5)] == [False, True]


def test_only_the_first_sentences_with_maps_are_compared(make_sentence):
    sentences = planted(make_sentence)
    stub = make_sentence(9, status="empty")
    noisy = [make_sentence(id_, "p q r s . </s>", "g h i j . </s>") for id_ in range(20, 40)]
    choice = choose_by_agreement([stub, *sentences, *noisy], pairs=len(sentences))
    assert choice == choose_by_agreement(sentences)
    assert choose_by_agreement([*sentences, *noisy], pairs=len(sentences) + 1).dice < choice.dice


def test_nothing_to_choose_among(make_sentence):
    assert choose_by_agreement([make_sentence(0, SOURCE, TARGET, layers=1)]) is None
    (sentence,) = planted(make_sentence, ids=[0])
    zero = replace(sentence, arrays={name: 0 * array for name, array in sentence.arrays.items()})
    assert choose_by_agreement([zero]) is None


def test_sentences_to_compare_are_those_of_one_model(make_sentence):
    with pytest.raises(UsageError, match="0 sentence pairs"):
        choose_by_agreement([make_sentence(0)], pairs=0)
    with pytest.raises(InputError, match="no sentence has maps"):
        choose_by_agreement([make_sentence(0, status="empty")])
    with pytest.raises(InputError, match="sentence 1 has other layers or heads"):
        choose_by_agreement([make_sentence(0), make_sentence(1, layers=3)])
