"""The demo data: form, tokenisation, links, and that no line of it comes from the development corpora."""

from __future__ import annotations

import lzma
import re
import unicodedata
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
LANGUAGES = ("de", "en")
PAIRS = 60
LINK = re.compile(r"([1-9][0-9]*)([-p])([1-9][0-9]*)")
FINAL_MARKS = {".", "?", "!"}


def read_lines(path):
    text = path.read_bytes().decode("utf-8")
    assert text.endswith("\n")
    return text[:-1].split("\n")


@pytest.fixture(scope="module")
def texts():
    return {language: read_lines(DEMO / f"demo.{language}") for language in LANGUAGES}


@pytest.fixture(scope="module")
def links():
    """Per sentence: (source, kind, target), counted from 1; the package's parser is not used to check its own input."""
    gold = []
    for line in read_lines(DEMO / "demo.talp"):
        matches = [LINK.fullmatch(item) for item in line.split(" ")]
        assert all(matches), line
        gold.append([(int(m.group(1)), m.group(2), int(m.group(3))) for m in matches if m])
    return gold


def letters(line):
    """A line as its letters and digits, so that case, tokenisation and punctuation do not hide a copy."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", line).lower())


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_has_the_form_that_the_model_was_trained_on(texts, language):
    for line in texts[language]:
        assert line == unicodedata.normalize("NFC", line)
        assert line == line.lower()
        assert line == " ".join(line.split())
        assert 5 <= len(line.split()) <= 35, line
        # Moses-like: a mark stands alone; within a token only hyphens, decimal marks, ordinals' dots, and 's
        for token in line.split():
            assert re.fullmatch(r"[.,?!]|'s|[0-9]+(?:[.,][0-9]+)*\.?|[^\W\d_]+(?:-[^\W\d_]+)*", token), (token, line)


def test_links_lie_within_their_sentences(texts, links):
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        assert max(i for i, _, _ in sentence) <= len(source.split()), source
        assert max(j for _, _, j in sentence) <= len(target.split()), target


def test_final_marks_are_linked_to_each_other_only(texts, links):
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        last = (len(source.split()), len(target.split()))
        assert source.split()[-1] == target.split()[-1]
        assert source.split()[-1] in FINAL_MARKS
        assert [link for link in sentence if link[0] == last[0] or link[2] == last[1]] == [(last[0], "-", last[1])]


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
