"""Search and scoring with maps: incremental = teacher-forced, batch = alone, ensembles, hypotheses untouched."""

from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.attention import one_thread
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.generator import carry_maps
from fairseq_norm_plugin.hooks.printing import PrintedMap
from tests.facts import facts

SPECIALS = ({1, 2}, {1, 2})
LENGTHS = [(9, 4), (3, 6), (5, 1), (1, 3)]
ALL = RecordedMaps((0, 1, 2), recorded_quantities(["attn_w", "attn_n"], 1), nbest=4)


def search(models, dictionary, printed=None, recorded=None, **options):
    return carry_maps(SequenceGenerator(models, dictionary, **options), printed, recorded)


def scoring(dictionary, recorded=None):
    return carry_maps(SequenceScorer(dictionary), None, recorded)


def layer_map(arrays, kind, layer):
    return arrays["layer_attn_n"][layer] if kind == "attn_n" else arrays["head_attn_w"][layer].mean(0)


@pytest.mark.parametrize("kind", ["attn_w", "attn_n"])
@pytest.mark.parametrize("layer", [0, 2])
@pytest.mark.parametrize("left_pad", [True, False])
@pytest.mark.parametrize("beam", [1, 4])
def test_the_incremental_map_is_the_teacher_forced_one(build, make_sample, tgt_dict, kind, layer, left_pad, beam):
    model, sample = build(), make_sample(LENGTHS, left_pad_source=left_pad)
    printed = PrintedMap(kind, layer, None, "awo", "hard", SPECIALS)
    generator = search([model], tgt_dict, printed, ALL, beam_size=beam, max_len_b=12)
    stock = SequenceGenerator([build(swap=False)], tgt_dict, beam_size=beam, max_len_b=12).generate([], sample)
    compared = 0
    for sentence, plain, tokens in zip(generator.generate([model], sample), stock, sample["net_input"]["src_tokens"]):
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


def test_an_ensembles_maps_are_the_mean_of_its_models(build, make_sample, tgt_dict):
    models, sample = [build(seed=1), build(seed=2)], make_sample(LENGTHS)
    names = recorded_quantities(["attn_w", "attn_n"], 2)
    assert "transformed_norm" not in names
    recorded = RecordedMaps((0, 1, 2), (*names, "transformed_norm"), nbest=2)
    printed = PrintedMap("attn_n", 1, None, "awo", "hard", SPECIALS)
    hypotheses = search(models, tgt_dict, printed, recorded, beam_size=2, max_len_b=9).generate(models, sample)
    sample["target"] = torch.nn.utils.rnn.pad_sequence(
        [nbest[0]["tokens"] for nbest in hypotheses], batch_first=True, padding_value=1
    )
    inputs = sample["target"].roll(1, dims=1)
    inputs[:, 0] = 2
    for row, target in zip(inputs, sample["target"]):
        row[target.ne(1).sum() :] = 1
    sample["net_input"]["prev_output_tokens"] = inputs
    scorer = scoring(tgt_dict, recorded)
    single = [scorer.generate([model], sample) for model in models]
    for i, nbest in enumerate(hypotheses):
        for name, array in nbest[0][MAPS_KEY].items():
            mean = (single[0][i][0][MAPS_KEY][name] + single[1][i][0][MAPS_KEY][name]) / 2
            np.testing.assert_allclose(array, mean, atol=1e-5, err_msg=name)
        pads = sample["net_input"]["src_tokens"][i].eq(1)
        incremental = nbest[0]["attention"].t()[:, ~pads].numpy()
        np.testing.assert_allclose(incremental, nbest[0][MAPS_KEY]["layer_attn_n"][1], atol=1e-5)


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
        scoring(tgt_dict).generate([build()], sample)


@pytest.mark.parametrize("forced", [False, True])
def test_a_thread_waits_for_the_model(build, make_sample, tgt_dict, forced):
    model, sample, done = build(), make_sample(LENGTHS[:1]), []
    generator = scoring(tgt_dict) if forced else search([model], tgt_dict, max_len_b=3)
    thread = threading.Thread(target=lambda: done.append(generator.generate([model], sample)), daemon=True)
    with one_thread([model]):
        thread.start()
        thread.join(0.3)
        assert not done
    thread.join(20)
    assert done
