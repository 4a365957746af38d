import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.commands.project import format_conll, format_json, parse_conll, parse_json, scheme_of
from alignment_eval.errors import InputError
from alignment_eval.transfer.labels import SCHEMES, Span, labels_of, spans_of
from tests.facts import facts


def parsed(text):
    return list(parse_conll(enumerate(text.encode().split(b"\n"), 1), "x.conll"))


def test_blank_lines_separate():
    assert parsed("\n\na\tO\nb\tB-X\n \n\nc\tI\u00a0\n".replace("I\u00a0", "B-Y")) == [
        (["a", "b"], ["O", "B-X"], 3),
        (["c"], ["B-Y"], 7),
    ]
    assert parsed("\n\n") == []


def test_columns_documents_and_comments():
    text = "-DOCSTART- -X- O\n\n# id 7\nLea NN B-PER\n# NN O\n\n#wetter NN O\n"
    assert list(parse_conll(enumerate(text.encode().split(b"\n"), 1), "x.conll", 3)) == [
        (["Lea", "#"], ["B-PER", "O"], 4),
        (["#wetter"], ["O"], 7),
    ]


SPANS = [Span(0, 1, "X"), Span(1, 3, "X"), Span(3, 4, "Y"), Span(5, 8, "X")]
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
        ("S-X | O B-X", "x.conll:4: label 'B-X' … expected S-X … BIOES"),
        ("B-X L-X I-X", "x.conll:3: label 'I-X' after 'L-X': expected U-X … BILOU"),
        ("U-X O E-X", "x.conll:3: label 'E-X' … expected U-X … BILOU"),
    ],
)
def test_mixed_schemes(labels, message):
    text = "".join("\n" if label == "|" else f"x\t{label}\n" for label in labels.split())
    with pytest.raises(InputError, match=facts(message)):
        scheme_of(parsed(text), "x.conll")


WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\n\r\v\f \0"), min_size=1)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=4))
def test_what_is_written_is_read(sentences):
    labels = [labels_of([Span(0, len(words), "X")], len(words)) for words in sentences]
    lines = [line for words in sentences for line in format_conll(words, [Span(0, len(words), "X")], "bio")]
    read = parsed("\n".join(lines))
    assert [sentence.words for sentence in read] == sentences
    assert [sentence.labels for sentence in read] == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tNN\tO\n", "x.conll:1: 3 columns … column 2 … --column"),
        ("New York\tB-LOC\n", "x.conll:1: 3 columns … 'New York"),
        ("\tO\n", "x.conll:1: 1 column"),
        ("a\tPER\n", "x.conll:1: label 'PER': expected O"),
        ("a O\n# b\n", "x.conll:2: … 'b'"),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(InputError, match=facts(message)):
        parsed(text)


def test_a_span_of_characters_ends_before_a_word_that_it_does_not_touch():
    (text,) = parse_json([(1, b'{"text": "ab cd", "spans": [[0, 3, "X"]]}')], "x")
    assert text.groups == [[Span(0, 1, "X")]]


def test_a_counterpart_of_marks_only_keeps_one():
    line = format_json("... !", [Span(0, 1, "X")], {"spans": []}, ["ab"])
    assert json.loads(line)["spans"] == [[2, 3, "X"]]
