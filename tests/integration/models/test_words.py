"""From tokens to words in records: subword marks, unknown tokens, empty sentences; on raw and on binarised text."""

import numpy as np
import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.records import Records

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


@pytest.fixture(scope="module")
def bpe(trained, tmp_path_factory):
    """Data with ``@@`` and pieces that the dictionary lacks, and a model."""
    tokens = [token for piece in PIECES for token in (piece, f"{piece}@@")]
    pairs = [("ba@@ zz@@ ki lo", "mu zz@@ mu ki"), ("ki@@ ba mu", "lo"), ("zz", "ba@@ ba")]
    data = raw_data(tmp_path_factory.mktemp("bpe") / "data", tokens, pairs)
    return data, trained("bpe", *RAW, data=data)


def test_a_dictionary_of_several_marks_must_be_told(norm, bpe, tmp_path):
    _, path = bpe
    mixed = raw_data(
        tmp_path / "mixed", [*(f"▁{piece}" for piece in PIECES), *(f"{p}@@" for p in PIECES)], [("x", "y")]
    )
    with pytest.raises(InputError, match=r"mixes subword markers .*specify one"):
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


@pytest.fixture(scope="module")
def binarised(bpe, program):
    """The text of ``bpe`` as fairseq-preprocess makes it, which keeps of unknown tokens that they were there."""
    raw, _ = bpe
    for lang in ("xx", "yy"):
        (raw / f"text.{lang}").write_text((raw / f"test.xx-yy.{lang}").read_text())
    words = ["fairseq-preprocess", "-s", "xx", "-t", "yy", "--testpref", raw / "text"]
    words += ["--srcdict", raw / "dict.xx.txt", "--tgtdict", raw / "dict.yy.txt", "--destdir", raw / "bin"]
    program(*words)
    return raw / "bin"


def run_binarised(norm, bpe, binarised, directory, *options):
    files = ["--norm-records", directory / "r", "--norm-alignments", directory / "a", "--norm-layer", 0]
    norm(SCORE, *files, *options, data=binarised, path=bpe[1])
    return {sentence.id: sentence for sentence in Records(directory / "r")}, (directory / "a").read_text()


def test_unknown_pieces_of_binarised_text_shift_no_word(norm, bpe, binarised, tmp_path, caplog):
    """Their marks are lost: no links, and that is said; or the words of the text, which raw data knows itself."""
    options = ["--norm-alignments", tmp_path / "raw", "--norm-layer", 0]
    expected = record(norm, *bpe, tmp_path / "r", *options)
    caplog.clear()
    records, lines = run_binarised(norm, bpe, binarised, tmp_path / "unknown")
    assert [records[i].status for i in range(3)] == ["unknown subwords on both sides", "ok", "ok"]
    links = (tmp_path / "raw").read_text().split("\n")
    assert links[0] != ""
    assert lines.split("\n") == ["", *links[1:]]
    assert "2 of 11 source subwords (18.2 %)" in caplog.text
    assert "1 of 3 sentences (33.3 %) get no links" in caplog.text
    texts = [f"--norm-{side}-text" for side in ("source", "target")]
    subwords = [binarised.parent / f"text.{lang}" for lang in ("xx", "yy")]
    plain = [tmp_path / f"plain.{lang}" for lang in ("xx", "yy")]
    for subword, word in zip(subwords, plain):
        word.write_text(subword.read_text().replace("@@ ", ""))
    for name, files in (("subwords", subwords), ("plain", plain)):
        options = [word for pair in zip(texts, files) for word in pair]
        records, lines = run_binarised(norm, bpe, binarised, tmp_path / name, *options)
        assert lines.split("\n") == links
        for id_, sentence in expected.items():
            assert records[id_].ok
            assert words(records[id_].source) == words(sentence.source)
            assert words(records[id_].target) == words(sentence.target)
            for quantity, array in sentence.arrays.items():
                np.testing.assert_array_equal(records[id_].arrays[quantity], array)
    assert records[0].source.tokens == ("ba@@", "<unk>@@", "ki", "lo", "</s>")
    with pytest.raises(InputError, match=r"output of another run \(different: texts\)"):
        run_binarised(norm, bpe, binarised, tmp_path / "plain")
    with pytest.raises(UsageError, match="--norm-target-text needs --score-reference"):
        norm("--norm-alignments", tmp_path / "c", *options[2:], data=binarised, path=bpe[1])
