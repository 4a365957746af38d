import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.transfer.conll import format_conll, parse_conll
from alignment_eval.transfer.labels import Span, labels_of
from tests.facts import facts


def parsed(text):
    return list(parse_conll(enumerate(text.encode().split(b"\n"), 1), "x.conll"))


def test_blank_lines_separate():
    assert parsed("\n\na\tO\nb\tB-X\n \n\nc\tI\u00a0\n".replace("I\u00a0", "B-Y")) == [
        (["a", "b"], ["O", "B-X"], 3),
        (["c"], ["B-Y"], 7),
    ]
    assert parsed("\n\n") == []


WORDS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\t\n\r\v\f \0"), min_size=1)


@given(st.lists(st.lists(WORDS, min_size=1, max_size=4), max_size=4))
def test_what_is_written_is_read(sentences):
    labels = [labels_of([Span(0, len(words), "X")], len(words)) for words in sentences]
    lines = [line for pair in zip(sentences, labels) for line in format_conll(*pair)]
    read = parsed("\n".join(lines))
    assert [sentence.words for sentence in read] == sentences
    assert [sentence.labels for sentence in read] == labels


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\tO\nb O\n", "x.conll:2: 0 tabs in 'b O'"),
        ("a\tNN\tO\n", "x.conll:1: 2 tabs … cut -f"),
        ("New York\tB-LOC\n", "x.conll:1 … 'New York … without spaces"),
        ("\tO\n", "x.conll:1 … one word"),
        ("a\t\n", "x.conll:1 … one label"),
        ("a\tO\n\nb\tI-X\n", "x.conll:3 … 'I-X' after 'O' … B-X"),
        ("a\tB-X\n\nb\tI-X\n", "x.conll:3 … 'I-X' after 'O'"),
        (f"{'a' * 100_000}\n", "x.conll:1: 0 tabs"),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(InputError, match=facts(message)) as caught:
        parsed(text)
    assert len(str(caught.value)) < 400
