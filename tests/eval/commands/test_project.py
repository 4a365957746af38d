import json
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.transfer.label_files import parse_conll, scheme_of
from alignment_eval.transfer.labels import SCHEMES, LabelSpan, labels_of, spans_of
from tests.facts import facts, says

LABELS = "Frau\tO\nAnna\tB-PER\nWirth\tI-PER\nlebt\tO\nin\tO\nGraz\tB-LOC\n\n\nNordtirols\tB-LOC\nWälder\tO\n"
TEXT = "In Graz lives Anna Wirth .\nforests of North Tyrol\n"
LINKS = "1-3 2-4 3-2 4-0 5-1\n0-1 0-2 0-3 1-0\n"
FILES = {"labels": LABELS, "text": TEXT, "links": LINKS}
COMMAND = ("project", "--labels", "labels", "--target-text", "text", "--links")
EXPECTED = (
    "In\tO\nGraz\tB-LOC\nlives\tO\nAnna\tB-PER\nWirth\tI-PER\n.\tO\n\nforests\tO\nof\tO\nNorth\tB-LOC\nTyrol\tI-LOC\n\n"
)


def parsed(text):
    return list(parse_conll(enumerate(text.encode().split(b"\n"), 1), "x.conll"))


def test_blank_lines_separate_and_comments_have_no_label():
    assert parsed("\n\na\tO\nb\tB-X\n \n\nc\tB-Y\n") == [(["a", "b"], ["O", "B-X"], 3), (["c"], ["B-Y"], 7)]
    assert parsed("a\u00a0b\tO\n") == [(["a\u00a0b"], ["O"], 1)]  # only ASCII whitespace separates columns
    assert parsed("# id 7\n#wetter\tO\n#\tO\n") == [(["#wetter", "#"], ["O", "O"], 2)]


SPANS = [LabelSpan(0, 1, "X"), LabelSpan(1, 3, "X"), LabelSpan(3, 4, "Y"), LabelSpan(5, 8, "X")]
WRITTEN = {
    "bio": "B-X B-X I-X B-Y O B-X I-X I-X",
    "iob1": "I-X B-X I-X I-Y O I-X I-X I-X",
    "bioes": "S-X B-X E-X S-Y O B-X I-X E-X",
    "bilou": "U-X B-X L-X U-Y O B-X I-X L-X",
}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes(scheme):
    labels = WRITTEN[scheme].split()
    assert labels_of(SPANS, 8, scheme) == labels
    assert spans_of(labels, scheme) == SPANS
    assert scheme_of(parsed("x\tO\n\n" + "".join(f"x {label}\n" for label in labels)), "x") == scheme


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("B-X | I-X", "x.conll:3: label 'I-X' after 'O': expected B-X … BIO"),
        ("I-X O B-X", "x.conll:3: label 'B-X' after 'O': expected I-X … IOB1"),
        ("B-X L-X I-X", "x.conll:3: label 'I-X' after 'L-X': expected U-X … BILOU"),
    ],
)
def test_mixed_schemes(labels, message):
    text = "".join("\n" if label == "|" else f"x\t{label}\n" for label in labels.split())
    with pytest.raises(InputError, match=facts(message)):
        scheme_of(parsed(text), "x.conll")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("New York\tB-LOC\n", "x.conll:1: 3 columns … 'New York … column 2 … --column"),
        ("a\tPER\n", "x.conll:1: label 'PER': expected O"),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(InputError, match=facts(message)):
        parsed(text)


def test_end_to_end(files, align_eval):
    done = align_eval(*COMMAND, "links", "-o", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert Path("out").read_text() == EXPECTED
    fields = dict(field.split(":", 1) for field in done.stderr.strip().split("|"))
    assert (fields["links_format"], fields["spans"], fields["projected"]) == ("pharaoh", "3", "3")


def test_spans_without_counterpart_are_counted(files, call):
    files("links", "5-1\n1-0\n")
    status, out, err = call(*COMMAND, "links")
    assert (status, out.count("B-")) == (0, 1)
    assert says(err, "2 of 3 spans … labels:1")
    assert "|spans:3|projected:1|" in err


def answers(*texts_and_starts):
    return {"text": list(texts_and_starts[::2]), "answer_start": list(texts_and_starts[1::2])}


def test_the_scheme_and_the_column_of_the_labels(files, call):
    text = "-DOCSTART- X O\n\n# id 7\n" + LABELS.replace("\t", " X ").replace(" B-", " S-").replace("S-PER", "B-PER")
    files("labels", text.replace("I-PER", "E-PER"))
    status, out, err = call(*COMMAND, "links", "--column", "3")
    expected = EXPECTED.replace("B-LOC", "S-LOC").replace("I-PER", "E-PER")
    assert (status, out) == (0, expected.replace("S-LOC\nTyrol\tI-LOC", "B-LOC\nTyrol\tE-LOC"))
    assert "|scheme:bioes|" in err


GERMAN = "Frau Anna Wirth lebt in Graz", "»Nordtirols« Wälder"
TRANSLATED = "In Graz, lives Anna Wirth .", "forests of (North Tyrol)"
SQUAD = answers("Anna Wirth", 5, "Wirth", 10), answers("Nordtirols", 1)
SQUAD_EXPECTED = answers("Anna Wirth", 15, "Wirth", 20), answers("North Tyrol", 12)


@pytest.mark.parametrize(
    ("key", "spans", "given", "expected"),
    [
        ("text", "spans", ([[5, 16, "PER"], [24, 28, "LOC"]], [[0, 12, "LOC"]]),
         ([[3, 7, "LOC"], [15, 25, "PER"]], [[11, 24, "LOC"]])),
        ("context", "answers", SQUAD, SQUAD_EXPECTED),
    ],
    ids=["characters", "SQuAD"],
)  # fmt: skip
def test_spans_of_characters(files, call, key, spans, given, expected):
    rows = [{"id": n, key: text, spans: of_text} for n, (text, of_text) in enumerate(zip(GERMAN, given))]
    files("labels", "".join(f"{json.dumps(row)}\n" for row in rows))
    files("text", "".join(f"{line}\n" for line in TRANSLATED))
    status, out, err = call(*COMMAND, "links")
    found = [{"id": n, key: text, spans: of_text} for n, (text, of_text) in enumerate(zip(TRANSLATED, expected))]
    assert (status, list(map(json.loads, out.splitlines()))) == (0, found), err


ZH = "安娜住在格拉茨。"
ENGLISH = "Anna lives in Graz ."
#: Words of ZH, of a segmenter, and of ENGLISH.
WORDS = [[0, 2], [2, 4], [4, 7], [7, 8]], [[0, 4], [5, 10], [11, 13], [14, 18], [19, 20]]
ALIGNED = {"source": ZH, "target": ENGLISH, "links": [[0, 0], [1, 1], [2, 3], [3, 4]], "confidences": None}
ALIGNED |= {"source_spans": WORDS[0], "target_spans": WORDS[1]}
CHARACTERS = ("--words", "characters")


@pytest.fixture
def project(files, call):
    """What the spans of one text become, or the status; and what goes to stderr."""

    def start(text, spans, target, links, *options):
        files("labels", json.dumps({"text": text, "spans": spans}) + "\n")
        files("text", target + "\n")
        files("links", json.dumps(links) if isinstance(links, dict) else links)
        status, out, err = call(*COMMAND, "links", *options)
        return (json.loads(out)["spans"] if status == 0 else status), err

    return start


@pytest.mark.parametrize(
    ("links", "options"),
    [
        ("0-0 1-0 2-1 3-2 4-3 5-3 6-3 7-4", CHARACTERS),
        (ALIGNED, ()),
        (ALIGNED | {"confidences": [0.9, 0.8, 0.7, 0.6]}, ()),
    ],
    ids=["characters", "JSON", "confidences"],
)
def test_labels_of_text_without_spaces(project, links, options):
    found, err = project(ZH, [[0, 2, "PER"], [4, 7, "LOC"]], ENGLISH, links, *options)
    assert found == [[0, 4, "PER"], [14, 18, "LOC"]], err
    assert "part of a word" not in err


def test_labels_for_text_without_spaces(project):
    spans = [[0, 4, "PER"], [14, 18, "LOC"]]
    found, err = project(ENGLISH, spans, ZH, "0-0 0-1 1-2 2-3 3-4 3-5 3-6 4-7", *CHARACTERS)
    assert found == [[0, 2, "PER"], [4, 7, "LOC"]], err


@pytest.mark.parametrize(
    ("text", "target", "links", "options", "message"),
    [
        (ZH, ENGLISH, "0-0", (), "labels:1: … no spaces between words: … --words characters"),
        ("ขอบคุณ", "thanks", "0-0", (), "labels:1: span 0 to 2 is a part of a word: … no spaces"),
        (ENGLISH, ZH, "0-0 3-0", (), "text:1: … no spaces between words"),
        (ENGLISH, ZH, ALIGNED, (), "labels:1: 'Anna lives … links are of"),
        (ZH, "Anna", ALIGNED, (), "text:1: 'Anna', but the links are of 'Anna lives"),
        (ZH, ENGLISH, ALIGNED | {"links": [[0, 9]]}, (), "links:1: link 0-9 … outside"),
        (ZH, ENGLISH, {"source": ZH}, (), "links:1: … expected a line of norm-align's JSON"),
        (ZH, ENGLISH, ALIGNED, CHARACTERS, "--words with links"),
    ],
)
def test_words_that_do_not_fit_are_refused(project, text, target, links, options, message):
    status, err = project(text, [[0, 2, "X"]], target, links, *options)
    assert status in (1, 2)
    assert says(err, message), err


def test_a_part_of_a_word_is_counted(project):
    """A full stop beside a span is none."""
    spans = [[4, 6, "ORG"], [18, 23, "X"]]
    found, err = project("Die EU-Kommission kommt.", spans, "The EU Commission comes .", "0-0 1-1 1-2 2-3")
    assert found[0] == [4, 17, "ORG"]
    assert says(err, "1 of 2 spans are a part of a word … labels:1")


def test_words_of_columns_are_those_that_were_aligned(files, call):
    files("labels", "安娜\tB-PER\n住在\tO\n格拉茨\tB-LOC\n。\tO\n")
    files("text", f"{ENGLISH}\n")
    files("links", json.dumps(ALIGNED))
    status, out, err = call(*COMMAND, "links")
    assert (status, out.split("\n")[0], out.split("\n")[3]) == (0, "Anna\tB-PER", "Graz\tB-LOC"), err
    files("labels", "安\tB-PER\n娜\tO\n")
    assert says(call(*COMMAND, "links")[2], "labels:1: … expected the words that were aligned")
    files("labels", "安娜\tB-PER\n住在\tO\n格拉茨\tB-LOC\n。\tO\n\n。\tO\n")
    assert says(call(*COMMAND, "links")[2], "links: 1 sentences, but labels has 2")
