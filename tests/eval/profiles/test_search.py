"""Choosing the maps of a model: by agreement without gold, or by AER on a gold."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.defaults import product_of, upper_layers
from alignment_eval.extraction.extract import extract, read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapName
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import words_of
from alignment_eval.profiles.search import (
    Agreement,
    aer_of_method,
    choose_by_agreement,
    choose_by_gold,
    exchanged_gold,
    map_names,
)
from alignment_eval.scoring.aer import score
from tests.facts import facts

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


def slow_dice(sentences, kind, pair):
    """2 |A ∩ B| / (|A| + |B|) of the links that the extraction itself gives, less what is chance in both.

    It is 0 if they share few links, or those on the diagonal only.
    """
    common = size = words = 0.0
    shared = straight = 0
    for sentence in sentences:
        a, b = (extract(sentence, ExtractionOptions(kind, [name], rule="two-way=0.3")) for name in pair)
        chance = len(a) * len(b) / (sentence.source.word_count * sentence.target.word_count)
        common, size = common + len(a & b) - chance, size + len(a) + len(b) - 2 * chance
        height, width = sentence.target.word_count, sentence.source.word_count
        shared, words = shared + len(a & b), words + (height + width) / 2
        straight += sum(i == int((j + 0.5) / height * width) for i, j in a & b)
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
    close = [pair for pair, dice in figures.items() if dice >= max(figures.values()) - 0.05]
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
        sentence = make_sentence(id_, "a b c d e f </s>", "u v w x y z </s>")
        arrays = {name: np.zeros_like(array, dtype=np.float64) for name, array in sentence.arrays.items()}
        linked = linked if id_ == 0 or linked.trace() else 0 * linked
        flat = linked + 0.02 * (linked.sum(axis=1, keepdims=True) == 0)
        arrays["layer_attn_n"][1] = flat  # AWO
        arrays["layer_attn_n"][0] = np.roll(flat, 1, axis=0)  # the same in AWI
        sentences.append(replace(sentence, arrays=arrays))
    assert choose_by_agreement(sentences) is None


def test_an_alignment_has_formed_from_an_agreement_of_0_4_on():
    assert [Agreement(MapName(0), MapName(1), dice, 99).formed for dice in (0.39, 0.4)] == [False, True]


def test_only_the_first_sentences_with_maps_are_compared(make_sentence):
    sentences = planted(make_sentence)
    stub = make_sentence(9, status="empty")
    noisy = [make_sentence(id_, SOURCE, TARGET) for id_ in range(20, 40)]
    choice = choose_by_agreement([stub, *sentences, *noisy], pairs=len(sentences))
    assert choice == choose_by_agreement(sentences)
    assert choice.pairs == len(sentences)
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


def corpus(make_sentence, seed, layers=3):
    """Three sentences out of order and one without maps, and random gold of all."""
    rng = np.random.default_rng(seed)
    made = [make_sentence(k + 10 * seed, a, b, layers=layers) for k, (a, b) in enumerate(TEXTS)]
    sentences = [replace(s, id=k) for k, s in enumerate(made)]
    gold = []
    for s in sentences:
        cells = list(itertools.product(range(s.source.word_count), range(s.target.word_count)))
        gold.append(GoldSentence(*(frozenset(c for c in cells if rng.random() < share) for share in (0.3, 0.2))))
    return [make_sentence(3, status="too long"), *sentences[::-1]], [*gold, GoldSentence(frozenset({(0, 0)}))]


def slow_aer(sentences, gold, options):
    links = {s.id: extract(s, options) if s.ok else () for s in sentences}
    return score([links[id_] for id_ in range(len(gold))], gold).aer


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rules", [["balanced=0.25"], ["kobayashi2020", "two-way=0.3"], ["shift-att"]])
def test_the_choice_by_gold_is_that_of_the_slow_loop(make_sentence, seed, rules):
    kinds = ("attn_n", "attn_w")[seed % 3 :] or ("alti",)
    sentences, gold = corpus(make_sentence, seed)
    if kinds == ("alti",):
        sentences = [replace(s, arrays={"layer_alti": s.arrays["layer_attn_n"]} if s.ok else {}) for s in sentences]
    options = [
        option.with_rule(rule)
        for kind in kinds
        for rule in rules
        for option in (
            *(product_of(pair, kind) for pair in pairs_of(sentences[1], kind)),
            replace(upper_layers(range(3)), kind=kind),
        )
    ]
    figures = [slow_aer(sentences, gold, option) for option in options]
    choice = choose_by_gold(sentences, gold, kinds, rules)
    assert [figure for _, figure in choice.ranking] == sorted(figures)
    assert (choice.maps, choice.aer) == (options[figures.index(min(figures))], min(figures))
    assert choice.skipped == {3: "too long"}
    assert choice.words == {s.id: words_of(s) for s in sentences if s.ok}
    pairs = [(read_word_map(sentence, choice.maps), None) for sentence in sentences]
    assert aer_of_method(AlignmentMethod(choice.maps), pairs, gold) == choice.aer


def test_a_model_of_one_layer_has_only_that(make_sentence):
    sentences, gold = corpus(make_sentence, 1, layers=1)
    choice = choose_by_gold(sentences, gold)
    assert (choice.maps, len(choice.ranking)) == (upper_layers([0]), 1)
    assert choice.aer == slow_aer(sentences, gold, choice.maps)


def test_gold_of_other_text(make_sentence):
    sentences, gold = corpus(make_sentence, 1)
    with pytest.raises(InputError, match=facts("records have 4 sentences, the gold has 5")):
        choose_by_gold(sentences, [*gold, gold[0]])
    with pytest.raises(InputError, match="gold: link 0-9"):
        choose_by_gold(sentences, [GoldSentence(frozenset({(0, 9)})), *gold[1:]])


def test_exchanged_gold():
    (exchanged,) = exchanged_gold([GoldSentence(frozenset({(0, 2)}), frozenset({(1, 3)}))])
    assert exchanged == GoldSentence(frozenset({(2, 0)}), frozenset({(3, 1)}))
