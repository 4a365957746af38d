"""Normalisation as a step of a model's text: what the model reads, and the places in the raw line."""

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from fairseq_norm_plugin.text.offsets import Tokenizer, is_visible, normalised
from fairseq_norm_plugin.text.pair import TextPipeline
from fairseq_norm_plugin.text.subwords import LineSegmenter

MOSES = MosesTokenizer("en")
TYPOGRAPHIC = "„“”–—´‘‚’…«»，：？！（）；０９％～"
MARKS = st.sampled_from(
    ["e\u0301", "u\u0308", "\u0323", "\u0302", "각", "\u1100\u1161\u11a8", "\u00ad", "\ufe0f", "ﬃ", "—", "''"]
)
LINES = st.lists(st.one_of(MARKS, st.sampled_from(["a", "B", " ", ".", "'"]), st.text(max_size=3)), max_size=12).map(
    "".join
)


def pipeline(how, tokenize=True):
    tokenizer = Tokenizer(
        (lambda line: MOSES.tokenize(line, return_str=True, escape=False)) if tokenize else None, str, how
    )
    return TextPipeline(LineSegmenter(str, str, "words"), tokenizer, tokenizer if tokenize else None)


def read(line, how="moses", tokenize=True):
    """The words in the raw line, and the tokens that the model reads."""
    reader = pipeline(how, tokenize)
    words = reader.read(line)
    return words.words, reader.segment(words).tokens


@pytest.mark.parametrize(
    ("typographic", "plain", "words"),
    [
        ("We don’t know.", "We don 't know .", "We don ’t know ."),
        ("„Nein“, rief er.", '" Nein " , rief er .', "„ Nein “ , rief er ."),
        ("‟Yes‟ »no«", '" Yes " " no "', "‟ Yes ‟ » no «"),
        ("old – new—both…", "old - new - both ...", "old – new — both …"),
        ("well‑known ﬁnal ofﬁce", "well-known final office", "well‑known ﬁnal ofﬁce"),
        ("（１２，５）ＡＢ！", "( 12,5 ) AB !", "（ １２，５ ） ＡＢ ！"),
        ("re\u00adport\u200b \u200ehere\ufeff ❤\ufe0f", "report here ❤", "re\u00adport here ❤"),
        ("می\u200cخواهم \u200cخانه\u200cها\u200c", "می \u200c خواهم خانه \u200c ها", "می\u200cخواهم خانه\u200cها"),
        ("क्\u200dष र\u200d्य co\u200dop", "क् \u200d ष र \u200d ्य coop", "क्\u200dष र\u200d्य co\u200dop"),
        ("അവന്\u200d.", "അവന് \u200d .", "അവന്\u200d ."),
        ("Gespra\u0308ch u\u0308ber", "Gespräch über", "Gespra\u0308ch u\u0308ber"),
        ("‘‘so’’ it’s", '" so " it \'s', "‘‘ so ’’ it ’s"),
        ("Bonjour\u00a0! 5\u202f%", "Bonjour ! 5 %", "Bonjour ! 5 %"),
    ],
)
def test_what_the_model_reads_and_where_it_is(typographic, plain, words):
    found, tokens = read(typographic)
    assert " ".join(tokens) == plain
    assert found == tuple(words.split(" "))


@given(LINES)
def test_nfc_is_that_of_unicode_and_spans_are_slices_in_order(line):
    printed = "".join(character for character in line if is_visible(character) or character.isspace())
    assert normalised(line, "nfc").text == unicodedata.normalize("NFC", printed)
    for how in ("nfc", "moses"):
        traced = normalised(line, how)
        spans = list(zip(traced.starts.tolist(), traced.ends.tolist()))
        assert len(spans) == len(traced.text)
        assert all(0 <= start <= end <= len(line) for start, end in spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        words = pipeline(how).read(line)
        assert all(before[1] <= after[0] for before, after in zip(words.spans, words.spans[1:]))
        assert len(pipeline(how).segment(words).words) == len(pipeline(how).segment(words).tokens)


@given(st.text(st.sampled_from(f"{TYPOGRAPHIC}aB1 .,'")).filter(lambda line: not re.search("[´‘‚’']{3}", line)))
def test_punctuation_is_that_of_moses(line):
    """But for the order of quotes and commas, which stays."""
    theirs = MosesPunctNormalizer("de", norm_quote_commas=False, pre_replace_unicode_punct=True).normalize(line)
    assert MOSES.tokenize(normalised(line, "moses").text) == MOSES.tokenize(theirs)


@given(st.text(st.characters(max_codepoint=126, exclude_categories=("Cc",), exclude_characters="'`")))
def test_plain_text_stays_as_it_is(line):
    assert normalised(line, "moses").text == line


@pytest.mark.parametrize("line", ["\u200b", "\u00ad \u200e", "\ufeff", "\u00a0\u3000\t", "", "\ufe0f\u2060"])
@pytest.mark.parametrize("how", ["none", "nfc", "moses"])
def test_a_line_without_a_printed_character_is_empty(line, how):
    for tokenize in (True, False):
        assert len(pipeline(how, tokenize).read(line)) == 0
