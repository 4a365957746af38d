"""scripts/prepare_bpe.sh, run as a user runs it."""

from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from tests.facts import says
from tests.integration.scripts.preparing import LANGUAGES, names, run


@pytest.fixture
def texts(tmp_path):
    """Small prepared texts: train, valid, test (with a blank sentence) and dev."""
    sides = {
        "de": ("das haus ist klein .", "ein kleines buch .", "häuser sind klein .\n\nbuch ."),
        "en": ("the house is small .", "a small book .", "houses are small .\n\nbook ."),
    }
    for language, (train, valid, test) in sides.items():
        training = f"{train} das@@\n{valid}\n" * 5
        for name, text in (("train", training), ("valid", f"{valid}\n"), ("dev", f"{train}\n")):
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
        (tmp_path / f"test.{language}").write_text(f"{test}\n", encoding="utf-8")
    return tmp_path


def bpe(texts, *options):
    inputs = ("--train", texts / "train", "--valid", texts / "valid", "--test", texts / "test")
    out = texts / "out" / "bpe"
    return run("prepare_bpe.sh", *inputs, *LANGUAGES, "--merges", 8, "--out", out, *options), out


def token_counts(binarised, split, language):
    """Tokens of each sentence of a binarised text, </s> included, as fairseq reads it."""
    dictionary = Dictionary.load(str(binarised / f"dict.{language}.txt"))
    dataset = data_utils.load_indexed_dataset(str(binarised / f"{split}.de-en.{language}"), dictionary)
    return [len(dataset[i]) for i in range(len(dataset))]


def check_split(out, split, prefix):
    """Pieces spell the text's words, line by line, and the binarised text has as many tokens."""
    for language in ("de", "en"):
        pieces = (out / "bpe" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
        words = Path(f"{prefix}.{language}").read_text(encoding="utf-8").splitlines()
        assert [f"{line} ".replace("@@ ", "").rstrip() for line in pieces] == words
        assert any("@@ " in line for line in pieces)
        assert token_counts(out / "bin", split, language) == [len(line.split()) + 1 for line in pieces]


def test_bpe_separate(texts):
    done, out = bpe(texts, "--separate", "--test", f"{texts}/test,{texts}/dev")
    assert done.returncode == 0, done.stderr
    assert names(out) == ["bin", "bpe", "codes.de", "codes.en"]
    assert names(out.parent) == ["bpe"]
    assert (out / "bin/dict.de.txt").read_bytes() != (out / "bin/dict.en.txt").read_bytes()
    assert (out / "codes.de").read_bytes() != (out / "codes.en").read_bytes()
    for split, name in (("train", "train"), ("valid", "valid"), ("test", "test"), ("test1", "dev")):
        check_split(out, split, texts / name)
    assert token_counts(out / "bin", "test", "de")[1] == 1  # the blank sentence keeps its place
    report = done.stdout.splitlines()
    assert len(report) == 8
    assert report[0].startswith("[de] bpe/train.de: 10 sents, ")
    assert report[2].startswith("[de] bpe/test.de: 3 sents, ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("valid.en", "a\n\n", "valid.en: 2 lines, but TMP/valid.de has 1"),
        ("test.de", "das@@ haus .\n\nbuch .\n", "test.de: its pieces do not spell it again"),
        (
            "test.de",
            "das haus .\r\n\nbuch\r.\n",
            "test.de: fairseq read 4 sents, 16 tokens: expected 3 sents, 14 tokens",
        ),
    ],
)
def test_bad_texts_leave_nothing(texts, name, content, message):
    (texts / name).write_text(content, encoding="utf-8")
    done, out = bpe(texts)
    assert (done.returncode, done.stdout) == (1, "")
    assert says(done.stderr, f"prepare_bpe.sh: {texts}/{message}".replace("TMP", str(texts)))
    assert names(out.parent) == []
