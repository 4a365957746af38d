"""The counts of a batch: those of each sentence by itself, also after one whose words are not certain."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.links.read import ReadOptions
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.scoring.gold_corpus import GoldMatrix
from fairseq_norm_plugin.hooks.monitoring.counts import Monitor
from fairseq_norm_plugin.hooks.monitoring.gold import GOLD_KEY, GoldPair
from fairseq_norm_plugin.hooks.monitoring.options import MonitorOptions

WORDS = 3


@pytest.fixture
def monitor():
    extraction = ExtractionOptions("attn_n", MapNames([MapName(0)]), setting="awo", rule="kobayashi2020")
    return Monitor(MonitorOptions({}, {}, ReadOptions(base="0"), extraction, 1, ()), {}, (1, 1))


def pair(id_, certain):
    side = SentenceSide(("a", "b", "c", "</s>"), np.array([0, 1, 2, -1], dtype=np.int32))
    sentence = SentenceMaps(id_, side, side, layers=(), status="ok")
    gold = GoldSentence(frozenset((k, k) for k in range(WORDS)))
    return GoldPair(sentence, GoldMatrix.of(gold, sentence) if certain else None, WORDS, 3)


def test_every_sentence_with_certain_words_is_counted(monitor):
    pairs = [pair(0, True), pair(1, False), pair(2, True)]
    tokens = torch.tensor([[4, 5, 6, 2]] * 3)
    maps = torch.eye(4).expand(3, 4, 4)
    sample = {GOLD_KEY: pairs, "net_input": {"src_tokens": tokens}, "target": tokens}
    tally = monitor.count(sample, [{"head_attn_w": maps[:, None], "layer_attn_n": maps}])
    assert (tally["_aer_sure"], tally["_aer_scored"], tally["_aer_not_scored"]) == (9, 3, 0)
    for name in ("aer_l0_w_awo", "aer_l0_n_awo"):  # of the diagonal, whose last word links, too
        assert [tally[f"_{name}_{count}"] for count in ("links", "links_sure", "links_possible")] == [6, 6, 6]
    failed = monitor.failed(sample)
    assert failed.keys() == tally.keys()
    assert (failed["_aer_scored"], failed["_aer_not_scored"], replace(pairs[0]).gold_size) == (0, 3, 3)
