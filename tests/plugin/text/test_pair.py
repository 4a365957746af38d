"""From a line of text to its words."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.transfer.pieces import Strings
from alignment_eval.transfer.units import character_spans
from fairseq_norm_plugin.text.offsets import Tokenizer, word_spans
from fairseq_norm_plugin.text.pair import (
    Line,
    SentencePair,
    TextPipeline,
    linked_copies,
    sentence_splitter,
    spans_of_words,
    with_copies,
)
from fairseq_norm_plugin.text.subwords import BpeSegmenter, LineSegmenter, MarkedSubwords
from tests.demo import DEMO
from tests.facts import facts


def words_at(spans, text):
    return [text[start:end] for start, end in spans]


@given(st.text(alphabet="a\u00a0\u2028\x1c \t\n\r\v\fé"))
def test_words_are_those_of_the_command_line(text):
    assert words_at(word_spans(text), text) == [word.decode() for word in text.encode().split()]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们 today来", "我 们 today 来"),
        ("3か月。é,x", "3 か 月 。 é,x"),
        ("が e\u0301x", "が e\u0301x"),
        ("ก่อน", "ก่ อ น"),
        ("\u0301a 我\u0301b", "\u0301a 我\u0301 b"),
        ("日\u0301a", "日\u0301 a"),
        ("  ", ""),
        ("ab cd", "ab cd"),
        ("ฉันเห็นบ้านที่นี่", "ฉั น เ ห็ น บ้ า น ที่ นี่"),
        ("ทำ", "ทำ"),
        ("ຂ້ອຍຊື່ວ່າ", "ຂ້ ອ ຍ ຊື່ ວ່ າ"),
        ("ខ្ញុំស្រលាញ់", "ខ្ញុំ ស្រ លា ញ់"),
        ("ကျွန်တော်ပုဂ္ဂိုလ်", "ကျွ န် တော် ပု ဂ္ဂို လ်"),
        ("བོད་སྐད", "བོ ད ་ སྐ ད"),
        ("ｶﾞｷﾞx", "ｶﾞ ｷﾞ x"),
        ("葛\U000e0100城", "葛\U000e0100 城"),
        ("クリスマス、ＯＫ！？", "ク リ ス マ ス 、 Ｏ Ｋ ！ ？"),
        ("col·lecció क्षत्रिय 한국어", "col·lecció क्षत्रिय 한국어"),
        ("我们\u3000来", "我 们 来"),
    ],
)
def test_characters(text, words):
    found = words_at(character_spans(text), text)
    assert found == words.split()
    assert "".join(found) == "".join(text.split())


@pytest.mark.parametrize(
    ("line", "facts_of"),
    [
        ("we have see@@ n it .", "subwords … 30 of 30 … bpe none"),
        ("▁we ▁have se en ▁it", "subwords … bpe none"),
        ("it &apos;s a well @-@ known &quot; case", "tokenised … escapes … tokenizer none"),
        ("we saw it , and they did .", "tokenised: 60 of 60 commas … tokenizer none"),
        ("We saw it, and they did.", None),
        ("Nous l’avons vu ; et vous ? Oui !", None),
        ("Write to a@b.org or R&D @ noon, e.g. 1, 2.", None),
    ],
)
def test_text_that_is_prepared_already_is_named(line, facts_of):
    tokenizer = Tokenizer(str, str)
    raw = TextPipeline(LineSegmenter(str, str, "words"), tokenizer, tokenizer)
    found = raw.prepared([line] * 30)
    assert found is None if facts_of is None else re.search(facts(facts_of), found)
    assert TextPipeline(MarkedSubwords("none")).prepared([line] * 30) is None
    tokens = TextPipeline(LineSegmenter(str, str, "words")).prepared([line] * 30)
    assert (tokens is None) == (facts_of is None or "tokenised" in facts_of)


@pytest.mark.parametrize("words", ["tokens", "whitespace"])
def test_raw_text_where_no_tokenizer_is_used_is_named(words):
    codes, tokenizer = BpeSegmenter(DEMO / "codes.bpe"), Tokenizer(str, str)
    raw, tokens = ["We saw it, and they did."] * 30, ["We saw it , and Mr. E. did ."] * 30
    for line in (None, Tokenizer(None, str, "nfc")):  # one that normalises only
        pipeline = TextPipeline(codes, line, None, words=words)
        assert re.search(facts("raw: 60 of 60 commas … tokenizer moses"), pipeline.prepared(raw))
        assert pipeline.prepared(tokens) is None
        assert pipeline.prepared(raw[:4]) is None  # too few to tell
    assert TextPipeline(codes, tokenizer, tokenizer, words=words).prepared(raw) is None
    # a model whose subwords are of the whole line reads raw text
    assert TextPipeline(LineSegmenter(str, str, "words"), words=words).prepared(raw) is None


@pytest.mark.parametrize("language", ["de", "de_DE", "deu_Latn"])
def test_sentences_are_cut_by_the_rules_of_the_language(language):
    pytest.importorskip("sentencex")
    text = "Er kam am 3. Mai bzw. am 4. Juni. Das gilt."
    assert sentence_splitter(language)(text) == ["Er kam am 3. Mai bzw. am 4. Juni. ", "Das gilt."]
    # none is of white space alone
    assert sentence_splitter(language)("\n\nEs ist alt. Ja.\n\n") == ["\n\nEs ist alt. ", "Ja.\n\n"]


@pytest.mark.parametrize(
    ("source", "target", "links"),
    [
        ("{0} a {0}", "x {0} {0}", {(0, 1), (2, 2)}),  # equal strings, one after the other
        ("{ 0} a", "x { 0}", {(0, 1), (1, 2)}),
        ("{ 0} a", "x {0}", {(0, 1), (1, 1)}),  # the first string is two words
    ],
)
def test_links_of_copies(source, target, links):
    pipeline = TextPipeline(MarkedSubwords("none"))
    pair = SentencePair(*(pipeline.read(text.replace("{ ", "{"), text.split()) for text in (source, target)))
    assert linked_copies(with_copies(pair, Strings()))[2] == links


def test_words_of_a_span_share_a_character_with_it():
    """Words that only touch it do not."""
    line = Line("a{0}b c", ((0, 1), (1, 4), (4, 5), (6, 7)), "")
    for span in itertools.combinations(range(8), 2):
        shared = [word for word, own in enumerate(line.spans) if {*range(*own)} & {*range(*span)}]
        assert line.words_of(span) == shared


def test_given_words():
    assert spans_of_words(["我们", "今天"], " 我们今 天"[:4] + "天") == [(1, 3), (3, 5)]
    assert TextPipeline(MarkedSubwords("none")).read("a bc", ["a", "b", "c"]).words == ("a", "b", "c")
    assert spans_of_words([], " ") == []
    assert spans_of_words(["Sinh_viên", "đi_học", "_"], "Sinh viên đi_học _") == [(0, 9), (10, 16), (17, 18)]
    with pytest.raises(InputError, match=facts("word 2 of the segmentation, 'c', does not come next in the line")):
        spans_of_words(["a", "c"], "a bc")
    with pytest.raises(InputError, match=facts("the segmentation lacks 'bc' at the end of the line")):
        spans_of_words(["a"], "a bc")
