"""One direction: what its models take, and which of their maps are computed."""

import itertools

import numpy as np
import pytest
import torch

from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import ExtractionOptions, MapNames
from alignment_eval.maps.sentence import SentenceMaps
from fairseq_norm_plugin.capture.recorder import RecordedMaps, forced_maps, recorded_quantities
from fairseq_norm_plugin.model.model import Model, encode, refusal, usable_pairs
from fairseq_norm_plugin.text.tokens import SpecialTokens
from tests.plugin.model.conftest import pair_of


def words(count):
    return [f"w{1 + number % 29}" for number in range(count)]


def test_a_pair_may_be_as_long_as_the_positions_of_each_model(build, make_direction):
    """64 positions hold 63 words and </s>."""
    direction = make_direction(build(1, max_source_positions=20), build(2, max_target_positions=30))
    assert direction.limits == (20, 30)
    for source, target, why in ((19, 29, ""), (20, 29, "longer than 20 tokens"), (19, 30, "longer than 30 tokens")):
        assert direction.refusal(direction.encode(pair_of(words(source), words(target)))) == why
    exchanged = make_direction(1)
    for source, target, both, refused in (
        (19, 19, [direction, exchanged], ""),
        (19, 64, [direction, exchanged], "longer than 30 tokens"),
        (29, 19, [exchanged, direction], ""),
        (29, 20, [exchanged, direction], "longer than 20 tokens"),
        (19, 0, [direction], "empty"),
    ):
        assert refusal(encode(pair_of(words(source), words(target)), both), both) == refused
    pairs = [pair_of(words(a), words(b)) for a, b in ((1, 2), (1, 2), (0, 2), (1, 3))]
    assert [read.words for (read,) in usable_pairs(pairs, [direction])] == [pairs[0].words, pairs[3].words]


def test_the_first_300_usable_pairs_are_enough(make_direction):
    pairs = (pair_of([source], [target]) for source, target in itertools.product(words(20), words(20)))
    assert len(usable_pairs(pairs, [make_direction(1)])) == 300
    assert next(pairs).words == (("w16",), ("w1",))  # pair 301 was not read


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, "attn_logit"),
        ({"adaptive_softmax_cutoff": [8, 12], "share_decoder_input_output_embed": False}, "attn_n"),
        ({"decoder_output_dim": 8, "share_decoder_input_output_embed": False}, "attn_n"),
    ],
)
def test_a_model_without_an_embedding_of_each_prediction_reads_norms(make_direction, options, kind):
    """Few pairs, so the upper layers are read: by a kind that the model has."""
    direction = make_direction(1, **options)
    profile = direction.fit_profile([], 100)
    assert profile.maps.kind == kind
    names = list(profile.maps.heads)
    (maps,) = direction.maps({0: direction.encode(pair_of(["w1"], ["w2"]))}, [kind], names).values()
    assert read_word_map(maps, profile.extraction(None)).scores is not None


def test_a_word_that_looks_like_a_tag_is_unknown(build, make_direction, tgt_dict):
    """Here w5 stands for the tag before each source, and so for one in targets, too."""
    plain = make_direction(build(1))
    tag, eos = tgt_dict.index("w5"), tgt_dict.eos()
    special_tokens = SpecialTokens((tag,), (eos,), (), (eos,), eos)
    direction = Model([build(1)], plain.vocabularies, plain.pipelines, "name", special_tokens)
    source, target = direction.encode(pair_of(["w5", "w4", "<pad>", "</s>"], ["w4", "w5"]))
    unknown = tgt_dict.unk()
    assert source.ids.tolist() == [tag, unknown, tgt_dict.index("w4"), unknown, unknown, eos]
    assert target.ids.tolist() == [tgt_dict.index("w4"), unknown, eos]
    assert (source.unknown, target.unknown) == (3, 1)


PAIRS = {
    7: pair_of(["w3@@", "w1", "w2"], ["w4", "w6@@", "w5", "w7"]),
    2: pair_of(["w2@@", "w1"], ["w2@@", "w3"]),
}


def everything(direction, pair, kind):
    """All maps of one pair, by a pass that records all layers."""
    recorded = RecordedMaps((0, 1, 2), recorded_quantities([kind], 1))
    sample = direction.sample({0: pair}, targets=False)
    pad, first = direction.vocabularies[1].dictionary.pad(), direction.special_tokens.first
    ((_, batch),) = forced_maps(direction.networks, sample, [[{"tokens": pair[1].ids}]], recorded, pad, first)
    (arrays,) = batch.sentences([slice(None)], [slice(None)])
    return SentenceMaps(0, pair[0].side, pair[1].side, recorded.layers, arrays=arrays)


@pytest.mark.parametrize(
    ("kind", "heads"), [("attn_n", "0,2"), ("attn_n", "1.2"), ("attn_n", "0.1,2"), ("attn_w", "0.1,2"), ("alti", "0,2")]
)
@torch.no_grad()
def test_named_maps_are_those_of_a_pass_over_all_layers(make_direction, kind, heads):
    """In a batch of pairs of different lengths."""
    direction = make_direction(1)
    encoded = {id_: direction.encode(pair) for id_, pair in PAIRS.items()}
    options = ExtractionOptions(kind, heads, setting="awo", rule="two-way=0.2")
    some = direction.maps(encoded, [kind], options.heads)
    for id_, pair in encoded.items():
        expected = read_word_map(everything(direction, pair, kind), options)
        np.testing.assert_allclose(read_word_map(some[id_], options).scores, expected.scores, rtol=2e-5)
        assert (expected.scores > 0).all()


@pytest.mark.parametrize(
    "softmax", [{}, {"adaptive_softmax_cutoff": [8, 12], "share_decoder_input_output_embed": False}]
)
def test_scores_are_the_log_probabilities_that_come_with_maps(make_direction, softmax):
    """Also of an adaptive softmax, whose tokens have clusters."""
    direction = make_direction(1, **softmax)
    encoded = {id_: direction.encode(pair) for id_, pair in PAIRS.items()}
    with_maps = direction.maps(encoded, ["attn_w"], MapNames("1"), log_probs=True)
    for id_, found in direction.scores(encoded).items():
        assert found == pytest.approx(with_maps[id_].log_probs, rel=1e-5)
