"""Choosing maps without gold, by agreement within one model."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.options import ExtractionOptions, MapName
from alignment_eval.selection.agreement import FORMED, SHARE, agreements, choose_by_agreement, map_names

SOURCE, TARGET = "a@@ b c d e . </s>", "v w@@ x y z . </s>"
#: The aligned word of each target word, and the subwords of both sides as words.
PATH = [0, 2, 1, 3, 4]


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


def slow_dice(sentences, kind, awo, awi):
    """2 |A ∩ B| / (|A| + |B|) of the links that the extraction itself gives."""
    common = size = 0
    for sentence in sentences:
        a, b = (
            extract(sentence, ExtractionOptions(kind, heads=(name,), setting=setting, rule=f"two-way={SHARE}"))
            for name, setting in ((awo, "awo"), (awi, "awi"))
        )
        common, size = common + len(a & b), size + len(a) + len(b)
    return 2 * common / size if size else 0


@pytest.mark.parametrize(("awi", "awo"), [((0, 1), (1, None)), ((0, 2), (1, 0)), ((0, None), (1, 2))])
def test_finds_the_two_maps_that_align(make_sentence, awi, awo):
    found = choose_by_agreement(planted(make_sentence, awi, awo))
    assert (found.awi, found.awo) == (MapName(awi[0], awi[1], "awi"), MapName(awo[0], awo[1], "awo"))
    assert found.formed
    assert found.dice == pytest.approx(1)


def test_every_agreement_is_that_of_the_extracted_links(make_sentence):
    sentences = planted(make_sentence)
    for kind in ("attn_n", "attn_w"):
        names = map_names(sentences[0], kind)
        found = agreements(sentences, kind, names)
        slow = [[slow_dice(sentences, kind, awo, awi) for awi in names] for awo in names]
        assert np.array_equal(found, slow)


def test_maps_of_the_upper_layer_are_never_read_in_awi(make_sentence):
    found = choose_by_agreement(planted(make_sentence, awi=(1, 1), awo=(0, 2)))
    assert (found.awi.layer, found.awo.layer) == (0, 1)
    assert not found.formed


def test_random_maps_have_not_formed(make_sentence):
    found = choose_by_agreement([make_sentence(id_, SOURCE, TARGET) for id_ in range(30)])
    assert found.dice < FORMED


def test_stubs_are_skipped_and_only_the_first_pairs_are_read(make_sentence):
    sentences = planted(make_sentence)
    stub = make_sentence(9, status="empty")
    assert choose_by_agreement([stub, *sentences]).pairs == len(sentences)
    noisy = [make_sentence(id_, SOURCE, TARGET) for id_ in range(20, 40)]
    found = choose_by_agreement([*sentences, *noisy], pairs=len(sentences))
    assert (found, found.pairs) == (choose_by_agreement(sentences), len(sentences))


def test_nothing_to_choose_among(make_sentence):
    assert choose_by_agreement([make_sentence(0, SOURCE, TARGET, layers=1)]) is None
    (sentence,) = planted(make_sentence, ids=[0])
    zero = replace(sentence, arrays={name: 0 * array for name, array in sentence.arrays.items()})
    assert choose_by_agreement([zero]) is None


def test_bad_input(make_sentence):
    with pytest.raises(UsageError, match="0 sentence pairs"):
        choose_by_agreement([make_sentence(0)], pairs=0)
    with pytest.raises(InputError, match="no sentence has maps"):
        choose_by_agreement([make_sentence(0, status="empty")])
    with pytest.raises(InputError, match="sentence 1 has other layers or heads"):
        choose_by_agreement([make_sentence(0), make_sentence(1, layers=3)])
