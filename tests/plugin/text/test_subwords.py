"""From words to subwords, and whose they are; codes that are read, and bad ones."""

import itertools
import random
from contextlib import nullcontext

import numpy as np
import pytest
from fairseq.data import Dictionary
from fairseq.data.encoders.characters import Characters
from hypothesis import given
from hypothesis import strategies as st
from subword_nmt import apply_bpe

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text import subwords
from fairseq_norm_plugin.text.pair import TextPipeline, runs_of
from fairseq_norm_plugin.text.recipe import pipelines, stated_recipe
from fairseq_norm_plugin.text.subwords import BpeSegmenter, LineSegmenter, SentencePieceSegmenter, check_codes, read_bpe
from fairseq_norm_plugin.text.tokens import Vocabulary
from tests.demo import DEMO
from tests.facts import facts


def test_any_encoder_of_whole_lines():
    """Its blanks are pieces, which belong to the word after them."""
    pipeline = TextPipeline(LineSegmenter(Characters.encode, Characters.decode, "characters"))
    found = pipeline.segment(pipeline.read("ab c"))
    assert (found.tokens, found.words.tolist(), found.forms) == (("a", "b", "▁", "c"), [0, 0, 1, 1], ("ab", "c"))
    assert pipeline.segment(pipeline.read(" ")).tokens == ()
    merging = LineSegmenter(lambda line: line.replace("a b", "a~b").replace(" ", " ▁"), str, "merging")
    with pytest.raises(InputError, match="--bpe merging cuts 'a' differently"):
        merging.cut("a b", "a b")


def slow_runs(pieces, words):
    """Word by word and piece by piece: join what shares a character, until nothing changes."""
    owner = []
    for start, end in pieces:
        mine = [k for k, (first, last) in enumerate(words) if start < last and first < end]
        after = [k for k, (_, last) in enumerate(words) if last > start]
        owner.append(set(mine or after[:1] or [len(words) - 1]))
    joined = []
    for group in owner:
        while joined and max(joined[-1][1]) >= min(group):
            group |= joined.pop()[1]
        joined.append((None, group))
    starts = [min(group) for _, group in joined]
    starts[0] = 0
    spans = np.diff([*starts, len(words)])
    numbers = [max(k for k, first in enumerate(starts) if k == 0 or first <= max(group)) for group in owner]
    return numbers, spans.tolist()


@given(st.data())
def test_runs_are_those_of_a_slow_search(data):
    text = data.draw(st.text(alphabet="ab ", min_size=1, max_size=12).filter(str.strip))
    cuts = data.draw(st.sets(st.integers(1, len(text)), max_size=6))
    bounds = [0, *sorted(cuts | {len(text)})]
    pieces = list(itertools.pairwise(bounds))
    if data.draw(st.booleans()):
        pieces.insert(data.draw(st.integers(0, len(pieces) - 1)), (bounds[0], bounds[0]))
        pieces.sort()
    words, place = [], 0
    for word in text.split():
        place = text.index(word, place)
        words.append((place, place + len(word)))
        place += len(word)
    runs, spans = runs_of(pieces, words)
    expected = slow_runs(pieces, words)
    assert (runs.tolist(), [1] * len(words) if spans is None else spans.tolist()) == expected


def test_a_model_of_another_vocabulary(sentencepiece_model, tmp_path):
    pieces = SentencePieceSegmenter(sentencepiece_model)
    mine, other = Dictionary(), Dictionary()
    for number in range(3, pieces._processor.GetPieceSize()):
        mine.add_symbol(pieces._processor.IdToPiece(number))
        other.add_symbol(f"▁word{number}")
    for dictionary in (mine, other):
        for filler in ("__de__", "[de_DE]", "<mask>", "madeupword0001", *(f"madeupword{k}" for k in range(200))):
            dictionary.add_symbol(filler)
    pieces.check(mine)
    with pytest.raises(InputError, match=facts("sentencepiece.bpe.model: … entries of the dictionary are unknown")):
        pieces.check(other)
    (tmp_path / "no.model").write_text("no model")
    with pytest.raises(InputError, match=r"no\.model: cannot be read as a SentencePiece model"):
        SentencePieceSegmenter(tmp_path / "no.model")


@pytest.mark.parametrize("lacking", [0, 1])
def test_half_of_the_subwords_may_be_of_the_other_language(sentencepiece_model, lacking):
    pieces, dictionary = SentencePieceSegmenter(sentencepiece_model), Dictionary()
    size = len(pieces.entries)
    half = (size + 1) // 2
    for entry in [*pieces.entries[-half + lacking :], *(f"▁word{number}" for number in range(size))]:
        dictionary.add_symbol(entry)
    with pytest.raises(InputError, match=f"{size} of") if lacking else nullcontext():
        pieces.check(dictionary)


CODES = (DEMO / "codes.bpe").read_text(encoding="utf-8").splitlines()
WORDS = (DEMO / "demo.de").read_text(encoding="utf-8").split()
#: What is no codes file, and what the message names.
BAD = {
    "three pieces": (b"#version: 0.2\nb a</w>\nthree pieces here\n", "line 3 .*three pieces here"),
    "control characters": (b"#version: 0.2\nb\x1b[2J a x\n", r"b\\x1b"),
    "a later version": (b"#version: 0.3\nb a</w>\n", "1: version '0.3'"),
    "no UTF-8": (b"\xff \xff\n", "utf-8"),
    "a dictionary": (b", 204\n. 171\nthe 130\n", "1: ', 204': no earlier line makes"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_does_not_end_the_interpreter(tmp_path, case, capfd):
    content, named = BAD[case]
    (tmp_path / "codes").write_bytes(content)
    with pytest.raises(InputError, match=rf"codes:.*{named}") as error:
        read_bpe(tmp_path / "codes")
    assert str(error.value).isprintable()
    assert "Error: invalid line" not in capfd.readouterr().err


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def test_codes_of_fastbpe_and_codes_without_a_version_cut_as_the_codes(tmp_path):
    """fastBPE adds counts; those of Transformers have no version.  As 0.1, the end of a word would be a piece."""
    cut = read_bpe(DEMO / "codes.bpe").segment_tokens(WORDS)
    for lines in ([f"{line} {99999 - k}" for k, line in enumerate(CODES[1:])], CODES[1:]):
        assert read_bpe(write(tmp_path / "codes", lines)).segment_tokens(WORDS) == cut


@pytest.mark.parametrize(
    "lines",
    [random.Random(0).sample(CODES[1:], len(CODES) - 1), CODES[:0:-1], CODES[100:]],
    ids=["shuffled", "reversed", "without the first"],
)
def test_codes_that_are_not_as_they_were_learned(tmp_path, lines):
    """They make pieces that the model knows, but other pieces than in its training."""
    with pytest.raises(InputError, match=r"codes:[0-9]+: .*no earlier line makes"):
        read_bpe(write(tmp_path / "codes", [CODES[0], *lines]))


def test_a_vocabulary_and_glossaries_cut_as_subword_nmt_does(tmp_path):
    """apply_bpe --vocabulary FILE --vocabulary-threshold 60 --glossaries, where subwords count 60 times, too."""
    dictionary = write(tmp_path / "vocabulary", [f"{word} {len(word) * 20}" for word in dict.fromkeys(WORDS)])
    words = [*WORDS, "ABC-7", "vorABC-7nach"]
    with dictionary.open(encoding="utf-8") as file, (DEMO / "codes.bpe").open(encoding="utf-8") as codes:
        known = apply_bpe.read_vocabulary(file, 60)
        theirs = apply_bpe.BPE(codes, vocab=known, glossaries=["ABC-[0-9]"]).segment_tokens(words)
    settings = {"bpe_vocabulary": str(dictionary), "bpe_vocabulary_threshold": "60", "bpe_glossaries": "ABC-[0-9]"}
    stated = stated_recipe(None, None, {"bpe_codes": str(DEMO / "codes.bpe"), **settings})
    vocabulary = Vocabulary(Dictionary.load(str(DEMO / "dict.de.txt")), "@@", {0, 1, 2})
    pipeline, _ = pipelines(stated, ("de", "en"), (vocabulary, vocabulary))
    line = pipeline.read(" ".join(words))
    found = pipeline.segment(line)
    assert list(found.tokens) == theirs
    assert theirs != read_bpe(DEMO / "codes.bpe").segment_tokens(words)
    assert len(set(found.words.tolist())) == len(words)
    assert stated.paths == [str(DEMO / "codes.bpe"), str(dictionary)]
    with pytest.raises(InputError, match=facts("codes.bpe: cannot read a vocabulary")):
        subwords.read_vocabulary(DEMO / "codes.bpe", 60)


def test_codes_are_compared_with_the_dictionaries(tmp_path):
    dictionaries = [Dictionary.load(str(DEMO / f"dict.{language}.txt")) for language in ("de", "en")]
    check_codes({"all": BpeSegmenter(DEMO / "codes.bpe")}, dictionaries)
    first = BpeSegmenter(write(tmp_path / "first", CODES[:7001]))
    unmade = {entry for entry in dictionaries[0].symbols if first.cut(entry.removesuffix("@@"), "")[0] != [entry]}
    assert first.unmade(dictionaries[0].symbols) <= unmade
    with pytest.raises(InputError, match=r"first: no line of the codes makes 99[0-9] of the 8276 entries"):
        check_codes({"first": first}, dictionaries)
    check_codes({"first": first, "all": BpeSegmenter(DEMO / "codes.bpe")}, dictionaries)  # one may be of each side
