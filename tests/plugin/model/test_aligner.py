"""Sentence pairs in memory: batched by length, order of ids kept, links of both directions and of none."""

import itertools
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from alignment_eval.align_pairs import align_pairs
from alignment_eval.alignment import Alignment
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapNames
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.profiles.chosen import AlignmentOptions, ChosenMethod
from alignment_eval.transfer.pieces import Strings
from fairseq_norm_plugin.model.aligner import Aligner, Tally
from fairseq_norm_plugin.model.model import length_batches
from fairseq_norm_plugin.text.pair import Line, SentencePair, with_copies
from tests.plugin.model.conftest import pair_of

FORWARD = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.2")
REVERSE = replace(FORWARD, heads="0.3")
METHODS = {
    "one": AlignmentMethod(FORWARD),
    "joined": AlignmentMethod(FORWARD, REVERSE, "average"),
}


@pytest.fixture
def pairs():
    """Pairs of words w0 … w29 by id; 3 and 8 cannot be aligned."""
    rng = np.random.default_rng(5)
    lengths = {9: (4, 3), 0: (1, 1), 3: (0, 2), 7: (12, 9), 2: (3, 5), 8: (70, 2), 5: (12, 2)}
    return {
        id_: pair_of(
            *(
                [f"w{word}" + ("@@" if word % 3 == 0 else "") for word in rng.integers(0, 30, length)]
                for length in sides
            )
        )
        for id_, sides in lengths.items()
    }


@pytest.fixture(params=[1, 2])
def threads(request):
    """With two, both directions run at once."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def aligner_by(method, directions, **options):
    return Aligner(ChosenMethod(method), directions, AlignmentOptions(**options))


def by_id(aligner, pairs, progress=lambda _: None):
    """The alignments of a window of these pairs, by their ids; they have their places."""
    found = aligner.align(10, list(pairs.values()), progress)
    assert [pair.id for pair in found] == list(range(10, 10 + len(pairs)))
    return {id_: replace(pair, id=id_) for id_, pair in zip(pairs, found)}


@pytest.mark.parametrize("max_tokens", [1, 26, 4000])
@pytest.mark.parametrize("how", METHODS)
def test_links_are_those_of_each_pair_alone(make_direction, pairs, how, max_tokens, threads):
    method, directions = METHODS[how], [make_direction(1), make_direction(2)]
    progress = []
    used = directions[: 1 if method.reverse is None else 2]
    aligner = aligner_by(method, used, max_tokens=max_tokens)
    found = by_id(aligner, pairs, progress.append)
    assert set(found) == set(pairs)
    assert sum(progress) == len(pairs)
    assert {id_: pair.status for id_, pair in found.items() if not pair.ok} == {
        3: "empty",
        8: "longer than 64 tokens",
    }
    for id_, pair in pairs.items():
        assert (found[id_].source, found[id_].target_spans) == (pair.source.text, pair.target.spans)
        if found[id_].ok:
            one = read_word_map(maps_alone(directions[0], id_, pair, FORWARD), FORWARD)
            other = read_word_map(maps_alone(directions[1], id_, pair.exchanged, REVERSE), REVERSE)
            (expected,) = align_pairs([(one, None if method.reverse is None else other)], method)
            assert found[id_].links == expected.links
    assert aligner.tally.subwords.tokens["source"] == sum(
        len(pairs[id_].source.given.split()) for id_, pair in found.items() if pair.ok
    )
    assert not any(aligner.tally.subwords.unknown.values())


def test_a_line_of_several_sentences_is_one_step_of_progress(make_direction, pairs):
    line = SentencePair(*map(Line.joined, zip(pairs[0], pairs[2], pairs[9])))
    progress = []
    (found,) = aligner_by(METHODS["one"], [make_direction(1)]).align(4, [line], progress.append)
    assert (found.id, sum(progress)) == (4, 1)


def test_maps_are_kept_of_the_pairs_of_lower_numbers(make_direction, pairs):
    """The numbers are places in the text."""
    aligner = Aligner(ChosenMethod(METHODS["one"]), [make_direction(1)], AlignmentOptions(), kept=12)
    assert [id_ for id_, pair in by_id(aligner, pairs).items() if pair.maps is not None] == [9, 0]


@pytest.mark.parametrize("max_tokens", [1, 4000])
def test_scores_have_the_log_probabilities_of_a_whole_pass(make_direction, pairs, max_tokens):
    """In both directions, and the mean contribution of the source over the rows of a recorded map."""
    directions = [make_direction(1), make_direction(2)]
    aligner = aligner_by(METHODS["joined"], directions, max_tokens=max_tokens, source_contribution=True)
    links = {id_: pair.links for id_, pair in by_id(aligner_by(METHODS["joined"], directions), pairs).items()}
    for pair in by_id(aligner, pairs).values():
        if not pair.ok:
            assert pair.scores == PairScores()
            continue
        assert pair.links == links[pair.id]
        ways = [direction.encode(way) for direction, way in zip(directions, (pairs[pair.id], pairs[pair.id].exchanged))]
        whole = [direction.scores({0: way})[0].mean() for direction, way in zip(directions, ways)]
        assert [pair.scores.log_prob, pair.scores.reverse_log_prob] == pytest.approx(whole, abs=6e-4)
        maps = directions[0].maps({0: ways[0]}, ["alti_rollout"], MapNames("0,1,2"))[0].layer_maps("alti_rollout")
        assert pair.scores.source_contribution == pytest.approx(maps[2].sum(axis=1).mean(), abs=6e-4)


def test_words_of_copies_are_linked_to_each_other_only(make_direction):
    aligner = aligner_by(METHODS["one"], [make_direction(1)])
    pair = with_copies(pair_of(["w1", "x", "w2"], ["w3", "x"]), Strings((re.compile("x"),)))
    text = pair.source.text, pair.target.text, pair.source.spans, pair.target.spans
    links = {(0, 0): 0.9, (1, 0): 0.8, (2, 1): 0.7}
    found = aligner._finished(Alignment(*text, list(links), links), pair)
    assert (found.links, found.confidences) == ([(0, 0), (1, 1)], {(0, 0): 0.9, (1, 1): 1.0})


@pytest.mark.parametrize(("links", "none"), [(0, 1), (1, 1), (2, 0)])
def test_a_pair_of_one_link_counts_like_one_of_none(make_direction, links, none):
    """The one may be of the final punctuation."""
    aligner, pair = aligner_by(METHODS["one"], [make_direction(1)]), pair_of(["w1", "w2", "w3"], ["w4", "w5", "w6"])
    text = pair.source.text, pair.target.text, pair.source.spans, pair.target.spans
    aligner._finished(Alignment(*text, [(k, k) for k in range(links)]), pair)
    assert (aligner.tally.counts["pairs"], aligner.tally.counts["none"]) == (1, none)


@pytest.mark.parametrize(("pairs", "none", "every", "warned"), [(10, 3, 3, 1), (10, 3, 2, 0), (9, 9, 0, 0)])
def test_links_of_more_than_half_of_ten_pairs_or_more_show_no_alignment(pairs, none, every, warned):
    tally = Tally(Counter(pairs=pairs, none=none, every=every))
    assert len([*tally.warnings()]) == warned


def maps_alone(direction, id_, pair, options):
    return direction.maps({id_: direction.encode(pair)}, [options.kind], options.heads)[id_]


@pytest.mark.parametrize("max_tokens", [1, 30, 100, 10**6])
def test_batches_are_of_similar_length(max_tokens):
    lengths = np.random.default_rng(3).integers(2, 40, (50, 4))
    found = list(length_batches(dict(enumerate(lengths.tolist())), max_tokens, list))
    assert all(batch[row] == lengths[row].tolist() for batch in found for row in batch)
    batches = list(map(list, found))
    assert sorted(row for batch in batches for row in batch) == list(range(50))
    longest = [lengths[row].max() for batch in batches for row in batch]
    assert longest == sorted(longest)
    limit = max(max_tokens, lengths.max())
    for batch in batches:
        assert len(batch) * lengths[batch].max() <= limit
    for batch, after in itertools.pairwise(batches):
        assert (len(batch) + 1) * lengths[after[0]].max() > limit  # no batch is smaller than it must be
    assert list(length_batches({}, max_tokens)) == []
