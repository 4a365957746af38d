"""The gold of a validation subset: joined with its sentences, whose words must be certain."""

import pytest
import torch

from alignment_eval.errors import InputError
from alignment_eval.links.read import ReadOptions
from fairseq_norm_plugin.hooks.monitoring.gold import with_gold
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
        return with_gold(pairs, "test", tmp_path / "gold", ReadOptions(base="0"), readers)._pairs

    return run


def test_gold_of_known_words(join, caplog):
    first, second = join(["a@@ b b", "b"], ["b b", "a@@ a@@ b"], ["0-0 1p1", "0-0"])
    assert first.gold.sure.tolist() == [[True, False], [False, False]]
    assert first.gold.possible.tolist() == [[True, False], [False, True]]
    assert (first.sure, second.sure, first.gold_size) == (1, 1, 2)
    assert (first.sentence.ok, second.sentence.source.word_count) == (True, 1)
    assert "<unk>" not in caplog.text


def test_a_gold_of_possible_links_only(join):
    assert join(["b b"], ["b b"], ["0p1"])[0].gold.possible.tolist() == [[False, True], [False, False]]


def test_a_sentence_of_uncertain_words_counts_as_one_without_links(join, caplog):
    first, second = join(["? b b", "b"], ["b b", "b"], ["0-0 1-1 7-7", "0-0"])
    assert (first.gold, first.sure, first.sentence.status) == (None, 3, "unknown source subwords")
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
