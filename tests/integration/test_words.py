"""From tokens to words in records: subword marks, unknown tokens, empty sentences; on raw text, which keeps them."""

from __future__ import annotations

import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.store import Records

SCORE = "--score-reference"
RAW = ["--dataset-impl", "raw"]
PIECES = ("ba", "ki", "lo", "mu")


def raw_data(directory, tokens, pairs):
    """A raw data set of one dictionary for both sides; test is ``pairs``, train eight times that."""
    directory.mkdir()
    for number, lang in enumerate(("xx", "yy")):
        (directory / f"dict.{lang}.txt").write_text("".join(f"{token} 1\n" for token in tokens), encoding="utf-8")
        text = "".join(f"{pair[number]}\n" for pair in pairs)
        for subset, times in (("train", 8), ("test", 1)):
            (directory / f"{subset}.xx-yy.{lang}").write_text(text * times, encoding="utf-8")
    return directory


def record(norm, data, path, directory, *options):
    """Records by id of forced scoring."""
    norm(SCORE, *RAW, *options, "--norm-records", directory, data=data, path=path)
    return {sentence.id: sentence for sentence in Records(directory)}


def words(side):
    return side.words.tolist()


@pytest.mark.parametrize("mode", [[SCORE], ["--beam", 2, "--min-len", 3, "--max-len-b", 6]], ids=["score", "generate"])
def test_sentencepiece(norm, trained, tmp_path_factory, mode):
    directory = tmp_path_factory.mktemp("sentencepiece")
    tokens = [*PIECES, *(f"▁{piece}" for piece in PIECES)]
    pairs = [("▁ba ki ▁lo", "▁mu ▁ki ki lo"), ("ba ▁ki", "▁lo"), ("▁mu mu ba ▁mu ▁ki", "▁ba lo")]
    data = raw_data(directory / "data", tokens, pairs)
    path = trained("sentencepiece", *RAW, data=data)
    norm(*mode, *RAW, "--norm-records", directory / "r", data=data, path=path)
    records = {sentence.id: sentence for sentence in Records(directory / "r")}
    assert [words(records[i].source) for i in range(3)] == [[0, 0, 1, -1], [0, 1, -1], [0, 0, 0, 1, 2, -1]]
    if SCORE in mode:
        assert [words(records[i].target) for i in range(3)] == [[0, 1, 1, 1, -1], [0, -1], [0, 0, -1]]
    for sentence in records.values():
        begins = [token.startswith("▁") or i == 0 for i, token in enumerate(sentence.target.tokens[:-1])]
        assert sentence.target.word_count == sum(begins)


@pytest.fixture(scope="module")
def bpe(trained, tmp_path_factory):
    """Data with ``@@`` and pieces that the dictionary lacks, and a model."""
    tokens = [token for piece in PIECES for token in (piece, f"{piece}@@")]
    pairs = [("ba@@ zz@@ ki lo", "mu zz@@ mu ki"), ("ki@@ ba mu", "lo"), ("zz", "ba@@ ba")]
    data = raw_data(tmp_path_factory.mktemp("bpe") / "data", tokens, pairs)
    return data, trained("bpe", *RAW, data=data)


def test_unknown_pieces_keep_their_mark_in_raw_text(norm, bpe, tmp_path):
    records = record(norm, *bpe, tmp_path / "r")
    assert records[0].source.tokens == ("ba@@", "zz@@", "ki", "lo", "</s>")
    assert words(records[0].source) == [0, 0, 0, 1, -1]
    assert records[0].target.tokens == ("mu", "zz@@", "mu", "ki", "</s>")
    assert words(records[0].target) == [0, 1, 1, 2, -1]
    assert records[2].source.tokens == ("zz", "</s>")


def test_a_stated_mark(norm, bpe, tmp_path):
    records = record(norm, *bpe, tmp_path / "r", "--norm-subword-mark", "none")
    assert words(records[1].source) == [0, 1, 2, -1]
    assert words(record(norm, *bpe, tmp_path / "auto")[1].source) == [0, 0, 1, -1]
    with pytest.raises(InputError, match=r"is of another run \(its marks differ\)"):
        record(norm, *bpe, tmp_path / "r", "--norm-subword-mark", "##")


def test_a_dictionary_of_several_marks_must_be_told(norm, bpe, tmp_path):
    _, path = bpe
    mixed = raw_data(
        tmp_path / "mixed", [*(f"▁{piece}" for piece in PIECES), *(f"{p}@@" for p in PIECES)], [("x", "y")]
    )
    with pytest.raises(InputError, match=r"several subword marks .*state it"):
        record(norm, mixed, path, tmp_path / "r")
    assert not (tmp_path / "r").exists()
    assert len(record(norm, mixed, path, tmp_path / "r", "--norm-subword-mark", "▁")) == 1


@pytest.mark.parametrize("mode", [["--beam", 2, "--min-len", 3, "--max-len-b", 6], [SCORE]], ids=["generate", "score"])
def test_empty_sentences(norm, stock, bpe, tmp_path, mode):
    data = raw_data(tmp_path / "data", [token for p in PIECES for token in (p, f"{p}@@")], [("ba", "ki"), ("", "")])
    options = [*mode, *RAW, "--print-alignment", "hard"]
    expected = stock(*options[:-2], data=data, path=bpe[1]).lines("H", "P")
    assert len(expected) == 4
    output = norm(
        *options, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a", data=data, path=bpe[1]
    )
    assert output.lines("H", "P") == expected
    records = {sentence.id: sentence for sentence in Records(tmp_path / "r")}
    assert records[1].source.tokens == ("</s>",)
    assert records[1].layer_maps("attn_n").shape == (2, len(records[1].target.tokens), 1)
    lines = (tmp_path / "a").read_text().split("\n")
    assert len(lines) == 3
    assert lines[1] == lines[2] == ""
