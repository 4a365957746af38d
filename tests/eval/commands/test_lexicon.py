from pathlib import Path

import pytest

from tests.facts import says

FILES = {"source": "der hund\nder katze\n", "target": "the dog\nthe cat\n", "links": "0-0 1-1\n0-0 1-0 1-1\n"}
pytestmark = pytest.mark.usefixtures("files")
COMMAND = ("lexicon", "--source", "source", "--target", "target")
EXPECTED = """\
source\ttarget\tcount\tp(t|s)\tp(s|t)\tdice
der\tthe\t2\t1.0000\t0.6667\t0.8000
hund\tdog\t1\t1.0000\t1.0000\t1.0000
katze\tcat\t1\t0.5000\t1.0000\t0.6667
katze\tthe\t1\t0.5000\t0.3333\t0.4000
"""


def test_end_to_end(align_eval):
    done = align_eval(*COMMAND, "links", "-o", "out.tsv")
    assert (done.returncode, done.stdout, Path("out.tsv").read_text()) == (0, "", EXPECTED)
    assert "|min_count:1|entries:4|" in done.stderr


def test_formats_of_links(call):
    Path("links").write_text("1-1 2p2\n1-1 1-2 2-2\n")
    assert call(*COMMAND, "links", "--links-swap", "--links-base", "1")[:2] == (0, EXPECTED)


def test_min_count(call):
    assert call(*COMMAND, "links", "--min-count", 2)[:2] == (0, "".join(EXPECTED.splitlines(True)[:2]))


@pytest.mark.parametrize(
    ("words", "expected", "message"),
    [
        ((*COMMAND, "outside"), 1, "outside:2: link 2-0 is outside … 2 words in source and 2 in target"),
        ((*COMMAND, "short"), 1, "short: the file has 1 sentences, but source has 2"),
        ((*COMMAND, "links", "--min-count", "0"), 2, "1 or more"),
    ],
)
def test_refused(call, words, expected, message):
    Path("outside").write_text("0-0\n2-0\n")
    Path("short").write_text("0-0\n")
    status, out, err = call(*words)
    assert (status, out) == (expected, "")
    assert says(err, message), err
