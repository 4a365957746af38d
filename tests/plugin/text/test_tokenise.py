"""From a line of text to its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline, characters_of_text, words_of_text


@given(st.text(alphabet="a\u00a0\u2028\x1c \t\n\r\v\fé"))
def test_words_are_those_of_the_command_line(text):
    assert words_of_text(text) == [word.decode() for word in text.encode().split()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们 today来", "我 们 today 来"),
        ("3か月。é,x", "3 か 月 。 é,x"),
        ("が e\u0301x", "が e\u0301x"),
        ("ก่อน", "ก่ อ น"),
        ("\u0301a 我\u0301b", "\u0301a 我\u0301 b"),
        ("  ", ""),
        ("ab cd", "ab cd"),
    ],
)
def test_characters(text, words):
    assert characters_of_text(text) == words.split()
    assert "".join(characters_of_text(text)) == "".join(text.split())


def test_what_the_words_of_a_line_are():
    line = "我们 今天  来,"
    plain, characters, segmented = (
        TextPipeline(MarkedPieces("none"), words=words).read(line) for words in ("blanks", "characters", "segmented")
    )
    assert (list(plain), plain.text) == (["我们", "今天", "来,"], "我们 今天 来,")
    assert (list(characters), characters.text) == (["我", "们", "今", "天", "来", ","], line)
    assert (list(segmented), segmented.text) == (list(plain), "我们今天来,")
    tokenized = TextPipeline(MarkedPieces("none"), lambda text: text.replace(",", " &")).read(line)
    assert (list(tokenized), tokenized.text) == (["我们", "今天", "来", "&"], "我们 今天 来 &")
    assert TextPipeline(MarkedPieces("@@")).words(["a@@", "b", "c"]) == ["ab", "c"]
