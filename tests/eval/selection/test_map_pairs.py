"""Choosing the maps of a model by AER on a development gold."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.bidirectional import words_of
from alignment_eval.extraction.corpus import read_direction
from alignment_eval.extraction.defaults import product_of, upper_layers
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import MapName
from alignment_eval.links.table import GoldSentence
from alignment_eval.scoring.aer import score
from alignment_eval.selection.agreement import map_names
from alignment_eval.selection.map_pairs import aer_under, choose_maps_by_gold
from tests.facts import facts

PAIRS = [("a@@ b c . </s>", "x y@@ z . </s>"), ("a b c d </s>", "x y z v </s>"), ("a b@@ c </s>", "x y </s>")]


def corpus(make_sentence, seed, layers=3):
    """Three sentences out of order and one without maps, and random gold of all."""
    rng = np.random.default_rng(seed)
    made = [make_sentence(k + 10 * seed, a, b, layers=layers) for k, (a, b) in enumerate(PAIRS)]
    sentences = [replace(s, id=k) for k, s in enumerate(made)]
    gold = []
    for s in sentences:
        pairs = itertools.product(range(s.source.word_count), range(s.target.word_count))
        gold.append(GoldSentence(frozenset(p for p in pairs if rng.random() < 0.3)))
    return [make_sentence(3, status="too long"), *sentences[::-1]], [*gold, GoldSentence(frozenset({(0, 0)}))]


def slow_aer(sentences, gold, options):
    links = {s.id: extract(s, options) if s.ok else () for s in sentences}
    return score([links[id_] for id_ in range(len(gold))], gold).aer


@pytest.mark.parametrize("seed", range(8))
def test_the_choice_is_that_of_the_slow_loop(make_sentence, seed):
    kind = ("attn_n", "attn_w")[seed % 2]
    sentences, gold = corpus(make_sentence, seed)
    names = map_names(sentences[1], kind)
    options = [
        product_of((MapName(awi.layer, awi.head, "awi"), MapName(awo.layer, awo.head, "awo")), kind)
        for awo, awi in itertools.product(names, names)
        if awi.layer < awo.layer
    ]
    assert len(options) == 4 * 4 * 3
    options.append(replace(upper_layers(range(3)), kind=kind))
    figures = [slow_aer(sentences, gold, option) for option in options]
    found = choose_maps_by_gold(sentences, gold, range(3), kind)
    assert found.aer == min(figures)
    assert found.maps == options[figures.index(min(figures))]
    assert found.skipped == {3: "too long"}
    assert found.words == {s.id: words_of(s) for s in sentences if s.ok}


def test_a_model_of_one_layer_has_only_that(make_sentence):
    sentences, gold = corpus(make_sentence, 1, layers=1)
    found = choose_maps_by_gold(sentences, gold, [0])
    assert found.maps == upper_layers([0])
    assert found.aer == slow_aer(sentences, gold, found.maps)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5])
def test_the_figure_of_another_rule(make_sentence, share):
    sentences, gold = corpus(make_sentence, 1)
    maps = product_of((MapName(0, 0, "awi"), MapName(2)))
    read = [read_direction(sentence, maps) for sentence in sentences]
    options = maps.with_rule(f"two-way={share}")
    assert aer_under(options, read, gold) == slow_aer(sentences, gold, options)


def test_gold_of_other_text(make_sentence):
    sentences, gold = corpus(make_sentence, 1)
    with pytest.raises(InputError, match=facts("records have 4 sentences, the gold has 5")):
        choose_maps_by_gold(sentences, [*gold, gold[0]], range(3))
    with pytest.raises(InputError, match="the gold links target word 9"):
        choose_maps_by_gold(sentences, [GoldSentence(frozenset({(0, 9)})), *gold[1:]], range(3))
