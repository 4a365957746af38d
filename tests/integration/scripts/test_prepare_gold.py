"""scripts/prepare_gold.py, run as a user runs it."""

from __future__ import annotations

import pytest

from tests.facts import says
from tests.integration.scripts.preparing import LANGUAGES, names, run


@pytest.fixture
def gold(tmp_path):
    """Writes a gold set from bytes, prepares it, and returns the process and the output directory."""

    def prepare(source, target, alignment, *options):
        for name, content in (("raw.s", source), ("raw.t", target), ("raw.talp", alignment)):
            (tmp_path / name).write_bytes(content)
        files = ("--source", tmp_path / "raw.s", "--target", tmp_path / "raw.t", "--alignment", tmp_path / "raw.talp")
        out = tmp_path / "out"
        return run("prepare_gold.py", *files, *LANGUAGES, "--out", out, *options), out

    return prepare


def test_gold_latin1_with_a_blank_sentence(gold):
    source = "Die Straße  ist naß .\r\n\r\nÄpfel fallen .\r\n".encode("latin1")
    target = b"The street is wet .\n\nApples fall .\n"
    links = b"1-1 2-2 3p3 3-3 4?4 5-5 \n\n1-1 2-2 2p2 3p3 \n"
    done, out = gold(source, target, links, "--lowercase", "--encoding", "latin1", "--base", 1)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
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
    done, out = gold(source.encode("latin1"), target, links, "--name", "dev", "--encoding", "latin1")
    assert done.returncode == 0, done.stderr
    assert (out / "dev.de").read_bytes() == "Mr. Président , oui .\nRien\nNon !\n".encode()
    assert (out / "dev.en").read_bytes() == b"Mr. Speaker , yes .\nNothing\nNo !\n"
    assert (out / "alignment.talp").read_bytes() == b"1-1 2-2 4p4\n\n1-1 2p2\n"


@pytest.mark.parametrize(
    ("alignment", "options", "expected"),
    [
        (b"0-0 1-1 1p2\n", ("--base", 0), b"1-1 2-2 2p3\n"),
        (b"1-1\n", ("--base", 0), b"2-2\n"),
        (b"1-1\n", ("--base", 1), b"1-1\n"),
        (b"3p2 1-1\n", ("--reversed", "--base", 1), b"1-1 2p3\n"),
        (b"1 1 0\n1 2 3 S\n", ("--drop-null",), b"2-3\n"),
    ],
)
def test_gold_base_direction_and_null(gold, alignment, options, expected):
    done, out = gold(b"\xef\xbb\xbfa\xcc\x88 b\n", b"u v w\n", alignment, *options)
    assert done.returncode == 0, done.stderr
    assert (out / "alignment.talp").read_bytes() == expected
    assert (out / "test.de").read_bytes() == "ä b\n".encode()  # composed, without its byte-order mark


GOOD = (b"a b\nc\n", b"u v\nw\n", b"1-1 2-2\n1-1\n")
GOLD_ERRORS = [
    ((*GOOD[:2], b"1-1 2-2\n\n1-1\n"), (), "raw.talp: … 3 lines … 2 sentences"),
    ((*GOOD[:2], b"1-1 2-2\n1:1\n"), (), "raw.talp:2: '1:1' … i-j … ipj"),
    ((*GOOD[:2], b"1-1 2-2\n1-2\n"), (), "raw.talp: sentence 2: … source word 1 and target word 2 … 1 and 1 words"),
    (GOOD, ("--base", 0), "raw.talp: sentence 1: … source word 3 and target word 3 … 2 and 2 words … --base"),
    ((*GOOD[:2], b"1 1 1 S\n3 1 1 S\n"), None, "raw.talp:2: sentence 3 is not one of the 2"),
    ((*GOOD[:2], b"1 1 1 S\n1 0 1 S\n"), None, "raw.talp:2: … word 0 … NULL … nonullalign … --drop-null"),
    ((b"<s snum=1> a b </s>\nc\n", *GOOD[1:]), (), "raw.s:2: … <s snum=NUMBER> text </s>"),
    ((b"<s snum=1> a b </s>\n<s snum=1> c </s>\n", *GOOD[1:]), (), "raw.s:2: duplicate sentence number 1"),
    (("a b\nc\u00a0d\n".encode(), *GOOD[1:]), (), "raw.s:2: … U+00A0"),
]


@pytest.mark.parametrize(("files", "options", "message"), GOLD_ERRORS)
def test_gold_errors_name_the_place_and_leave_nothing(gold, files, options, message):
    """Options are those of a talp file counted from 1, or None for a NAACL file."""
    given = () if options is None else ("--base", 1, *options)
    done, out = gold(*files, *given)
    assert (done.returncode, done.stdout) == (1, "")
    assert says(done.stderr.splitlines()[-1], f"prepare_gold.py: … {message}" if message[0] != "a" else message)
    assert names(out) == []


@pytest.mark.parametrize(
    ("links", "options", "message"),
    [
        (GOOD[2], (), "raw.talp: … --base"),
        (b"1 1 1\n", ("--base", 0), "--base 0: … raw.talp is a NAACL file … omit --base"),
    ],
)
def test_gold_usage_errors(gold, links, options, message):
    done, out = gold(*GOOD[:2], links, *options)
    assert (done.returncode, says(done.stderr, message)) == (2, True), done.stderr
    assert names(out) == []


@pytest.mark.shared
def test_gold_of_vilar_et_al(shared, tmp_path):
    encoding = "latin1"
    directory = shared / "data/gold/vilar508"
    for side in ("de", "en"):
        text = (directory / f"test.uc.{side}").read_text(encoding="utf-8")
        (tmp_path / side).write_bytes(text.encode(encoding))
    out = tmp_path / "out"
    done = run(
        *("prepare_gold.py", "--source", tmp_path / "de", "--target", tmp_path / "en"),
        *("--alignment", directory / "alignment.talp", *LANGUAGES, "--lowercase", "--out", out),
        *("--base", 1, "--encoding", encoding),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"{out}: 508 sentences, 9945 source words, 10413 target words, 9613 sure and 921 possible links, "
        f"0 sentences without links"
    )
    for side in ("de", "en"):
        expected = (directory / f"test.{side}").read_bytes()
        assert (out / f"test.{side}").read_bytes().rstrip(b"\n") == expected.rstrip(b"\n")
    made, given = ((folder / "alignment.talp").read_text().splitlines() for folder in (out, directory))
    assert [set(line.split()) for line in made] == [set(line.split()) for line in given]
