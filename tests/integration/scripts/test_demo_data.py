"""The demo data: form, tokenisation, links, and that no line of it comes from the development corpora."""

import lzma
import re
import unicodedata
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
LANGUAGES = ("de", "en")


def read_lines(path):
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.fixture(scope="module")
def texts():
    return {language: read_lines(DEMO / f"demo.{language}") for language in LANGUAGES}


def letters(line):
    """A line as its letters and digits, so that case, tokenisation and punctuation do not hide a copy."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", line).lower())


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_subword_is_unknown_to_the_model(texts, language):
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe", reason="subword-nmt is not installed")
    with (DEMO / "codes.bpe").open(encoding="utf-8") as codes:
        bpe = apply_bpe.BPE(codes)
    known = {line.rsplit(" ", 1)[0] for line in read_lines(DEMO / f"dict.{language}.txt")}
    unknown = {token for line in texts[language] for token in bpe.process_line(line).split() if token not in known}
    assert not unknown


def corpus_lines(path):
    opened = lzma.open if path.suffix == ".xz" else open
    with opened(path, "rt", encoding="utf-8") as lines:
        yield from lines


@pytest.mark.shared
@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_comes_from_the_corpora(texts, shared, language):
    ours = {letters(line) for line in texts[language]}
    files = [*shared.glob(f"data/gold/*/*.{language}"), *shared.glob(f"data/train/*.{language}*")]
    read = 0
    for path in files:
        for line in corpus_lines(path):
            read += 1
            assert letters(line) not in ours, f"{path}: {line}"
    assert read >= 292_680 + 1_000 + 1_000 + 508 + 150  # every corpus was there and was read
