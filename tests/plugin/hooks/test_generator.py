"""Search and scoring with maps: incremental = teacher-forced, batch = alone, ensembles, hypotheses untouched."""

import threading

import numpy as np
import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from fairseq.sequence_scorer import SequenceScorer

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import ExtractionOptions
from fairseq_norm_plugin.capture.attention import in_one_thread
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, recorded_quantities
from fairseq_norm_plugin.hooks.generator import PrintedMap, carry_maps
from tests.facts import facts

SPECIALS = ({1, 2}, {1, 2})
LENGTHS = [(9, 4), (3, 6), (5, 1), (1, 3)]
ALL = RecordedMaps((0, 1, 2), recorded_quantities(["attn_w", "attn_n"], 1), nbest=4)


def shown(kind, layer, setting="awo", style="hard", specials=SPECIALS):
    return PrintedMap(ExtractionOptions(kind, str(layer), setting=setting), style, specials)


def search(models, dictionary, printed=None, recorded=None, **options):
    return carry_maps(SequenceGenerator(models, dictionary, **options), printed, recorded)


def layer_map(arrays, kind, layer):
    return arrays["layer_attn_n"][layer] if kind == "attn_n" else arrays["head_attn_w"][layer].mean(0)


@pytest.mark.parametrize(
    ("kind", "layer", "left_pad", "seeds", "beam"),
    [
        ("attn_w", 0, True, (0,), 1),
        ("attn_w", 2, False, (1, 2), 2),
        ("attn_n", 0, False, (0,), 4),
        ("attn_n", 2, True, (1, 2), 2),
    ],
)
def test_the_incremental_map_is_the_teacher_forced_one(
    build, make_sample, tgt_dict, kind, layer, left_pad, seeds, beam
):
    models, sample = [build(seed) for seed in seeds], make_sample(LENGTHS, left_pad_source=left_pad)
    printed = shown(kind, layer)
    generator = search(models, tgt_dict, printed, ALL, beam_size=beam, max_len_b=12)
    compared = 0
    for sentence, tokens in zip(generator.generate(models, sample), sample["net_input"]["src_tokens"]):
        for hypothesis in sentence:
            incremental = hypothesis["attention"].t()[:, tokens.ne(1)].numpy()
            forced = layer_map(hypothesis[MAPS_KEY], kind, layer)
            assert incremental.shape == forced.shape == (len(hypothesis["tokens"]), int(tokens.ne(1).sum()))
            np.testing.assert_allclose(incremental, forced, atol=1e-5)
            compared += 1
    assert compared == beam * len(LENGTHS)


@pytest.mark.parametrize("style", ["hard", "soft"])
def test_a_prefix_over_a_whole_target_has_maps_but_nothing_to_print(build, make_sample, tgt_dict, style):
    """fairseq's search returns the attention of another hypothesis there."""
    model, sample = build(), make_sample(LENGTHS)
    generator = search([model], tgt_dict, shown("attn_n", 0, style=style), ALL, beam_size=2)
    found = generator.generate([model], sample, prefix_tokens=sample["target"][:, :5])
    whole = sample["target"][:, :5].eq(tgt_dict.eos()).any(dim=1).tolist()
    assert set(whole) == {True, False}
    for nbest, given in zip(found, whole):
        assert [len(hypothesis["alignment"]) == 0 for hypothesis in nbest] == [given] * len(nbest)
        assert all(MAPS_KEY in hypothesis for hypothesis in nbest)


def test_scoring_without_references_is_refused(build, make_sample, tgt_dict):
    sample = make_sample(LENGTHS)
    sample["target"] = None
    with pytest.raises(InputError, match="needs references"):
        carry_maps(SequenceScorer(tgt_dict), None, None).generate([build()], sample)


def test_another_generator_cannot_carry_maps():
    with pytest.raises(UsageError, match=facts("builds a list")):
        carry_maps([], None, None)


@pytest.mark.parametrize("forced", [False, True])
def test_a_thread_waits_for_the_model(build, make_sample, tgt_dict, forced):
    model, sample, done = build(), make_sample(LENGTHS[:1]), threading.Event()
    generator = carry_maps(SequenceScorer(tgt_dict), None, None) if forced else search([model], tgt_dict, max_len_b=3)
    thread = threading.Thread(target=lambda: generator.generate([model], sample) and done.set(), daemon=True)
    with in_one_thread([model]):
        thread.start()
        assert not done.wait(0.3)
    assert done.wait(20)


EOS, PAD, TAG = 2, 1, 9


def printed(map_, source, target, setting, style="hard"):
    """The printed alignment, where :data:`TAG` and ``</s>`` are special."""
    map_, source, target = map(torch.tensor, (map_, source, target))
    return shown("attn_n", 0, setting, style, ({EOS, PAD, TAG},) * 2).alignment(map_, source, target)


def test_each_ordinary_token_is_linked_to_the_ordinary_token_of_the_largest_value():
    """Indices count ordinary tokens only, as fairseq's do; the first of equal values wins."""
    source, target = [TAG, 4, 5, EOS], [6, 7, EOS]
    map_ = [[5.0, 0.0, 1.0, 9.0], [5.0, 1.0, 0.0, 9.0], [5.0, 1.0, 1.0, 9.0]]
    assert printed(map_, source, target, "awo") == [(1, 0), (0, 1)]
    assert printed(map_, source, target, "awi") == [(0, 0), (0, 1)]  # the row below; </s> has none
    assert printed(map_[:2], [TAG, EOS, EOS, EOS], [6, EOS], "awo") == []
