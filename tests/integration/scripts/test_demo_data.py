"""The demo data: form, tokenisation, links, and that no line of it comes from the development corpora."""

from __future__ import annotations

import lzma
import re
import unicodedata
from collections import Counter
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


def test_as_many_lines_in_every_file(texts, links):
    assert [len(texts["de"]), len(texts["en"]), len(links)] == [PAIRS] * 3


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_twice(texts, language):
    assert len({letters(line) for line in texts[language]}) == PAIRS


def test_links_lie_within_their_sentences(texts, links):
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        assert max(i for i, _, _ in sentence) <= len(source.split()), source
        assert max(j for _, _, j in sentence) <= len(target.split()), target


def test_a_pair_of_words_is_linked_once(links):
    for number, sentence in enumerate(links, 1):
        twice = [pair for pair, count in Counter((i, j) for i, _, j in sentence).items() if count > 1]
        assert not twice, number


def test_final_marks_are_linked_to_each_other_only(texts, links):
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        last = (len(source.split()), len(target.split()))
        assert source.split()[-1] == target.split()[-1]
        assert source.split()[-1] in FINAL_MARKS
        assert [link for link in sentence if link[0] == last[0] or link[2] == last[1]] == [(last[0], "-", last[1])]


def test_a_comma_is_linked_only_to_one_comma(texts, links):
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        pairs = [(source.split()[i - 1], kind, target.split()[j - 1]) for i, kind, j in sentence]
        assert all(pair == (",", "-", ",") for pair in pairs if "," in pair), source
        ends = [(i, j) for i, _, j in sentence if source.split()[i - 1] == ","]
        assert len({i for i, _ in ends}) == len({j for _, j in ends}) == len(ends), source


def test_only_words_named_by_the_guideline_have_no_link(texts, links):
    unlinked = Counter()
    for source, target, sentence in zip(texts["de"], texts["en"], links):
        ends = {("de", i) for i, _, _ in sentence} | {("en", j) for _, _, j in sentence}
        for language, line in (("de", source), ("en", target)):
            unlinked.update((language, t) for n, t in enumerate(line.split(), 1) if (language, n) not in ends)
    commas = {("de", ","), ("en", ",")}
    particles = {("de", word) for word in ("mal", "doch", "noch")}
    others = {("de", "das"), ("en", "it")}  # an object that the English drops, an expletive
    assert set(unlinked) == commas | particles | others


def test_density(texts, links):
    kinds = Counter(kind for sentence in links for _, kind, _ in sentence)
    english = sum(len(line.split()) for line in texts["en"])
    assert 0.85 <= kinds["-"] / english <= 1.1
    assert 0.05 <= kinds["p"] / (kinds["-"] + kinds["p"]) <= 0.15


def test_readme_states_the_counts(texts, links):
    german, english = (sum(len(line.split()) for line in texts[language]) for language in LANGUAGES)
    kinds = Counter(kind for sentence in links for _, kind, _ in sentence)
    counts = f"{german} German and {english} English tokens, {kinds['-']} sure and {kinds['p']} possible links"
    assert counts in " ".join((DEMO / "README.md").read_text(encoding="utf-8").split())


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
