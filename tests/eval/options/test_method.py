"""The options of maps, and a word table of ``extract``."""

import argparse

import pytest

from alignment_eval.alignment import align_pairs
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.options.method import add_map_arguments, stated_method, states_maps

TWO_WAY = ("--kind", "attn_n", "--layer", 1, "--setting", "awo", "--rule", "two-way=0.3")
PRODUCT = BidirectionalOptions("product")


def parsed(*words):
    parser = argparse.ArgumentParser()
    add_map_arguments(parser, "what is read")
    parser.add_argument("--reverse-heads")
    return parser.parse_args(words)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (
            ("--heads", "1.2", "--kind", "attn_w", "--setting", "awi", "--rule", "kobayashi2020", "--null", "mask"),
            ExtractionOptions("attn_w", "1.2", null="mask"),
        ),
        (
            ("--heads", "max-norm", "--final-punctuation", "--rule", "kobayashi2020"),
            ExtractionOptions("attn_n", "5", setting="awo", final_punctuation=True),
        ),
        (
            ("--heads", "1.2,0:awi", "--combine", "product", "--rule", "kobayashi2020"),
            ExtractionOptions("attn_n", "1.2,0:awi", "product", setting="awo"),
        ),
    ],
    ids=str,
)
def test_options_that_are_stated(words, options):
    args = parsed(*words)
    assert states_maps(args)
    assert stated_method(args, None, 0, max_norm=5).forward == options


def test_two_directions():
    method = stated_method(parsed("--heads", "1"), PRODUCT, 2)
    assert (method.forward.rule, method.reverse, method.both) == ("grow=0.4", method.forward, PRODUCT)
    assert method.word_table_passes == 2
    assert stated_method(parsed("--heads", "1"), BidirectionalOptions("average"), 0).forward.rule == "grow=0.25"
    other = stated_method(parsed("--heads", "1", "--reverse-heads", "0.3"), BidirectionalOptions("mutual"), 0).reverse
    assert (str(other.heads), other.rule) == ("0.3", "balanced=0.25")


def test_maps_and_profile():
    assert not states_maps(parsed("--rule", "top-k=2", "--profile", "p", "--no-final-punctuation"))
    assert states_maps(parsed("--heads", "1", "--profile", "none"))
    for words in (("--heads", "1", "--profile", "p"), ("--combine", "mean"), ("--reverse-heads", "1")):
        with pytest.raises(UsageError, match="--heads"):
            states_maps(parsed(*words))


def test_a_word_table(tmp_path, make_sentence, make_records, call):
    """Of the pairs of the corpus, in whatever order the records hold them."""
    texts = ["a b", "b a", "a a b", "c", "b c a", "c a b a", "a"]
    pairs = [make_sentence(k, source=f"{t} </s>", target=f"{t.upper()} </s>") for k, t in enumerate(texts)]
    pairs[3] = make_sentence(3, status="too long")
    directory = make_records(tmp_path / "run", [pairs[k] for k in (3, 6, 0, 1, 2, 4, 5)], shards=2)
    _, out, err = call("extract", directory, *TWO_WAY, "--word-table", 2)
    options = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
    method = AlignmentMethod(options, word_table_passes=2)
    found = align_pairs([(read_word_map(pair, options), None) for pair in pairs], method)
    assert out.splitlines() == [alignment.to_pharaoh() for alignment in found]
    assert out != call("extract", directory, *TWO_WAY)[1]
    assert "|word_table:2|word_table_pairs:10000|" in err
    assert "warning: 1 of 7 sentences cannot be aligned" in err
    assert "the word table was counted on 6 sentence pairs: below 30" in err
    status, _, err = call("extract", directory, *TWO_WAY, "--word-table", -1)
    assert (status, "word table passes -1" in err) == (2, True)
