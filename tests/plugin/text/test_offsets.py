"""Where the words and pieces of a line are in the raw text, of any Unicode; what normalisation makes of it."""

import itertools
import re
import unicodedata

import pytest
import sentencepiece
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesPunctNormalizer, MosesTokenizer

from fairseq_norm_plugin.text.offsets import Tokenizer, TracedText, is_visible, normalised, trace_tokens
from fairseq_norm_plugin.text.pair import TextPipeline
from fairseq_norm_plugin.text.recipe import pipelines, stated_recipe
from fairseq_norm_plugin.text.subwords import BpeSegmenter, LineSegmenter, MarkedSubwords, SentencePieceSegmenter
from fairseq_norm_plugin.text.tokens import Vocabulary

#: Parts of lines that tokenizers rewrite, cut, drop or keep in unusual ways.
HARD = (
    ("e\u0301", "a\u0323\u0302"),  # combining marks
    ("שלום", "مرحبا", "\u200f", "\u202b"),  # right to left
    ("👩‍👩‍👧", "🇩🇪", "👍🏽", "𝕏"),  # several code points, or beyond 16 bits
    ("\u00a0", "\u2028", "\u3000", "\u200b", "\u00ad", "\ufeff", "\t", "  "),
    ("&amp;", "&", "&lt;b&gt;", "&#39;", "&quot;", "<", ">", "[", "]", "|"),
    ("İ", "ﬁ", "ß", "Σ", "ǅ", "①"),
    ("\x00", "\x07", "\x1c", "\x7f", "\x85"),
    ('"', "'", "''", "``", "’", "„", "“", "«"),
    ("@-@", "@", "@@", "-", "--", "...", "..", "z.B.", "1,000.5", "it's", "l'eau", "http://a-b.c/d?e=f"),
    ("das", "Haus", "ist", "我们", "来", "猫", "ก่อน", "a"),
)
PARTS = st.one_of(*(st.sampled_from(part) for part in HARD), st.text(max_size=3))
LINES = (
    st.lists(st.tuples(PARTS, st.sampled_from(["", " "])), max_size=10)
    .map(lambda parts: re.sub(r"[\n\r]", "", "".join(part + blank for part, blank in parts)))
    .filter(lambda line: not line or is_visible(line))
)
#: What the words of a line are.
WORDS = st.sampled_from(["tokens", "whitespace", "characters"])
ORDINARY_TEXT = (
    """Das Haus, ist z.B. so-und-so groß (3,5 m) . "Ja!" sagt's & <geht> Peter's don't 50% U.S. – „Nein“ 1-2"""
)
ORDINARY = st.lists(st.sampled_from(ORDINARY_TEXT.split(" ")), max_size=12).map(" ".join)


def rewrite_quotes(text):
    """As NLTK does: quotes become others of two characters."""
    return re.sub(r'"(?=\w)', " `` ", re.sub(r'(?<=\w)"', " '' ", text)).replace(",", " , ").strip()


def moses(**options):
    named = {f"moses_{name}": value for name, value in options.items()}
    return stated_recipe("moses", "none", named)


def tokenizer_of(settings):
    vocabulary = Vocabulary(Dictionary(), "none", set())
    tokenizer = pipelines(settings, ("en", "en"), (vocabulary, vocabulary))[0]._tokenizer
    assert tokenizer is not None
    return tokenizer


TOKENIZERS = {
    "none": lambda: None,
    "moses": lambda: tokenizer_of(moses()),
    "space": lambda: tokenizer_of(stated_recipe("space", "none")),
    "rewrites quotes": lambda: Tokenizer(rewrite_quotes, str),
}


@pytest.fixture(scope="module")
def segmenters(sentencepiece_model, tmp_path_factory):
    """Each kind of subwords, and how it cuts the tokenizer's text by itself."""
    codes = tmp_path_factory.mktemp("codes") / "codes"
    codes.write_text("#version: 0.2\na u\nH au\na s</w>\nd as</w>\n")
    by_codes = BpeSegmenter(codes)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(sentencepiece_model))

    def whole_words(line):
        return " ".join(line.split())

    return {
        "codes": (by_codes, lambda text: by_codes._bpe.segment_tokens(re.findall(r"[^ \t\n\r\v\f]+", text))),
        "sentencepiece": (
            SentencePieceSegmenter(sentencepiece_model),
            lambda text: processor.Encode(text, out_type=str),
        ),
        "line": (LineSegmenter(whole_words, str, "words"), lambda text: whole_words(text).split()),
    }


def check_words(line):
    """The words are slices of the line, in order, without overlap."""
    assert line.words == tuple(line.text[start:end] for start, end in line.spans)
    end = 0
    for start, next_end in line.spans:
        assert end <= start < next_end <= len(line.text)
        end = next_end


def check_pieces(pipeline, line, lowercase):
    """Each piece belongs to a run of words that exists, in order; the runs are all of the words."""
    found = pipeline.segment(line)
    runs = [1] * len(line) if found.words_per_run is None else found.words_per_run.tolist()
    assert (len(found.words) == 0 and found.words_per_run is None) or sum(runs) == len(line) or not len(line)
    assert len(found.words) == len(found.tokens)
    assert all(0 <= run < len(runs) for run in found.words.tolist()) or not len(line)
    assert sorted(found.words.tolist()) == found.words.tolist()
    assert found.forms == tuple(word.lower() if lowercase else word for word in line.words)
    return found


@pytest.mark.parametrize("subwords", ["codes", "sentencepiece", "line"])
@pytest.mark.parametrize("name", TOKENIZERS)
@given(raw=LINES, lowercase=st.booleans(), words=WORDS)
def test_words_and_pieces_of_any_line(segmenters, name, subwords, raw, lowercase, words):
    tokenizer = TOKENIZERS[name]()
    splitter, alone = segmenters[subwords]
    pipeline = TextPipeline(splitter, tokenizer, tokenizer, lowercase, words)
    line = pipeline.read(raw)
    assert (line.text, line.given) == (raw, raw)
    check_words(line)
    found = check_pieces(pipeline, line, lowercase)
    text = raw if tokenizer is None else tokenizer._encode(raw)
    assert list(found.tokens) == alone(
        text.lower() if lowercase else text
    )  # tracing never changes what the model reads


@pytest.mark.parametrize("mark", ["none", "@@", "▁", "##"])
@given(raw=LINES, lowercase=st.booleans(), words=WORDS)
def test_text_that_is_in_pieces(mark, raw, lowercase, words):
    pipeline = TextPipeline(MarkedSubwords(mark), lowercase=lowercase, words=words)
    line = pipeline.read(raw)
    check_words(line)
    found = check_pieces(pipeline, line, lowercase)
    assert list(found.tokens) == re.findall(r"[^ \t\n\r\v\f]+", raw)


@given(raw=ORDINARY, escape=st.booleans(), dashes=st.booleans())
def test_the_words_of_ordinary_text_are_the_tokens_of_moses(raw, escape, dashes):
    tokenizer = tokenizer_of(moses(no_escape=not escape, no_dash_splits=not dashes))
    line = TextPipeline(MarkedSubwords("none"), tokenizer, tokenizer).read(raw)
    assert len(line) == len(tokenizer._encode(raw).split())
    assert "".join(line.words) == raw.replace(" ", "")


@pytest.mark.parametrize(
    ("raw", "tokenized", "words"),
    [
        ("so-und-so", "so @-@ und @-@ so", "so - und - so"),
        ("a @-@ b", "a @-@ b", "a @-@ b"),
        ("R&D", "R &amp; D", "R & D"),
        ("R&amp;D", "R &amp; amp ; D", "R & amp ; D"),
        ("R &amp; D", "R &amp; D", "R &amp; D"),
        ("&amp;", "&amp;", "&amp;"),
        ("a\x07b \x07 c", "ab c", "a\x07b c"),
        ('er "sagt" es', "er `` sagt '' es", 'er " sagt " es'),
        ("x  y", "x rewritten y", "x y"),
        ("x ½ y", "x one half y", "x ½ y"),  # the first of two takes the place
        ("a & ½ b", "a &amp; 1/2 b", "a & ½ b"),
        ("& & &amp;", "&amp; &amp; &amp;", "& & &"),  # a place for each token
        ("we  came,today", "we  came ,today", "we came ,today"),
        ("", "", ""),
    ],
)
def test_traced_tokens(raw, tokenized, words):
    traced = trace_tokens(raw, tokenized)
    assert traced.text == tokenized
    assert (traced.starts <= traced.ends).all()
    assert [raw[start:end] for start, end in traced.tokens()] == words.split(" ") * bool(words)


def test_lower_case_of_several_characters():
    lowered = TracedText.of("İa").lowercased()
    assert lowered.text == "İa".lower()
    assert lowered.span(0, 2) == (0, 1)
    assert lowered.span(2, 3) == (1, 2)
    assert TracedText.of("İΣ").lowercased().text == "İΣ".lower()  # the sigma at the end of a word is another one
    assert TracedText.of("").lowercased().span(0, 0) == (0, 0)
    # the first character of a replacement takes the whole place
    assert TracedText.of("ab cd").replaced([(0, 2, "xy")]).span(0, 1) == (0, 2)


# -- normalisation

MOSES = MosesTokenizer("en")
TYPOGRAPHIC = "„“”–—´‘‚’…«»，：？！（）；０９％～"
MARKS = st.sampled_from(
    ["e\u0301", "u\u0308", "\u0323", "\u0302", "각", "\u1100\u1161\u11a8", "\u00ad", "\ufe0f", "ﬃ", "—", "''"]
)
TYPED = st.lists(st.one_of(MARKS, st.sampled_from(["a", "B", " ", ".", "'"]), st.text(max_size=3)), max_size=12)


def normalising(how, tokenize=True):
    tokenizer = Tokenizer(
        (lambda line: MOSES.tokenize(line, return_str=True, escape=False)) if tokenize else None, str, how
    )
    return TextPipeline(LineSegmenter(str, str, "words"), tokenizer, tokenizer if tokenize else None)


def read(line, how="moses", tokenize=True):
    """The words in the raw line, and the tokens that the model reads."""
    reader = normalising(how, tokenize)
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


@given(TYPED.map("".join))
def test_nfc_is_that_of_unicode_and_spans_are_slices_in_order(line):
    printed = "".join(character for character in line if is_visible(character) or character.isspace())
    assert normalised(line, "nfc").text == unicodedata.normalize("NFC", printed)
    for how in ("nfc", "moses"):
        traced = normalised(line, how)
        spans = list(zip(traced.starts.tolist(), traced.ends.tolist()))
        assert len(spans) == len(traced.text)
        assert all(0 <= start <= end <= len(line) for start, end in spans)
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(spans))
        words = normalising(how).read(line)
        assert all(before[1] <= after[0] for before, after in zip(words.spans, words.spans[1:]))
        assert len(normalising(how).segment(words).words) == len(normalising(how).segment(words).tokens)


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
        assert len(normalising(how, tokenize).read(line)) == 0
