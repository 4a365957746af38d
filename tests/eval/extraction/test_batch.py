"""Links of many pairs at once are those of each pair alone, and so are the errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction import batch
from alignment_eval.extraction.batch import choose_links, grouped, read_batch
from alignment_eval.extraction.extract import WordLinks, word_links
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.maps.padded import PaddedMaps, batch_axes
from alignment_eval.maps.sentence import SentenceMaps
from tests.facts import facts

Factory = Callable[..., SentenceMaps]
TEXT = [("a@@ b c . </s>", "x y@@ z . </s>"), ("b </s>", "y </s>"), ("<de> a b@@ c d@@ e </s>", "x x y z@@ y </s>")]


def padded(sentences: Sequence[SentenceMaps]) -> PaddedMaps:
    """A batch, with NaN as padding: before source tokens, behind target tokens."""
    longest = {"T": max(len(s.target.tokens) for s in sentences), "S": max(len(s.source.tokens) for s in sentences)}
    columns = [longest["S"] - len(s.source.tokens) for s in sentences]
    arrays = {}
    for name in sentences[0].arrays:
        axes = batch_axes(name)
        each = []
        for sentence, first in zip(sentences, columns):
            array = sentence.arrays[name]
            ends = {"T": (0, longest["T"] - len(sentence.target.tokens)), "S": (first, 0)}
            pads = [ends.get(axis, (0, 0)) for axis in axes.replace("B", "")]
            each.append(np.pad(array, pads, constant_values=np.nan))
        arrays[name] = np.stack(each, axis=axes.index("B"))
    return PaddedMaps([replace(s, arrays={}) for s in sentences], columns, arrays)


@pytest.fixture
def sentences(make_sentence: Factory) -> list[SentenceMaps]:
    return [make_sentence(id_, source=source, target=target) for id_, (source, target) in enumerate(TEXT, 3)]


def check(found: Sequence[WordLinks], sentences: Sequence[SentenceMaps], options: ExtractionOptions) -> None:
    choose_links(found)
    for sentence, links in zip(sentences, found):
        expected = word_links(sentence, options)
        np.testing.assert_array_equal(links.shares, expected.shares)
        np.testing.assert_array_equal(links.linked, expected.linked)


RULES = ["two-way=0.3", "grow=0.3", "balanced=0.3", "kobayashi2020", "shift-att", "threshold=0.2", "top-k=2"]


@pytest.mark.parametrize("maps", ["0.1:awi,1", "1", "0.2", "0:awi,1,1.1"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("combine", ["product", "mean"])
def test_links_are_those_of_each_pair_alone(
    sentences: list[SentenceMaps], monkeypatch: pytest.MonkeyPatch, maps: str, rule: str, combine: str
) -> None:
    options = ExtractionOptions("attn_n", heads=parse_maps(maps), setting="awo", rule=rule, combine=combine)
    for cells in (1, 2**17):  # one pair at a time, all together
        monkeypatch.setattr(batch, "CELLS", cells)
        check(read_batch(padded(sentences), options), sentences, options)


def test_pairs_of_several_rules_are_read_each_by_its_own(sentences: list[SentenceMaps]) -> None:
    each = [ExtractionOptions("attn_w", 1, rule=rule) for rule in ("grow=0.2", "balanced=0.2", "threshold=0.2")]
    found = [read_batch(padded(sentences), options) for options in each]
    choose_links(links for of_one in found for links in of_one)
    for of_one, options in zip(found, each):
        check(of_one, sentences, options)


def test_final_punctuation_is_linked_in_a_batch_too(sentences: list[SentenceMaps]) -> None:
    for rule in ("two-way=0", "two-way=0.2", "two-way=0.9", "grow=0", "grow=0.2", "balanced=0", "balanced=0.2"):
        options = ExtractionOptions("attn_w", 1, rule=rule, final_punctuation=True)
        check(found := read_batch(padded(sentences), options), sentences, options)
        assert {link for link in found[0].links if 2 in link} == {(2, 2)}


def test_each_pair_keeps_its_maps(sentences: list[SentenceMaps]) -> None:
    for found, expected in zip(padded(sentences), sentences):
        assert found.id == expected.id
        for name, array in expected.arrays.items():
            np.testing.assert_array_equal(found.arrays[name], array)


def test_an_error_names_its_pair(sentences: list[SentenceMaps]) -> None:
    options = ExtractionOptions("attn_w", 1, rule="two-way=0.3")
    sentences[1].arrays["head_attn_w"][1, 0, 1, 0] = np.inf
    with pytest.raises(InputError, match=facts("sentence 4 … NaN or infinite")):
        read_batch(padded(sentences), options)


def test_a_map_without_the_row_of_the_end(make_sentence: Factory) -> None:
    pair = make_sentence(7, source="a </s>", target="x y")
    with pytest.raises(InputError, match=facts("sentence 7 … does not end in </s>")):
        read_batch(padded([pair]), ExtractionOptions("attn_w", 1, rule="two-way=0.3"))


def test_groups_have_the_items_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "CELLS", 5)
    assert list(grouped([1, 2, 3, 9, 1, 0], int)) == [[1, 2, 3], [9], [1, 0]]
