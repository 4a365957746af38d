"""BPE codes: read in one place, and what is no codes file is an error of the caller's."""

import random
from pathlib import Path

import pytest
from fairseq.data import Dictionary
from subword_nmt import apply_bpe

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.text.settings import TextSettings, pipelines
from fairseq_norm_plugin.text.subwords import BpeSegmenter, check_codes, read_bpe
from fairseq_norm_plugin.text.tokens import Vocabulary
from tests.facts import facts

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
CODES = (DEMO / "codes.bpe").read_text(encoding="utf-8").splitlines()
WORDS = (DEMO / "demo.de").read_text(encoding="utf-8").split()
#: What is no codes file, and what the message names.
BAD = {
    "three pieces": (b"#version: 0.2\nb a</w>\nthree pieces here\n", "line 3 .*three pieces here"),
    "no version": (b"#version: x\nb a</w>\n", "x"),
    "no pieces": (b"", "invalid line 1"),
    "control characters": (b"#version: 0.2\nb\x1b[2J a x\n", r"b\\x1b"),
    "a later version": (b"#version: 0.3\nb a</w>\n", "1: version '0.3'"),
    "no UTF-8": (b"\xff \xff\n", "utf-8"),
    "a dictionary": (b", 204\n. 171\nthe 130\n", "a dictionary .*, not BPE"),
    "fastBPE": (b"b a</w> 3\nb a\n", "2: 'b a': expected two subwords and a count"),
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


def fast_codes(tmp_path):
    """The demo's codes with counts, as fastBPE writes them."""
    return write(tmp_path / "bpecodes", [f"{line} {99999 - k}" for k, line in enumerate(CODES[1:])])


def test_codes_of_fastbpe_and_codes_without_a_version_cut_as_the_codes(tmp_path):
    """Those of Transformers have no version.  Read as 0.1, the end of a word would be a piece of its own."""
    cut = read_bpe(DEMO / "codes.bpe").segment_tokens(WORDS)
    assert read_bpe(fast_codes(tmp_path), "fastbpe").segment_tokens(WORDS) == cut
    assert read_bpe(write(tmp_path / "codes", CODES[1:])).segment_tokens(WORDS) == cut


def test_fastbpe_codes_are_applied_as_the_package_does(tmp_path):
    fast = pytest.importorskip("fastBPE", reason="fastBPE is not installed (it needs a C++ compiler)")
    lines = [*(DEMO / "demo.de").read_text(encoding="utf-8").splitlines(), "élan 我们 x@@ <unk> aaaa aaaaa ΑΒ"]
    codes = fast_codes(tmp_path)
    mine, theirs = read_bpe(codes), fast.fastBPE(str(codes))
    assert [" ".join(mine.segment_tokens(line.split())) for line in lines] == theirs.apply(lines)


@pytest.mark.parametrize(
    ("lines", "named"),
    [
        (random.Random(0).sample(CODES[1:], len(CODES) - 1), "missing or in another order"),
        (CODES[:0:-1], "missing or in another order"),
        (CODES[100:], "codes:[0-9]+: .*no earlier line makes"),
    ],
    ids=["shuffled", "reversed", "without the first"],
)
def test_codes_that_are_not_as_they_were_learned(tmp_path, lines, named):
    """They make pieces that the model knows, but other pieces than in its training."""
    with pytest.raises(InputError, match=named):
        read_bpe(write(tmp_path / "codes", [CODES[0], *lines]))


def test_a_vocabulary_and_glossaries_cut_as_subword_nmt_does(tmp_path):
    """apply_bpe --vocabulary FILE --vocabulary-threshold 50 --glossaries."""
    dictionary = write(tmp_path / "vocabulary", [f"{word} {len(word) * 20}" for word in dict.fromkeys(WORDS)])
    words = [*WORDS, "ABC-7", "vorABC-7nach"]
    with dictionary.open(encoding="utf-8") as file, (DEMO / "codes.bpe").open(encoding="utf-8") as codes:
        known = apply_bpe.read_vocabulary(file, 50)
        theirs = apply_bpe.BPE(codes, vocab=known, glossaries=["ABC-[0-9]"]).segment_tokens(words)
    settings = {"bpe_vocabulary": str(dictionary), "bpe_vocabulary_threshold": "50", "bpe_glossaries": "ABC-[0-9]"}
    stated = TextSettings(None, None, {"bpe_codes": str(DEMO / "codes.bpe"), **settings})
    vocabulary = Vocabulary(Dictionary.load(str(DEMO / "dict.de.txt")), "@@", {0, 1, 2})
    pipeline, _ = pipelines(stated, ("de", "en"), (vocabulary, vocabulary))
    line = pipeline.read(" ".join(words))
    found = pipeline.segment(line)
    assert list(found.tokens) == theirs
    assert theirs != read_bpe(DEMO / "codes.bpe").segment_tokens(words)
    assert len(set(found.words.tolist())) == len(words)
    assert stated.files == [str(DEMO / "codes.bpe"), str(dictionary)]
    with pytest.raises(UsageError, match="bpe_glossaries is an option of BPE codes"):
        TextSettings(None, "none", {"bpe_glossaries": "A"})
    with pytest.raises(InputError, match=facts("codes.bpe: cannot read a vocabulary")):
        BpeSegmenter(DEMO / "codes.bpe", vocabulary=DEMO / "codes.bpe")


def test_codes_are_compared_with_the_dictionaries(tmp_path):
    dictionaries = [Dictionary.load(str(DEMO / f"dict.{language}.txt")) for language in ("de", "en")]
    check_codes({"all": BpeSegmenter(DEMO / "codes.bpe")}, dictionaries)
    first = BpeSegmenter(write(tmp_path / "first", CODES[:7001]))
    unmade = {entry for entry in dictionaries[0].symbols if first.cut(entry.removesuffix("@@"), "")[0] != [entry]}
    assert first.unmade(dictionaries[0].symbols) <= unmade
    with pytest.raises(InputError, match=r"first: no line of the codes makes 99[0-9] of the 8276 entries"):
        check_codes({"first": first}, dictionaries)
    check_codes({"first": first, "all": BpeSegmenter(DEMO / "codes.bpe")}, dictionaries)  # one may be of each side
