"""What recorded runs are read by: a profile of theirs or a named one, and their pairs in one direction or in two."""

from dataclasses import replace

import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.method import AlignmentMethod, BidirectionalOptions, ExtractionOptions
from alignment_eval.profiles.of_records import directed_pairs
from alignment_eval.profiles.profile import calibrated
from alignment_eval.records.store import Records

PAIRS = 32
PROFILE = calibrated(None, (8, 9), "synthetic", "t", 99).to_json()  # of other layers than the records


@pytest.fixture
def directory(tmp_path, make_sentence, make_records, monkeypatch):
    """Records of 32 equal pairs, of as many different ones, and of some that carry a damaged profile."""
    monkeypatch.chdir(tmp_path)
    words, different = ("a b c . </s>", "x y z . </s>"), (f"a b{k} c . </s>" for k in range(PAIRS))
    made = [make_sentence(k, *words) for k in range(PAIRS)]
    make_records(tmp_path / "run", made)
    make_records(tmp_path / "carrying", made, profile=PROFILE[:-30])
    make_records(tmp_path / "different", [make_sentence(k, text, words[1]) for k, text in enumerate(different)])
    (tmp_path / "p.json").write_text(PROFILE)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("run", "--profile", "p.json"), "p.json: reads map 8 (LAYER.HEAD, or LAYER for a whole one), but"),
        (("run", "--profile", "none.json"), "none.json: cannot be read as a profile"),
        (("carrying",), "carrying: damaged, or not a profile (Input data was truncated"),
    ],
)
def test_a_profile_that_does_not_fit(directory, call, options, message):
    """It says why, in one line, and writes nothing."""
    status, out, messages = call("extract", *options, "-o", "out")
    assert (status, out, len(messages.splitlines()), (directory / "out").exists()) == (1, "", 1, False)
    assert message in messages
    if options == ("carrying",):
        assert "or pass --profile none" in messages
        assert call("extract", *options, "-o", "out", "--profile", "none")[0] == 0


def test_without_a_profile_the_records_decide(directory, call):
    """Maps are chosen on different pairs, if there are enough; here they are random, so the upper layers are read."""
    status, out, messages = call("extract", "run")
    assert status == 0, messages
    assert "profile: none, chosen on the maps in run; the text is too short to choose maps by" in messages
    status, out, messages = call("extract", "different")
    assert (status, out.count("\n")) == (0, PAIRS)
    assert "the mean of layer 0 (AWO) and layer 1 (AWO)" in messages
    assert "the alignment of this model has not formed" in messages


OPTIONS = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")


def test_pairs_of_the_word_table_come_first(tmp_path, make_sentence, make_records):
    """Sentences 3, 1, 0, 2 in that order, with a worse hypothesis of 1."""
    sentences = [make_sentence(k) for k in (3, 1, 0, 2)]
    sentences.insert(2, replace(make_sentence(9), id=1, rank=1))
    method = AlignmentMethod(OPTIONS, word_table_passes=1, word_table_pairs=2)
    pairs = directed_pairs(Records(make_records(tmp_path, sentences, nbest=2)), None, method, "word", None)
    assert [forward.sentence.id for forward, _ in pairs] == [1, 0, 3, 2]


def test_errors_of_the_reverse_name_it(tmp_path, make_sentence, make_records):
    run, back = (Records(make_records(tmp_path / name, [make_sentence(0)])) for name in ("run", "back"))
    method = AlignmentMethod(OPTIONS, replace(OPTIONS, heads="7"), BidirectionalOptions("product"))
    with pytest.raises(InputError, match=r"back: .*layer 7"):
        list(directed_pairs(run, back, method, "word", None))
