from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from alignment_eval.extraction.corpus import AlignedPair, DirectedPair, align_corpus, read_word_map
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions, parse_maps
from alignment_eval.links.sets import Link
from alignment_eval.links.symmetrize import symmetrize
from alignment_eval.maps.sentence import SentenceMaps

Factory = Callable[..., SentenceMaps]
Pairs = list[DirectedPair]
FORWARD = ExtractionOptions("attn_n", 1, setting="awo", rule="two-way=0.2")
REVERSE = FORWARD.with_maps(parse_maps("0"))
TEXT = {7: ("a b c </s>", "x y z </s>"), 2: ("b a@@ a </s>", "y x </s>"), 5: ("a </s>", "x y y </s>")}


@pytest.fixture
def sentences(make_sentence: Factory) -> dict[int, tuple[SentenceMaps, SentenceMaps]]:
    """Pairs in both directions, by id, not in order; two have no maps in a direction."""
    found = {}
    for id_, (source, target) in TEXT.items():
        other = replace(make_sentence(id_ + 10, source=target, target=source), id=id_)
        found[id_] = make_sentence(id_, source=source, target=target), other
    found[1] = make_sentence(1, status="empty"), make_sentence(1, status="empty")
    found[4] = make_sentence(4, source="a </s>", target="x </s>"), make_sentence(4, status="too long")
    return found


def pairs_of(sentences: dict[int, tuple[SentenceMaps, SentenceMaps]], method: AlignmentMethod) -> Pairs:
    return [
        (read_word_map(one, method.forward), read_word_map(other, method.reverse) if method.reverse else None)
        for one, other in sentences.values()
    ]


def links_of(aligned: list[AlignedPair]) -> dict[int, frozenset[Link]]:
    return {pair.id: pair.links.links for pair in aligned if pair.links is not None}


def exchanged(sentence: SentenceMaps) -> frozenset[Link]:
    return frozenset((i, j) for j, i in extract(sentence, REVERSE))


@pytest.mark.parametrize("how", ["one way", "mutual", "union", "grow-diag-final"])
def test_links_are_those_of_each_pair_alone(sentences: dict[int, tuple[SentenceMaps, SentenceMaps]], how: str) -> None:
    both = (
        None if how == "one way" else BidirectionalOptions(how) if how == "mutual" else BidirectionalOptions(method=how)
    )
    method = AlignmentMethod(FORWARD, None if both is None else REVERSE, both)
    aligned = list(align_corpus(pairs_of(sentences, method), method))
    assert [pair.id for pair in aligned] == [7, 2, 5, 1, 4]
    statuses = {pair.id: pair.status for pair in aligned if pair.links is None}
    assert statuses == ({1: "empty"} if both is None else {1: "empty", 4: "too long in the other direction"})
    found = links_of(aligned)
    for id_ in TEXT:
        one, other = sentences[id_]
        if both is None:
            expected = extract(one, FORWARD)
        elif both.join is not None:
            expected = extract(one, FORWARD) & exchanged(other)
        else:
            expected = symmetrize(extract(one, FORWARD), exchanged(other), how)
        assert found[id_] == expected
    assert any(found.values())
