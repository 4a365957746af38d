"""Metrics of validations with gold, from counts of their batches."""

import math
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from fairseq.logging import metrics

from alignment_eval.errors import InputError
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.scoring.gold_corpus import GoldMatrix
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.formulas.kinds import mixing_ratio
from fairseq_norm_plugin.hooks.datasets import GOLD_KEY, GoldBatch, GoldPair
from fairseq_norm_plugin.hooks.monitoring import FAILED, Monitor, MonitorMixin, mixing_name
from tests.plugin.formulas.blocks import capture_blocks

WORDS, LAYERS = 3, 2
MIXING = ("attn_w", "attnres_n")


def monitor_of(rule):
    extraction = ExtractionOptions("attn_n", MapNames([MapName(0)]), setting="awo", rule=rule)
    return Monitor(extraction, LAYERS, MIXING, {ENCODER_SELF: 2, DECODER_SELF: 2, DECODER_CROSS: 2}, (1, 1))


@pytest.fixture
def monitor():
    return monitor_of("kobayashi2020")


def gold_batch(sample, certain):
    """A batch with gold: three words of each side, each with its own."""
    side = SentenceSide(("a", "b", "c", "</s>"), np.array([0, 1, 2, -1], dtype=np.int32))
    pairs = []
    for id_, is_certain in enumerate(certain):
        sentence = SentenceMaps(id_, side, side, layers=(), status="ok")
        gold = GoldSentence(frozenset((k, k) for k in range(WORDS)))
        pairs.append(GoldPair(sentence, GoldMatrix.of(gold, sentence) if is_certain else None, gold))
    numbers = {"aer_sentences_gold": 6, "aer_gold": 123456, "aer_texts": 7}
    return {**sample, GOLD_KEY: GoldBatch(pairs, numbers)}


class Criterion:
    def forward(self, model, sample):
        return model(**sample["net_input"])


def diagonal(monitor, certain=(True, False, True), scale=1.0):
    """A batch whose maps are the gold, and its counts."""
    tokens = torch.tensor([[4, 5, 6, 2]] * len(certain))
    sample = gold_batch({"net_input": {"src_tokens": tokens}, "target": tokens}, certain)
    maps = scale * torch.eye(4).expand(len(certain), 4, 4)
    hits = monitor.hits(sample, [{"head_attn_w": maps[:, None], "layer_attn_n": maps}] * LAYERS)
    return sample, monitor.tally(sample, hits)


def logged(monitor, *tallies):
    """The metrics of a validation with batches of these counts."""
    with metrics.aggregate(new_root=True) as found:
        for tally in tallies:
            metrics.log_scalar_sum("of another batch", 0)
            monitor.log([tally, {"loss": 1.0}])
    return found.get_smoothed_values()


def test_metrics_are_those_of_all_sentences(monitor):
    """A sentence whose words are not certain counts as one without links."""
    _, tally = diagonal(monitor)
    found = logged(monitor, tally, tally)
    for name in ("aer_l0_w_awo", "aer_l1_n_awo", "aer"):  # |A| and |A and S| are 12, |S| is 18
        assert found[name] == pytest.approx(1 - 24 / 30, abs=1e-6)
    assert (found["aer_precision"], found["aer_recall"]) == (1, pytest.approx(12 / 18, abs=1e-6))
    assert found["aer_l0_n_awi"] == pytest.approx(1 - 2 * 0 / 30)
    names = ("aer_sentences", "aer_sentences_gold", "aer_unaligned", "aer_gold", "aer_texts")
    assert [found[name] for name in names] == [6, 6, 2, 123456, 7]
    assert logged(monitor, {"loss": 1.0}).keys() == {"of another batch"}
    other = logged(monitor_of("shift-att"), tally, tally)
    assert [name for name, value in other.items() if value != pytest.approx(found[name], nan_ok=True)] == ["aer_method"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_maps_of_broken_weights_are_not_counted(monitor, value):
    """A model that diverged: never a finite AER out of maps that are not finite."""
    with pytest.raises(InputError, match="NaN or infinite"):
        diagonal(monitor, scale=value)
    sample, tally = diagonal(monitor)
    failed = monitor.tally(sample)
    assert list(failed) == list(tally)  # processes sum their counts by position
    assert math.isinf(logged(monitor, tally, failed)["aer"])


class Stock:
    steps = 0

    @torch.no_grad()
    def valid_step(self, sample, model, criterion):
        self.steps += 1
        criterion.forward(model, sample)
        return torch.ones(()), 1, {"loss": 1.0}


class Task(MonitorMixin, Stock):
    pass


def test_a_pass_of_which_the_maps_fail_is_not_made_again(monitor, build, make_sample, monkeypatch):
    """Other processes make one, and wait for each other in it."""
    task = Task()
    task._monitor = monitor
    sample = gold_batch(make_sample([(7, 3), (3, 6)]), [True] * 2)
    monkeypatch.setattr(monitor, "hits", MagicMock(side_effect=InputError("no maps")))
    loss, size, logged = task.valid_step(sample, build(decoder_layers=LAYERS), Criterion())
    assert (task.steps, float(loss), size, logged[FAILED]) == (1, 1, 1, 2)


def test_mixing_ratios_are_means_over_positions_that_mix(monitor, build, make_sample):
    model, criterion = build(decoder_layers=LAYERS), Criterion()
    sample = gold_batch(make_sample([(7, 3), (3, 6), (0, 0)]), [False] * 3)
    with torch.no_grad(), monitor.listening(criterion) as tallies:
        criterion.forward(model, sample)
    (tally,) = (count() for count in tallies)
    found = logged(monitor, tally)
    for (type_, layer), block in capture_blocks(model, sample).items():
        tokens = sample["net_input"]["src_tokens"] if type_ == ENCODER_SELF else sample["target"]
        places = [[(b, t) for t, token in enumerate(row) if token != 1] for b, row in enumerate(tokens.tolist())]
        if type_ == ENCODER_SELF:  # the last sentence is </s> only
            places = places[:2]
        if type_ == DECODER_SELF:
            places = [of_sentence[1:] for of_sentence in places]
        for kind in MIXING:
            name = mixing_name(type_, layer, kind)
            assert (name in found) == (kind == "attnres_n" or type_ != DECODER_CROSS)  # else it is always 1
            if name not in found:
                continue
            ratios = mixing_ratio(block, kind)
            mean = np.mean([float(ratios[place]) for of_sentence in places for place in of_sentence])
            assert found[name] == pytest.approx(mean, abs=1e-6), (type_, kind)
    failed = logged(monitor, tally, monitor.tally(sample))
    assert all(math.isnan(value) for name, value in failed.items() if name.startswith("mixing"))
