"""Search and scoring with maps: incremental = teacher-forced, batch = alone, ensembles, hypotheses untouched."""

import threading

import numpy as np
import pytest
import torch
from fairseq import utils
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import one_thread
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.generator import PrintedMap, carry_maps, hard_alignment, soft_alignment
from tests.facts import facts

SPECIALS = ({1, 2}, {1, 2})
LENGTHS = [(9, 4), (3, 6), (5, 1), (1, 3)]
ALL = RecordedMaps((0, 1, 2), recorded_quantities(["attn_w", "attn_n"], 1), nbest=4)


def search(models, dictionary, printed=None, recorded=None, **options):
    return carry_maps(SequenceGenerator(models, dictionary, **options), printed, recorded)


def layer_map(arrays, kind, layer):
    return arrays["layer_attn_n"][layer] if kind == "attn_n" else arrays["head_attn_w"][layer].mean(0)


@pytest.mark.parametrize("kind", ["attn_w", "attn_n"])
@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize(("seeds", "beam"), [((0,), 1), ((0,), 4), ((1, 2), 2)])
def test_the_incremental_map_is_the_teacher_forced_one(
    build, make_sample, tgt_dict, kind, layer, left_pad, seeds, beam
):
    models, sample = [build(seed) for seed in seeds], make_sample(LENGTHS, left_pad_source=left_pad)
    printed = PrintedMap(kind, layer, None, "awo", "hard", SPECIALS)
    generator = search(models, tgt_dict, printed, ALL, beam_size=beam, max_len_b=12)
    stock = SequenceGenerator([build(seed, swap=False) for seed in seeds], tgt_dict, beam_size=beam, max_len_b=12)
    nbests = zip(generator.generate(models, sample), stock.generate([], sample), sample["net_input"]["src_tokens"])
    compared = 0
    for sentence, plain, tokens in nbests:
        assert len(sentence) == len(plain)
        for hypothesis, expected in zip(sentence, plain):
            assert torch.equal(hypothesis["tokens"], expected["tokens"])
            assert torch.equal(hypothesis["positional_scores"], expected["positional_scores"])
            incremental = hypothesis["attention"].t()[:, tokens.ne(1)].numpy()
            forced = layer_map(hypothesis[MAPS_KEY], kind, layer)
            assert incremental.shape == forced.shape == (len(hypothesis["tokens"]), int(tokens.ne(1).sum()))
            np.testing.assert_allclose(incremental, forced, atol=1e-5)
            compared += 1
    assert compared == beam * len(LENGTHS)


def test_a_prefix_over_whole_targets_is_refused(build, make_sample, tgt_dict):
    model, sample = build(), make_sample(LENGTHS)
    generator = search([model], tgt_dict, PrintedMap("attn_n", 0, None, "awo", "hard", SPECIALS), beam_size=2)
    with pytest.raises(InputError, match=facts("--score-reference for forced decoding")):
        generator.generate([model], sample, prefix_tokens=sample["target"])
    generator.generate([model], sample, prefix_tokens=sample["target"][:, :1])  # a language tag, say, is fine


def test_scoring_without_references_is_refused(build, make_sample, tgt_dict):
    sample = make_sample(LENGTHS)
    sample["target"] = None
    with pytest.raises(InputError, match="needs references"):
        carry_maps(SequenceScorer(tgt_dict), None, None).generate([build()], sample)


@pytest.mark.parametrize("forced", [False, True])
def test_a_thread_waits_for_the_model(build, make_sample, tgt_dict, forced):
    model, sample, done = build(), make_sample(LENGTHS[:1]), threading.Event()
    generator = carry_maps(SequenceScorer(tgt_dict), None, None) if forced else search([model], tgt_dict, max_len_b=3)
    thread = threading.Thread(target=lambda: generator.generate([model], sample) and done.set(), daemon=True)
    with one_thread([model]):
        thread.start()
        assert not done.wait(0.3)
    assert done.wait(20)


EOS, PAD = 2, 1


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_awo_is_what_fairseq_prints(source_length, target_length, seed):
    generator = torch.Generator().manual_seed(seed)
    source = torch.cat([torch.arange(4, 4 + source_length), torch.tensor([EOS])])
    target = torch.cat([torch.arange(4, 4 + target_length), torch.tensor([EOS])])
    map_ = torch.rand(target_length + 1, source_length + 1, generator=generator)
    expected = utils.extract_hard_alignment(map_.clone(), source, target, PAD, EOS)
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awo") == expected


def test_awi_takes_the_row_below_and_has_none_for_the_end():
    source, target = torch.tensor([4, 5, EOS]), torch.tensor([6, 7, EOS])
    map_ = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0], [0.0, 1.0, 9.0]])
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awo") == [(1, 0), (0, 1)]
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awi") == [(0, 0), (1, 1)]
    assert soft_alignment(map_[:, :2], "awo") == [
        ["0.000000", "1.000000"],
        ["1.000000", "0.000000"],
        ["0.000000", "1.000000"],
    ]
    assert soft_alignment(map_[:, :2], "awi") == [["1.000000", "0.000000"], ["0.000000", "1.000000"]]


def test_ties_go_to_the_first_and_an_empty_source_has_no_links():
    source, target = torch.tensor([4, 5, EOS]), torch.tensor([6, EOS])
    assert hard_alignment(torch.ones(2, 3), source.ne(EOS), target.ne(EOS), "awo") == [(0, 0)]
    assert hard_alignment(torch.ones(2, 1), torch.tensor([False]), target.ne(EOS), "awo") == []
