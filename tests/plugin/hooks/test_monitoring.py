"""The gold of a validation subset: joined with its sentences, whose words must be certain."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from alignment_eval.commands.curve import COLUMNS, draw_curves, is_share
from alignment_eval.errors import InputError
from alignment_eval.extraction.method import ExtractionOptions, MapName, MapNames
from alignment_eval.links.read import ReadOptions
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.scoring.gold_corpus import GoldMatrix
from fairseq_norm_plugin.hooks.monitoring.counts import KIND_LETTERS, Monitor, metric_name, mixing_name
from fairseq_norm_plugin.hooks.monitoring.gold import GOLD_KEY, GoldPair, with_gold
from fairseq_norm_plugin.text.tokens import side_readers
from tests.facts import says
from tests.plugin.dictionaries import vocabulary_of


class Pairs(list):
    def __init__(self, dictionary, *texts):
        sides = [
            [torch.tensor([dictionary.index(t) for t in f"{line} </s>".split()]) for line in text] for text in texts
        ]
        super().__init__(zip(*sides))
        self.src, self.tgt = sides


@pytest.fixture
def join(tmp_path):
    """Join texts, as lines, and gold; ``texts`` are what was binarised."""
    known = vocabulary_of("a@@", "b")

    def run(source, target, gold, texts=(None, None)):
        (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold))
        pairs = Pairs(known.dictionary, source, target)
        paths = []
        for number, text in enumerate(texts):
            paths.append(None if text is None else tmp_path / f"text{number}")
            if text is not None:
                paths[-1].write_text("".join(f"{line}\n" for line in text))
        readers = side_readers(pairs, len(pairs), (known, known), tuple(paths), cut=False)
        return with_gold(pairs, "test", tmp_path / "gold", ReadOptions(base="0"), readers).pairs

    return run


def test_gold_of_known_words(join, caplog):
    first, second = join(["a@@ b b", "b"], ["b b", "a@@ a@@ b"], ["0-0 1p1", "0-0"])
    assert first.gold.sure.tolist() == [[True, False], [False, False]]
    assert first.gold.possible.tolist() == [[True, False], [False, True]]
    assert (len(first.links.sure), len(second.links.sure), first.gold_size) == (1, 1, 2)
    assert (first.sentence.ok, second.sentence.source.word_count) == (True, 1)
    assert "<unk>" not in caplog.text


def test_a_gold_of_possible_links_only(join):
    assert join(["b b"], ["b b"], ["0p1"])[0].gold.possible.tolist() == [[False, True], [False, False]]


def test_a_sentence_of_uncertain_words_counts_as_one_without_links(join, caplog):
    first, second = join(["? b b", "b"], ["b b", "b"], ["0-0 1-1 7-7", "0-0"])
    assert (first.gold, len(first.links.sure), first.sentence.status) == (None, 3, "unknown source subwords")
    assert second.sentence.ok
    assert "1 of 6 source subwords (16.7 %)" in caplog.text
    assert says(caplog.text, "1 of 2 sentences (50.0 %)")
    assert "(--norm-source-text)" in caplog.text


def test_the_texts_say_what_the_words_are(join, caplog):
    (only,) = join(["? b b"], ["b ? b"], ["0-0 1-1"], (["xb b"], ["b x@@ b"]))
    assert (only.sentence.source.words.tolist(), only.sentence.target.words.tolist()) == ([0, 0, 1, -1], [0, 1, 1, -1])
    assert only.gold.sure.shape == (2, 2)
    assert "have no links" not in caplog.text


def test_messages_name_the_options_of_training(join):
    with pytest.raises(InputError) as error:
        join(["b b"] * 40, ["b b"] * 40, ["1-1"] * 40)
    assert says(str(error.value), "give --aer-gold-base 1")
    assert "unused-zero" not in str(error.value)


WORDS = 3


@pytest.fixture
def monitor():
    extraction = ExtractionOptions("attn_n", MapNames([MapName(0)]), setting="awo", rule="kobayashi2020")
    return Monitor(extraction, 1, (), {}, (1, 1))


def pair(id_, certain):
    side = SentenceSide(("a", "b", "c", "</s>"), np.array([0, 1, 2, -1], dtype=np.int32))
    sentence = SentenceMaps(id_, side, side, layers=(), status="ok")
    gold = GoldSentence(frozenset((k, k) for k in range(WORDS)))
    return GoldPair(sentence, GoldMatrix.of(gold, sentence) if certain else None, gold, 3)


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


def test_metrics_that_the_monitor_logs_are_drawn_by_layer():
    names = [metric_name(3, kind, "awi") for kind in KIND_LETTERS] + [mixing_name("decoder.cross", 3, "attnres_n")]
    assert all(map(is_share, names))
    figure = draw_curves(pd.DataFrame([("run", "test", 1, name, 0, 0.5) for name in names], columns=list(COLUMNS)))
    assert figure.legends[0].get_texts()[0].get_text() == "layer 3"
    assert [axes.get_ylabel() for axes in figure.axes] == ["AER %", "mixing_decoder_cross %"]
