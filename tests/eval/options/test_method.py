"""The options of maps, and those of a word table as ``extract`` has them."""

from __future__ import annotations

import argparse

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.corpus import align_corpus, read_word_map
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
    assert other is not None
    assert (str(other.heads), other.rule) == ("0.3", "balanced=0.25")


def test_maps_and_profile():
    assert not states_maps(parsed("--rule", "top-k=2", "--profile", "p", "--no-final-punctuation"))
    assert states_maps(parsed("--heads", "1", "--profile", "none"))
    for words in (("--heads", "1", "--profile", "p"), ("--combine", "mean"), ("--reverse-heads", "1")):
        with pytest.raises(UsageError, match="--heads"):
            states_maps(parsed(*words))


@pytest.fixture
def pairs(make_sentence):
    """Seven pairs of few words in the order of their length; the fourth was skipped."""
    texts = ["a b", "b a", "a a b", "c", "b c a", "c a b a", "a"]
    sentences = [make_sentence(k, source=f"{t} </s>", target=f"{t.upper()} </s>") for k, t in enumerate(texts)]
    sentences[3] = make_sentence(3, status="too long")
    return [sentences[k] for k in (3, 6, 0, 1, 2, 4, 5)]


def of_corpus(pairs, passes, first):
    options = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
    method = AlignmentMethod(options, word_table_passes=passes, word_table_pairs=first)
    found = align_corpus([(read_word_map(s, options), None) for s in sorted(pairs, key=lambda s: s.id)], method)
    return [" ".join(f"{i}-{j}" for i, j in sorted(pair.links.links)) if pair.links else "" for pair in found]


@pytest.mark.parametrize("first", [3, 5, 7, 10000])
def test_a_word_table(tmp_path, pairs, make_records, call, first):
    """Of the first pairs of the corpus, in whatever order the records hold them."""
    directory = make_records(tmp_path / "run", pairs, shards=2)
    _, out, err = call("extract", directory, *TWO_WAY, "--word-table", 2, "--word-table-pairs", first)
    assert out.splitlines() == of_corpus(pairs, 2, first)
    assert f"|word_table:2|word_table_pairs:{first}|" in err
    assert "warning: 1 of 7 sentences cannot be aligned" in err
    assert f"the word table was counted on {min(first, 7) - (first > 3)} sentence pairs: below 30" in err


def test_a_word_table_of_a_file(tmp_path, pairs, make_records, call):
    directory, word_table = make_records(tmp_path / "run", pairs), tmp_path / "word_table"
    counted = (*TWO_WAY, "--word-table", 2, "--word-table-pairs", 5, "--save-word-table", word_table)
    status, saved, _ = call("extract", directory, *counted)
    assert status == 0
    _, given, err = call("extract", directory, *TWO_WAY, "--word-table", word_table)
    assert "|word_table_file:" in err
    assert given.splitlines()[5:] == saved.splitlines()[5:]
    status, _, err = call("extract", directory, *counted)
    assert (status, "already exists" in err) == (1, True)
    assert call("extract", directory, *counted, "--overwrite")[0] == 0
    (tmp_path / "broken").write_bytes(b"PAR1")
    for options, message in (
        (("--word-table", tmp_path / "broken"), "broken: damaged, or not a word table file"),
        (
            ("--word-table", word_table, "--level", "token"),
            "--level token with a word table file: that is of words",
        ),
        (
            ("--save-word-table", tmp_path / "new"),
            "--save-word-table: no word table is counted here: expected --word-table",
        ),
        (("--word-table", -1), "--word-table -1: expected passes, 1 or more, 0 for no word table, or a file"),
        (("--word-table", word_table, "--save-word-table", "new"), "leave it out"),
        (("--word-table", 1, "--word-table-pairs", 0), "'0': expected a number, 1 or more"),
    ):
        status, _, err = call("extract", directory, *TWO_WAY, *options)
        assert status in (1, 2)
        assert message in err
    status, _, err = call("extract", directory, *TWO_WAY[:-1], "kobayashi2020", "--word-table", 1)
    assert (status, "rule 'kobayashi2020' and null 'allow'" in err) == (2, True)
