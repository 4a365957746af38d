"""A validation with gold: the gold is joined with its sentences, whose words must be certain; metrics from counts."""

import math

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
from fairseq_norm_plugin.hooks.validation import (
    GOLD_KEY,
    NUMBERS_KEY,
    GoldPair,
    Monitor,
    mixing_name,
    with_gold,
)
from fairseq_norm_plugin.text.tokens import side_readers
from tests.facts import facts, says
from tests.plugin.dictionaries import vocabulary_of
from tests.plugin.formulas.blocks import capture_blocks


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
        return with_gold(pairs, "test", tmp_path / "gold", "0", readers)

    return run


def test_a_gold_of_possible_links_only(join):
    assert join(["b b"], ["b b"], ["0p1"]).pairs[0].gold.possible.tolist() == [[False, True], [False, False]]


def test_a_sentence_of_uncertain_words_counts_as_one_without_links(join, caplog):
    first, second = join(["? b b", "b"], ["b b", "b"], ["0-0 1-1 7-7", "0-0"]).pairs
    assert (first.gold, len(first.links.sure), first.sentence.status) == (None, 3, "unknown source subwords")
    assert second.sentence.ok
    assert "1 of 6 source subwords (16.7 %)" in caplog.text
    assert says(caplog.text, "1 of 2 sentences (50.0 %)")
    assert "(--norm-source-text)" in caplog.text


def test_messages_name_the_options_of_training(join):
    with pytest.raises(InputError) as error:
        join(["b b"] * 40, ["b b"] * 40, ["1-1"] * 40)
    assert says(str(error.value), "give --aer-gold-base 1")
    assert "unused-zero" not in str(error.value)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (["", ""], "gold of subset test has no links"),
        (["0-0"], "1 sentences, but subset test has 2"),
        (["0-0", "1-1 5-0"], "gold, subset test: sentence 1 (line 2): link 5-0 … outside"),
    ],
)
def test_wrong_gold_is_told(join, gold, said):
    with pytest.raises(InputError, match=facts(said)):
        join(["b b"] * 2, ["b b"] * 2, gold)


def test_numbers_tell_golds_and_texts_apart(join):
    """The curves of two runs are of one only where they are equal."""
    first = join(["b b"], ["b b"], ["0-0"]).numbers
    assert first == join(["b b"], ["b b"], ["0-0"]).numbers
    for other, name in ((join(["b b"], ["b b"], ["1-1"]), "aer_gold"), (join(["b"], ["b b"], ["0-0"]), "aer_texts")):
        assert [key for key, value in other.numbers.items() if value != first[key]] == [name]
    assert all(0 <= value < 10**6 for value in first.values())  # fairseq logs six digits


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
    return {**sample, GOLD_KEY: pairs, NUMBERS_KEY: {"aer_sentences_gold": 6, "aer_gold": 123456, "aer_texts": 7}}


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
            ratios = mixing_ratio(block, kind)
            mean = np.mean([float(ratios[place]) for of_sentence in places for place in of_sentence])
            assert found[mixing_name(type_, layer, kind)] == pytest.approx(mean, abs=1e-6), (type_, kind)
    failed = logged(monitor, tally, monitor.tally(sample))
    assert all(math.isnan(value) for name, value in failed.items() if name.startswith("mixing"))
