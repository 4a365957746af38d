"""Forced scoring: rows and columns of the records, no sentence lost, and what becomes of too long sentences."""

import numpy as np
import pytest

from alignment_eval import cli
from alignment_eval.records.store import Records

SCORE = "--score-reference"
SHORTER = ["--gen-subset", "test5", "--max-source-positions", 60]  # sentence 3 has 84 tokens


def by_id(directory):
    return {sentence.id: sentence for sentence in Records(directory).best()}


def test_records_hold_the_pair_with_its_end(norm, texts, tmp_path):
    output = norm(SCORE, "--norm-records", tmp_path / "r")
    scores = {id_: content.split("\t")[0] for id_, kind, content in output.lines("H") if kind == "H"}
    records = by_id(tmp_path / "r")
    assert sorted(records) == list(range(12))
    for id_, (source, target) in enumerate(texts[2]):
        sentence = records[id_]
        assert list(sentence.source.tokens) == [*source.split(), "</s>"]
        assert list(sentence.target.tokens) == [*target.split(), "</s>"]
        words = [len(side.replace("@@ ", "").split()) for side in (source, target)]
        assert [sentence.source.word_count, sentence.target.word_count] == words
        weights = sentence.head_maps("attn_w")
        assert weights.shape == (2, 4, len(target.split()) + 1, len(source.split()) + 1)
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)  # no pad took any
        assert sentence.score / np.log(2) == pytest.approx(float(scores[id_]), rel=1e-5)


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=["generate", "score"])
@pytest.mark.parametrize(("subset", "size"), [("test1", 1), ("test2", 5), ("test3", 7), ("test4", 9)])
def test_no_sentence_is_lost(norm, tmp_path, mode, subset, size):
    options = ["--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a"]
    output = norm(*mode, "--gen-subset", subset, *options)
    assert [id_ for id_, _, _ in output.lines("H")] == list(range(size))
    assert sorted(sentence.id for sentence in Records(tmp_path / "r")) == list(range(size))
    assert len((tmp_path / "a").read_text().splitlines()) == size


def test_a_long_sentence_aborts_the_run(norm, tmp_path):
    with pytest.raises(Exception, match=r"Size of sample #3 is invalid .*max_positions=.*60"):
        norm(SCORE, *SHORTER, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=["generate", "score"])
def test_a_long_sentence_is_skipped_and_said_so(norm, tmp_path, capsys, mode):
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
    options = ["--kind", "attn_n", "--layer", "0", "--setting", "awo", "--rule", "kobayashi2020"]
    capsys.readouterr()
    assert cli.main(["extract", str(tmp_path / "r"), *options]) == 0
    extracted = capsys.readouterr()
    assert extracted.out.splitlines() == lines
    assert "1 of 6 sentences cannot be aligned, their lines are blank" in extracted.err


def test_a_run_that_skips_everything_is_an_error(norm, tmp_path):
    options = ["--max-source-positions", 1, "--skip-invalid-size-inputs-valid-test"]
    with pytest.raises(Exception, match="has no sentence to process"):
        norm(SCORE, "--gen-subset", "test1", *options, "--norm-records", tmp_path / "r")
    assert list(tmp_path.iterdir()) == []


def test_a_long_sentence_is_truncated_only_on_demand(norm, texts, tmp_path, capsys):
    norm(SCORE, *SHORTER, "--truncate-source", "--norm-records", tmp_path / "r")
    sentence = by_id(tmp_path / "r")[3]
    source = texts[-1][3][0].split()
    assert len(source) == 84
    assert list(sentence.source.tokens) == [*source[:59], "</s>"]
    # gold of the full sentences: the links of each word to itself backwards
    gold = []
    for source, target in texts[-1]:
        words = len(source.replace("@@ ", "").split())
        assert words == len(target.replace("@@ ", "").split())
        gold.append(" ".join(f"{i}-{words - 1 - i}" for i in range(words)))
    (tmp_path / "gold").write_text("\n".join(gold) + "\n")
    command = ["sweep", str(tmp_path / "r"), "--gold", str(tmp_path / "gold"), "--gold-base", "0"]
    capsys.readouterr()
    assert cli.main([*command, "--out", str(tmp_path / "sweep")]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert "outside sentence 3 (line 4), which has 39 and " in said.err
    assert not (tmp_path / "sweep").exists()
