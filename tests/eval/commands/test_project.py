import json
from pathlib import Path

import pytest

from tests.facts import says

LABELS = "Frau\tO\nAnna\tB-PER\nWirth\tI-PER\nlebt\tO\nin\tO\nGraz\tB-LOC\n\n\nNordtirols\tB-LOC\nWälder\tO\n"
TEXT = "In Graz lives Anna Wirth .\nforests of North Tyrol\n"
LINKS = "1-3 2-4 3-2 4-0 5-1\n0-1 0-2 0-3 1-0\n"
FILES = {"labels": LABELS, "text": TEXT, "links": LINKS}
pytestmark = pytest.mark.usefixtures("files")
COMMAND = ("project", "--labels", "labels", "--target-text", "text", "--links")
EXPECTED = (
    "In\tO\nGraz\tB-LOC\nlives\tO\nAnna\tB-PER\nWirth\tI-PER\n.\tO\n\nforests\tO\nof\tO\nNorth\tB-LOC\nTyrol\tI-LOC\n\n"
)


def test_end_to_end(align_eval):
    done = align_eval(*COMMAND, "links", "-o", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert Path("out").read_text() == EXPECTED
    fields = dict(field.split(":", 1) for field in done.stderr.strip().split("|"))
    assert fields["links_format"] == "pharaoh"
    assert fields["spans"] == fields["projected"] == "3"


@pytest.mark.parametrize(
    ("links", "options"),
    [
        ("1-3:0.9 2-4:0.8 3-2:1.0 4-0:1.0 5-1:1.0\n0-1:0.5 0-2:0.7 0-3:0.9 1-0:1.0\n", ()),
        ("3-1 4-2 2-3 0-4 1-5\n1-0 2-0 3-0 0-1\n", ("--links-swap",)),
        ("2-4 3p5 4-3 5-1 6-2\n1p2 1-3 1-4 2-1\n", ("--links-base", "1")),
    ],
)
def test_formats_of_links(call, links, options):
    Path("links").write_text(links)
    status, out, err = call(*COMMAND, "links", *options)
    assert (status, out) == (0, EXPECTED), err


def test_spans_without_counterpart_are_counted(call):
    Path("links").write_text("5-1\n1-0\n")
    status, out, err = call(*COMMAND, "links")
    assert (status, out.count("B-")) == (0, 1)
    assert says(err, "2 of 3 spans … labels:1")
    assert "|spans:3|projected:1|" in err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("labels", LABELS + "\na\tO\n", "labels: 3 sentences, but text has 2 lines"),
        ("labels", "", "labels: the file is empty … a word and a label"),
        ("text", "In Graz\n\n", "text:2: a blank line"),
        ("text", "In Graz\nforests\n", "links:1: link … outside its sentence pair … 6 words in labels and 2 in text"),
        ("links", LINKS + "\n", "links: the file has 3 sentences, but labels has 2"),
        ("links", "0-0 6-1\n\n", "links:1: link 6-1 is outside … 6 words in labels and 6 in text"),
        ("links", "0-0:1.5\n\n", "links:1: link 0-0 has the confidence 1.5"),
    ],
)
def test_refused(call, name, text, message):
    Path(name).write_text(text)
    status, out, err = call(*COMMAND, "links", "-o", "out")
    assert (status, out, Path("out").exists()) == (1, "", False)
    assert says(err, message), err


def test_the_scheme_and_the_column_of_the_labels(call):
    text = "-DOCSTART- X O\n\n" + LABELS.replace("\t", " X ").replace(" B-", " S-").replace("S-PER", "B-PER")
    Path("labels").write_text(text.replace("I-PER", "E-PER"))
    status, out, err = call(*COMMAND, "links", "--column", "3")
    expected = EXPECTED.replace("B-LOC", "S-LOC").replace("I-PER", "E-PER")
    assert (status, out) == (0, expected.replace("S-LOC\nTyrol\tI-LOC", "B-LOC\nTyrol\tE-LOC"))
    assert "|scheme:bioes|" in err


def test_spans_of_characters(call):
    rows = [
        {"text": "Frau Anna Wirth lebt in Graz", "spans": [[5, 15, "PER"], [24, 28, "LOC"]]},
        {"text": "»Nordtirols« Wälder", "spans": [[1, 11, "LOC"]]},
    ]
    Path("labels").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("text").write_text("In Graz, lives Anna Wirth .\nforests of (North Tyrol)\n")
    status, out, err = call(*COMMAND, "links")
    assert status == 0, err
    found = [json.loads(line) for line in out.splitlines()]
    assert [[(row["text"][a:b], label) for a, b, label in row["spans"]] for row in found] == [
        [("Graz", "LOC"), ("Anna Wirth", "PER")],
        [("North Tyrol", "LOC")],
    ]


def test_answers_of_squad(call):
    rows = [
        {"id": 1, "context": "Frau Anna Wirth lebt in Graz", "answers": _answers("Anna Wirth", 5, "Wirth", 10)},
        {"id": 2, "context": "»Nordtirols« Wälder", "answers": _answers("Nordtirols", 1)},
    ]
    Path("labels").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("text").write_text("In Graz, lives Anna Wirth .\nforests of (North Tyrol)\n")
    status, out, err = call(*COMMAND, "links")
    assert status == 0, err
    assert [json.loads(line) for line in out.splitlines()] == [
        {"id": 1, "context": "In Graz, lives Anna Wirth .", "answers": _answers("Anna Wirth", 15, "Wirth", 20)},
        {"id": 2, "context": "forests of (North Tyrol)", "answers": _answers("North Tyrol", 12)},
    ]


def _answers(*texts_and_starts):
    return {"text": list(texts_and_starts[::2]), "answer_start": list(texts_and_starts[1::2])}


def test_bad_spans_of_characters(call):
    for row, message in (
        ({"context": "a b", "answers": _answers("b", 0)}, "labels:1: the answer at 0 is 'a'"),
        ({"context": "a b", "answers": ["b"]}, "labels:1: … expected"),
        ({"text": "a b", "label": []}, "labels:1: … expected"),
        ({"text": "a b", "spans": [[0, 4, "X"]]}, "labels:1: span 0 to 4 … 3 characters"),
        ({"text": "a b", "spans": [[0, 3, "X"], [2, 3, "Y"]]}, "labels:1: span 2 to 3 shares a word"),
    ):
        Path("labels").write_text(json.dumps(row))
        status, out, err = call(*COMMAND, "links")
        assert (status, out) == (1, "")
        assert says(err, message), err
