"""No sentence is lost, and what becomes of too long sentences."""

import logging

import pytest

from alignment_eval.records.store import Records
from tests.facts import says

SCORE = "--score-reference"
SHORTER = ["--gen-subset", "test5", "--max-source-positions", 60]  # sentence 3 has 84 tokens


def test_a_run_says_that_its_references_are_forced(norm, caplog):
    caplog.set_level(logging.INFO)
    norm("--beam", 2)
    assert "references are forced" not in caplog.text
    norm(SCORE)
    assert says(caplog.text, "the references are forced … BLEU")


def by_id(directory):
    return {sentence.id: sentence for sentence in Records(directory).best()}


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=["generate", "score"])
@pytest.mark.parametrize(("subset", "size"), [("test1", 1), ("test2", 5), ("test3", 7), ("test4", 9)])
def test_no_sentence_is_lost(norm, tmp_path, mode, subset, size):
    options = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a"]
    output = norm(*mode, "--gen-subset", subset, *options)
    assert [id_ for id_, _, _ in output.lines("H")] == list(range(size))
    assert sorted(sentence.id for sentence in Records(tmp_path / "r")) == list(range(size))
    assert len((tmp_path / "a").read_text().splitlines()) == size


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (SHORTER, r"Size of sample #3 is invalid .*max_positions=.*60"),
        (
            ["--gen-subset", "test1", "--max-source-positions", 1, "--skip-invalid-size-inputs-valid-test"],
            "has no sentence to process",
        ),
    ],
)
def test_long_sentences_abort_the_run(norm, tmp_path, options, text):
    with pytest.raises(Exception, match=text):
        norm(SCORE, *options, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=["generate", "score"])
def test_a_long_sentence_is_skipped_and_said_so(norm, tmp_path, mode):
    options = ["--skip-invalid-size-inputs-valid-test", "--norm-records", tmp_path / "r"]
    output = norm(*mode, *SHORTER, *options, "--norm-alignments", tmp_path / "a")
    assert [id_ for id_, _, _ in output.lines("H")] == [0, 1, 2, 4, 5]
    records = by_id(tmp_path / "r")
    assert sorted(records) == list(range(6))
    assert {id_ for id_, sentence in records.items() if not sentence.ok} == {3}
    assert records[3].status == "skipped: longer than max_positions=(60, 1024)"
    assert (records[3].source.tokens, records[3].target.tokens, records[3].score) == ((), (), None)
    lines = (tmp_path / "a").read_text().splitlines()
    assert [bool(line) for line in lines] == [True, True, True, False, True, True]


def test_a_long_sentence_is_truncated_only_on_demand(norm, texts, tmp_path):
    norm(SCORE, *SHORTER, "--truncate-source", "--norm-records", tmp_path / "r")
    sentence = by_id(tmp_path / "r")[3]
    source = texts[-1][3][0].split()
    assert len(source) == 84
    assert list(sentence.source.tokens) == [*source[:59], "</s>"]
