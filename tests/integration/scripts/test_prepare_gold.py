"""scripts/prepare_gold.py, run as a user runs it."""

from __future__ import annotations

import re

import pytest

from tests.integration.scripts.preparing import LANGUAGES, REPOSITORY, names, run


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
    assert done.stderr == (f"prepare_gold.py: {out}/{name}: already exists; choose another path or remove it\n")
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


def test_readme_names_only_options_that_exist():
    text = (REPOSITORY / "data/README.md").read_text(encoding="utf-8").replace("\\\n", " ")
    seen = set()
    for script in ("prepare_gold.py", "prepare_corpus.py", "prepare_bpe.sh"):
        known = set(re.findall(r"--[a-z-]+", run(script, "--help").stdout))
        for call in re.findall(rf"^(?:python|bash) scripts/{script}(.*)$", text, flags=re.MULTILINE):
            seen.add(script)
            assert set(re.findall(r"--[a-z-]+", call)) <= known, call
    assert len(seen) == 3
