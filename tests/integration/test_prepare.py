"""The data preparation scripts, run as a user runs them."""

from __future__ import annotations

import gzip
import importlib
import lzma
import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

REPOSITORY = Path(__file__).resolve().parents[2]
SCRIPTS = REPOSITORY / "scripts"
LANGUAGES = ("--source-lang", "de", "--target-lang", "en")


def run(script: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable] if script.endswith(".py") else ["bash"]
    return subprocess.run(
        [*command, str(SCRIPTS / script), *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, "PYTHONUTF8": "1", **environment},
    )


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir()) if directory.exists() else []


# --- prepare_gold.py -------------------------------------------------------------------------------------------------


@pytest.fixture
def gold(tmp_path):
    """Writes a gold set from bytes, prepares it, and returns the process and the output directory."""

    def prepare(source: bytes, target: bytes, alignment: bytes, *options: object):
        for name, content in (("raw.s", source), ("raw.t", target), ("raw.talp", alignment)):
            (tmp_path / name).write_bytes(content)
        files = ("--source", tmp_path / "raw.s", "--target", tmp_path / "raw.t", "--alignment", tmp_path / "raw.talp")
        out = tmp_path / "out"
        return run("prepare_gold.py", *files, *LANGUAGES, "--out", out, *options), out

    return prepare


def test_gold_latin1_with_a_blank_sentence(gold, tmp_path):
    source = "Die Straße  ist naß .\r\n\r\nÄpfel fallen .\r\n".encode("latin1")
    target = b"The street is wet .\n\nApples fall .\n"
    done, out = gold(source, target, b"1-1 2-2 3p3 3-3 4?4 5-5 \n\n1-1 2-2 2p2 3p3 \n", "--lowercase")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"{tmp_path}/raw.s: not UTF-8, read as latin1 (state --encoding if it is another)\n"
        f"{tmp_path}/raw.talp: indices count from 1, as their range shows (state --base to have it checked)\n"
        f"{out}: 3 sentences, 8 source words, 8 target words, 6 sure and 2 possible links, 1 sentences without links\n"
    )
    assert names(out) == ["alignment.talp", "test.de", "test.en"]
    assert (out / "test.de").read_bytes() == "die straße ist naß .\n\näpfel fallen .\n".encode()
    assert (out / "test.en").read_bytes() == b"the street is wet .\n\napples fall .\n"
    assert (out / "alignment.talp").read_bytes() == b"1-1 2-2 3-3 4p4 5-5\n\n1-1 2-2 3p3\n"


def test_gold_wpt_markup_and_naacl(gold):
    source = "<s snum=0007> Mr. Président , oui . </s>\n\n<s snum=0009>Rien</s>\n<s snum=0008> Non ! </s>\n"
    target = b"<s snum=0007> Mr. Speaker , yes . </s>\n<s snum=0009> Nothing </s>\n<s snum=0008> No ! </s>\n"
    links = b"0008 2 2 P\n0007 1 1 S\n0007 2 2\n0007 4 4 P 0.5\n0008 1 1 S 1\n0008 2 2 P\n"
    done, out = gold(source.encode("latin1"), target, links, "--name", "dev")
    assert done.returncode == 0, done.stderr
    assert (out / "dev.de").read_bytes() == "Mr. Président , oui .\nRien\nNon !\n".encode()
    assert (out / "dev.en").read_bytes() == b"Mr. Speaker , yes .\nNothing\nNo !\n"
    assert (out / "alignment.talp").read_bytes() == b"1-1 2-2 4p4\n\n2p2 1-1\n"
    assert "3 sentences, 8 source words, 8 target words, 3 sure and 2 possible links, 1 sentences" in done.stderr


def test_gold_utf8_is_composed_and_loses_its_byte_order_mark(gold):
    done, out = gold(b"\xef\xbb\xbfa\xcc\x88\n", b"x\n", b"1-1\n")
    assert done.returncode == 0, done.stderr
    assert (out / "test.de").read_bytes() == "ä\n".encode()


@pytest.mark.parametrize(
    ("alignment", "options", "expected"),
    [
        (b"0-0 1-1 1p2\n", (), b"1-1 2-2 2p3\n"),
        (b"0-0 1-1 1p2\n", ("--base", 0), b"1-1 2-2 2p3\n"),
        (b"1-1\n", ("--base", 0), b"2-2\n"),
        (b"1-1\n", ("--base", 1), b"1-1\n"),
        (b"3p2 1-1\n", ("--reversed",), b"2p3 1-1\n"),
        (b"1 1 0\n1 2 3 S\n", ("--drop-null",), b"2-3\n"),
    ],
)
def test_gold_base_direction_and_null(gold, alignment, options, expected):
    done, out = gold(b"a b\n", b"u v w\n", alignment, *options)
    assert done.returncode == 0, done.stderr
    assert (out / "alignment.talp").read_bytes() == expected


def test_gold_stated_encoding_decides(gold):
    done, out = gold(b"\xe3\x93 \x93\n", b"u v\n", b"1-1 2-2\n", "--encoding", "cp1252")
    assert done.returncode == 0, done.stderr
    assert (out / "test.de").read_text(encoding="utf-8") == "ã“ “\n"


GOOD = (b"a b\nc\n", b"u v\nw\n", b"1-1 2-2\n1-1\n")
GOLD_ERRORS = [
    (
        (b"a b\n\nc\n", *GOOD[1:]),
        (),
        "raw.t: 2 sentences, but TMP/raw.s has 3: expected as many; was a blank line dropped from one of them?",
    ),
    (
        (*GOOD[:2], b"1-1 2-2\n\n1-1\n"),
        (),
        "raw.talp: 3 lines, but the texts have 2 sentences: expected as many; was a blank line dropped?",
    ),
    (
        (*GOOD[:2], b"1-1 2-2\n1:1\n"),
        (),
        "raw.talp:2: '1:1': expected a link i-j (sure) or ipj (possible); mend it",
    ),
    ((*GOOD[:2], b"\n\n"), (), "raw.talp: no links in it: expected a gold alignment in talp or NAACL form"),
    (
        (*GOOD[:2], b"0-0 2-2\n1-1\n"),
        (),
        "raw.talp: indices 0 and indices equal to the length of their sentence: expected only one of them "
        "(base 0 or base 1); do texts and alignment belong together, in this direction?",
    ),
    (
        (*GOOD[:2], b"1-1\n\n"),
        (),
        "raw.talp: no index is 0 and none equals the length of its sentence: expected one of them, to tell "
        "whether indices count from 0 or 1; state --base",
    ),
    (
        (*GOOD[:2], b"1-1 2-2\n1-2\n"),
        (),
        "raw.talp: sentence 2: the link of source word 1 and target word 2, counted from 1, points outside a pair of "
        "1 and 1 words: expected links inside; is the base another (--base), or does the file give the target first "
        "(--reversed)?",
    ),
    (
        (*GOOD[:2], b"1-1 3-2\n1-1\n"),
        ("--base", 1),
        "raw.talp: sentence 1: the link of source word 3 and target word 2, counted from 1, points outside a pair of "
        "2 and 2 words: expected links inside; is the base another (--base), or does the file give the target first "
        "(--reversed)?",
    ),
    (
        GOOD,
        ("--base", 0),
        "raw.talp: sentence 1: the link of source word 2 and target word 2, counted from 0, points outside a pair of "
        "2 and 2 words: expected links inside; is the base another (--base), or does the file give the target first "
        "(--reversed)?",
    ),
    (
        (*GOOD[:2], b"1 1 1 S\n3 1 1 S\n"),
        (),
        "raw.talp:2: sentence 3 is none of the 2 of the texts: expected the alignment of these texts",
    ),
    (
        (*GOOD[:2], b"1 1 1 S\n1 0 1 S\n"),
        (),
        "raw.talp:2: a link to word 0, which in NAACL files is NULL: expected words counted from 1; use the file "
        "without links to NULL (nonullalign) or say --drop-null",
    ),
    (
        (*GOOD[:2], b"1 1 1 S\n1 1 S\n"),
        (),
        "raw.talp:2: '1 1 S': expected SENTENCE I J [S|P] [CONFIDENCE]; mend it",
    ),
    (
        (b"<s snum=1> a b </s>\nc\n", *GOOD[1:]),
        (),
        "raw.s:2: 'c': expected <s snum=NUMBER> text </s> on one line, as on other lines of the file; mend it",
    ),
    (
        (b"<s snum=1> a b </s>\n<s snum=1> c </s>\n", *GOOD[1:]),
        (),
        "raw.s:2: sentence number 1 is there already: expected each once; mend it",
    ),
    (
        (b"<s snum=1> a b </s>\n<s snum=3> c </s>\n", *GOOD[1:]),
        (),
        "raw.t:2: sentence number 2 where TMP/raw.s has 3: expected the same numbers in the same order",
    ),
    (
        ("a b\nc\u00a0d\n".encode(), *GOOD[1:]),
        (),
        "raw.s:2: word 1 holds the space character U+00A0, at which fairseq would split it: expected words without "
        "one; replace it by hand",
    ),
    (
        (b"a b\n\x93c\n", *GOOD[1:]),
        (),
        "raw.s:2: byte 0x93 in a file that is not UTF-8: expected no such byte in latin1 text; state the encoding "
        "(--encoding cp1252?)",
    ),
    (
        (b"a b\n\xe4\n", *GOOD[1:]),
        ("--encoding", "utf-8"),
        "raw.s:2: byte 0xe4 is not utf-8: expected utf-8 text; state --encoding, or convert the file",
    ),
    (
        GOOD,
        ("--source", "absent"),
        "absent: cannot be read (No such file or directory): expected a text file, plain, .gz, .xz or .bz2",
    ),
]


@pytest.mark.parametrize(("files", "options", "message"), GOLD_ERRORS)
def test_gold_errors_name_the_place_and_leave_nothing(gold, tmp_path, files, options, message):
    done, out = gold(*files, *options)
    assert (done.returncode, done.stdout) == (1, "")
    where = "" if message.startswith("absent") else f"{tmp_path}/"
    assert done.stderr.splitlines()[-1] == f"prepare_gold.py: {where}{message}".replace("TMP", str(tmp_path))
    assert names(out) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--encoding", "no-such"),
            "--encoding no-such: no such encoding: expected utf-8, latin1, iso8859-2 or the like",
        ),
        (("--target-lang", "de"), "--source-lang and --target-lang are both de: expected two languages"),
    ],
)
def test_gold_usage_errors(gold, options, message):
    done, out = gold(*GOOD, *options)
    assert (done.returncode, done.stderr) == (2, f"prepare_gold.py: {message}\n")
    assert names(out) == []


def test_gold_naacl_counts_from_one(gold, tmp_path):
    done, _ = gold(*GOOD[:2], b"1 1 1\n", "--base", 0)
    assert done.returncode == 2
    assert done.stderr == (
        f"prepare_gold.py: --base 0: {tmp_path}/raw.talp is a NAACL file, whose words count from 1: drop --base\n"
    )


@pytest.mark.parametrize("name", ["test.de", "test.en", "alignment.talp"])
def test_gold_never_overwrites(gold, tmp_path, name):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text("mine")
    done, out = gold(*GOOD)
    assert done.returncode == 1
    assert done.stderr == (
        f"prepare_gold.py: {out}/{name}: exists already: expected a new file; remove it or name another --out\n"
    )
    assert names(out) == [name]
    assert (out / name).read_text() == "mine"


@pytest.mark.shared
@pytest.mark.parametrize("encoding", ["utf-8", "latin1"])
def test_gold_of_vilar_et_al(shared, tmp_path, encoding):
    directory = shared / "data/gold/vilar508"
    for side in ("de", "en"):
        text = (directory / f"test.uc.{side}").read_text(encoding="utf-8")
        (tmp_path / side).write_bytes(text.encode(encoding))
    out = tmp_path / "out"
    done = run(
        *("prepare_gold.py", "--source", tmp_path / "de", "--target", tmp_path / "en"),
        *("--alignment", directory / "alignment.talp", *LANGUAGES, "--lowercase", "--out", out),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"{out}: 508 sentences, 9945 source words, 10413 target words, 9613 sure and 921 possible links, "
        f"0 sentences without links"
    )
    for side in ("de", "en"):
        expected = (directory / f"test.{side}").read_bytes()
        assert (out / f"test.{side}").read_bytes().rstrip(b"\n") == expected.rstrip(b"\n")
    lines = (directory / "alignment.talp").read_text().splitlines()
    assert (out / "alignment.talp").read_text().splitlines() == [line.strip() for line in lines]


@pytest.mark.shared
def test_gold_of_vilar_et_al_in_the_wrong_direction(shared, tmp_path):
    directory = shared / "data/gold/vilar508"
    done = run(
        *("prepare_gold.py", "--source", directory / "test.en", "--target", directory / "test.de", "--base", 1),
        *("--alignment", directory / "alignment.talp", *LANGUAGES, "--out", tmp_path / "out"),
    )
    assert done.returncode == 1
    assert "points outside a pair of" in done.stderr
    assert names(tmp_path / "out") == []


# --- prepare_corpus.py -----------------------------------------------------------------------------------------------


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus from bytes, prepares it, and returns the process and the paths of the outputs."""

    def prepare(source: bytes, target: bytes, *options: object):
        (tmp_path / "raw.s").write_bytes(source)
        (tmp_path / "raw.t").write_bytes(target)
        files = ("--source", tmp_path / "raw.s", "--target", tmp_path / "raw.t")
        out = tmp_path / "out" / "train"
        return (
            run("prepare_corpus.py", *files, *LANGUAGES, "--out", out, *options),
            Path(f"{out}.de"),
            Path(f"{out}.en"),
        )

    return prepare


def test_corpus_exact(corpus, tmp_path):
    (tmp_path / "gold.de").write_text("das ist geheim !\n\n.\n", encoding="utf-8")
    (tmp_path / "gold.en").write_text("nobody 's secret\n", encoding="utf-8")
    pairs = [
        ("Größe & „Maß“, z.B. hier.", "It's <so> \"big\" & 'good'."),
        ("", "A blank source."),
        ("Ein leeres Ziel.", " \t"),
        ("DAS ist geheim!", "This is a secret."),
        ("Ein anderer Satz.", "Nobody's secret."),
        ("eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf 13 .", "one two three four five six seven"),
        ("eins zwei drei vier fünf sechs", "one"),
        ("Punkt .", "."),
        ("eins zwei drei vier", "Dot."),
    ]
    source, target = ("\r\n".join(side) for side in zip(*pairs))
    done, de, en = corpus(
        source.encode("cp1252"),
        target.encode("cp1252"),
        *("--encoding", "cp1252", "--lowercase", "--max-tokens", 13, "--max-ratio", 2),
        *("--exclude", tmp_path / "gold.de", tmp_path / "gold.en"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"{tmp_path}/out/train: 9 pairs read, 3 kept; "
        f"dropped: 2 a blank side, 2 in an excluded text, 1 too long, 1 too uneven\n"
    )
    assert de.read_bytes() == 'größe & " maß " , z.b. hier .\npunkt .\neins zwei drei vier\n'.encode()
    assert en.read_bytes() == b"it 's < so > \" big \" & ' good ' .\n.\ndot .\n"
    assert names(tmp_path / "out") == ["train.de", "train.en"]


def test_corpus_of_several_compressed_files(tmp_path):
    for name, opened, text in (
        ("a.de.gz", gzip.open, "eins\n"),
        ("a.en.xz", lzma.open, "one\n"),
        ("b.de", open, "zwei"),
        ("b.en", open, "two\n"),
    ):
        with opened(tmp_path / name, "wb") as file:
            file.write(text.encode())
    done = run(
        *("prepare_corpus.py", *LANGUAGES, "--source", tmp_path / "a.de.gz", tmp_path / "b.de"),
        *("--target", tmp_path / "a.en.xz", tmp_path / "b.en", "--out", tmp_path / "train"),
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "train.de").read_text() == "eins\nzwei\n"
    assert (tmp_path / "train.en").read_text() == "one\ntwo\n"


def test_corpus_characters_that_other_tools_take_for_line_ends(corpus):
    strange = "a\u0085b\u2028c\x0bd\x1ce\rf\u00a0g\x00h"
    done, de, en = corpus(f"{strange}\nzwei\n".encode(), b"eight\ntwo\n", "--no-tokenize", "--no-normalize")
    assert done.returncode == 0, done.stderr
    assert de.read_bytes() == b"a b c d e f g h\nzwei\n"
    assert en.read_bytes() == b"eight\ntwo\n"


def test_corpus_left_as_it_is(corpus):
    done, de, _ = corpus("„Das“ ist's, z.B.\n".encode(), b"x\n", "--no-tokenize", "--no-normalize")
    assert done.returncode == 0, done.stderr
    assert de.read_bytes() == "„Das“ ist's, z.B.\n".encode()


CORPUS_ERRORS = [
    (
        (b"a\n\nc\n", b"x\nz\n"),
        (),
        "raw.t: ends after 2 lines, but TMP/raw.s goes on: expected as many lines in both; was a line dropped from "
        "one of them?",
    ),
    (
        (b"a\n", b"x\ny\n"),
        (),
        "raw.s: ends after 1 lines, but TMP/raw.t goes on: expected as many lines in both; was a line dropped from "
        "one of them?",
    ),
    (
        (b"a\n\xe4\n", b"x\ny\n"),
        (),
        "raw.s:2: byte 0xe4 is not utf-8: expected utf-8 text; state --encoding, or convert the file",
    ),
    (
        (b"a\n\n", b"\ny\n"),
        (),
        "raw.s: no pair is left (2 pairs read, 0 kept; dropped: 2 a blank side, 0 in an excluded text, 0 too long, "
        "0 too uneven): expected some; look at the options",
    ),
    (
        (b"a\n", b" \n"),
        ("--exclude", "TMP/raw.t"),
        "raw.t: no sentence in it: expected a text whose lines to exclude",
    ),
]


@pytest.mark.parametrize(("files", "options", "message"), CORPUS_ERRORS)
def test_corpus_errors_name_the_place_and_leave_nothing(corpus, tmp_path, files, options, message):
    done, de, _ = corpus(*files, *(option.replace("TMP", str(tmp_path)) for option in options))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"prepare_corpus.py: {tmp_path}/{message}\n".replace("TMP", str(tmp_path))
    assert names(de.parent) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-tokens", 0), "--max-tokens 0 --max-ratio 9.0: expected both to be 1 or more"),
        (("--max-ratio", "nan"), "--max-tokens 100 --max-ratio nan: expected both to be 1 or more"),
        (
            ("--source", "a", "b"),
            "--source names 2 files and --target 1: expected as many, in one order",
        ),
        (("--source-lang", "en"), "--source-lang and --target-lang are both en: expected two languages"),
        (
            ("--encoding", "no-such"),
            "--encoding no-such: no such encoding: expected utf-8, latin1, iso8859-2 or the like",
        ),
    ],
)
def test_corpus_usage_errors(corpus, options, message):
    done, de, _ = corpus(b"a\n", b"x\n", *options)
    assert (done.returncode, done.stderr) == (2, f"prepare_corpus.py: {message}\n")
    assert names(de.parent) == []


def test_corpus_damaged_archive(corpus, tmp_path):
    whole = gzip.compress(b"eins\n" * 1000)
    (tmp_path / "cut.gz").write_bytes(whole[:-12])
    done, de, _ = corpus(b"", b"one\n" * 1000, "--source", tmp_path / "cut.gz")
    assert done.returncode == 1
    assert done.stderr.startswith(f"prepare_corpus.py: {tmp_path}/cut.gz: cannot be read (")
    assert names(de.parent) == []


def test_corpus_never_overwrites(corpus, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out/train.en").write_text("mine")
    done, de, en = corpus(b"a\n", b"x\n")
    assert done.returncode == 1
    assert done.stderr == (
        f"prepare_corpus.py: {en}: exists already: expected a new file; remove it or name another --out\n"
    )
    assert names(de.parent) == ["train.en"]
    assert en.read_text() == "mine"


@pytest.fixture(scope="module")
def prepare_corpus():
    """The script as a module; it imports its neighbours, so their directory is on the path for a moment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        return importlib.import_module("prepare_corpus")


@given(st.text())
def test_one_spaced_leaves_nothing_that_ends_a_line_or_word(prepare_corpus, text):
    result = prepare_corpus.one_spaced(text)
    assert len(result.splitlines()) <= 1
    assert result.split() == [word for word in result.split(" ") if word]
    assert prepare_corpus.one_spaced(result) == result


def test_comparison_key_ignores_tokenisation_only(prepare_corpus):
    key = prepare_corpus.comparison_key
    assert key("It's 20 % „Off“ .") == key('it \'s 20% " off ".')
    assert key("20 %") != key("21 %")
    assert key("की") != key("के")  # vowel signs are marks, not letters
    assert key("... !") == ""


# --- prepare_bpe.sh --------------------------------------------------------------------------------------------------


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


def bpe(texts: Path, *options: object, test: str = "", **environment: str):
    inputs = ("--train", texts / "train", "--valid", texts / "valid", "--test", test or texts / "test")
    out = texts / "out" / "bpe"
    done = run("prepare_bpe.sh", *inputs, *LANGUAGES, "--merges", 8, "--out", out, *options, **environment)
    return done, out


def token_counts(binarised: Path, split: str, language: str) -> list[int]:
    """Tokens of each sentence of a binarised text, </s> included, as fairseq reads it."""
    from fairseq.data import Dictionary, data_utils

    dictionary = Dictionary.load(str(binarised / f"dict.{language}.txt"))
    dataset = data_utils.load_indexed_dataset(str(binarised / f"{split}.de-en.{language}"), dictionary)
    assert len(dataset) > 0
    return [len(dataset[i]) for i in range(len(dataset))]


def check_split(out: Path, split: str, prefix: Path) -> None:
    """Pieces spell the text's words, line by line, and the binarised text has as many tokens."""
    for language in ("de", "en"):
        pieces = (out / "bpe" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
        words = Path(f"{prefix}.{language}").read_text(encoding="utf-8").splitlines()
        assert [f"{line} ".replace("@@ ", "").rstrip() for line in pieces] == words
        assert any("@@ " in line for line in pieces)
        assert token_counts(out / "bin", split, language) == [len(line.split()) + 1 for line in pieces]


def test_bpe_separate(texts):
    done, out = bpe(texts, "--separate", test=f"{texts}/test,{texts}/dev")
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


def test_bpe_never_overwrites(texts):
    (texts / "out/bpe").mkdir(parents=True)
    done, out = bpe(texts)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"prepare_bpe.sh: {out}: exists already: expected a new directory; remove it or name another --out\n"
    )
    assert names(out) == []


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("valid.en", "a\n\n", "valid.en: 2 lines, but TMP/valid.de has 1: expected as many"),
        ("valid.en", "", "valid.en: empty: expected a prepared text"),
        ("valid.en", None, "valid.en: no such file: expected a prepared text"),
        ("train.de", "a", "train.de: its last line has no line end: expected one; add it"),
        (
            "test.de",
            "das@@ haus .\n\nbuch .\n",
            "test.de: its pieces do not spell it again: expected that of a gold text; does a word of it end in @@?",
        ),
        (
            "test.de",
            "das haus .\r\n\nbuch\r.\n",
            "test.de: fairseq read 4 sents, 16 tokens: expected 3 sents, 14 tokens; does the text hold carriage "
            "returns or Unicode spaces?",
        ),
    ],
)
def test_bpe_data_errors(texts, name, content, message):
    (texts / name).unlink()
    if content is not None:
        (texts / name).write_text(content, encoding="utf-8")
    done, out = bpe(texts)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines()[-1] == f"prepare_bpe.sh: {texts}/{message}".replace("TMP", str(texts))
    assert names(out.parent) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--merges", "0"), "--merges 0: expected a positive whole number"),
        (("--workers", "two"), "--workers two: expected a positive whole number"),
        (("--target-lang", "de"), "--source-lang and --target-lang are both de: expected two languages"),
        (("--joint",), "--joint: unknown option; see --help"),
        (("--merges",), "--merges: expected a value; see --help"),
        (
            ("--train", ""),
            "needs --train, --valid, --test, --source-lang, --target-lang, --merges and --out; see --help",
        ),
    ],
)
def test_bpe_usage_errors(texts, options, message):
    done, out = bpe(texts, *options)
    assert (done.returncode, done.stderr) == (2, f"prepare_bpe.sh: {message}\n")
    assert names(out.parent) == []


def test_bpe_without_its_tools(texts):
    done, out = bpe(texts, PATH="/usr/bin:/bin")
    assert (done.returncode, done.stderr) == (
        1,
        "prepare_bpe.sh: subword-nmt: not on PATH: expected the tools of .venv/bin; put it on PATH\n",
    )
    assert names(out.parent) == []


@pytest.mark.shared
def test_corpus_and_bpe_of_real_text(shared, tmp_path):
    for language in ("de", "en"):
        with lzma.open(shared / f"data/train/train.{language}.xz", "rt", encoding="utf-8") as file:
            lines = list(islice(file, 400))
        # one pair of the gold set and one blank line, as a careless corpus has them
        gold = (shared / f"data/gold/vilar508/test.uc.{language}").read_text(encoding="utf-8").splitlines()[:1]
        lines[100:100] = [f"{gold[0]}\n", "\n"]
        (tmp_path / f"raw.{language}").write_text("".join(lines), encoding="utf-8")
        with (shared / f"data/train/valid.{language}").open(encoding="utf-8") as file:
            (tmp_path / f"valid.{language}").write_text("".join(islice(file, 50)), encoding="utf-8")
    test = shared / "data/gold/vilar508/test"
    done = run(
        *("prepare_corpus.py", "--source", tmp_path / "raw.de", "--target", tmp_path / "raw.en", *LANGUAGES),
        *("--lowercase", "--max-tokens", 60, "--out", tmp_path / "train", "--exclude", f"{test}.de", f"{test}.en"),
    )
    assert done.returncode == 0, done.stderr
    assert "402 pairs read, " in done.stderr
    assert "dropped: 1 a blank side, 1 in an excluded text, " in done.stderr
    done, out = bpe(tmp_path, "--merges", 200, "--workers", 2, test=str(test))
    assert done.returncode == 0, done.stderr
    assert names(out) == ["bin", "bpe", "codes.bpe"]
    assert (out / "bin/dict.de.txt").read_bytes() == (out / "bin/dict.en.txt").read_bytes()
    for split, prefix in (("train", tmp_path / "train"), ("valid", tmp_path / "valid"), ("test", test)):
        check_split(out, split, prefix)
    assert len(token_counts(out / "bin", "test", "en")) == 508


# --- data/README.md --------------------------------------------------------------------------------------------------


def test_readme_names_only_options_that_exist():
    text = (REPOSITORY / "data/README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    seen = set()
    for script in ("prepare_gold.py", "prepare_corpus.py", "prepare_bpe.sh"):
        known = set(re.findall(r"--[a-z-]+", run(script, "--help").stdout))
        for call in re.findall(rf"^(?:python|bash) scripts/{script}(.*)$", text, flags=re.MULTILINE):
            seen.add(script)
            assert set(re.findall(r"--[a-z-]+", call)) <= known, call
    assert len(seen) == 3
