"""Token ids: the words that they spell, with the text behind a data set or without it; tags."""

import itertools

import pytest
import torch
from fairseq.data import AppendTokenDataset, ConcatDataset, LanguagePairDataset, PrependTokenDataset
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from alignment_eval.errors import InputError, UsageError
from alignment_eval.maps.sentence import word_indices
from fairseq_norm_plugin.text.tokens import (
    UnknownTokens,
    Vocabulary,
    side_readers,
    source_tag,
    special_ids,
    surface,
)
from tests.facts import facts
from tests.plugin.dictionaries import dictionary_of, vocabulary_of


def spell(tokens, text=None, mark="@@", cut=False, symbols=("a", "b", "c@@", "▁a")):
    """What the ids of ``tokens`` spell: (tokens, words of the ordinary ones, number of unknown tokens, certain)."""
    known = vocabulary_of(*symbols, mark=mark)
    ids = torch.tensor([known.dictionary.index(token) for token in f"{tokens} </s>".split()])
    found = known.spell(ids, None if text is None else text.split(), cut)
    assert found.side.words[-1] == -1
    return " ".join(found.side.tokens[:-1]), found.side.words[:-1].tolist(), found.unknown, found.certain


def test_words_are_certain_exactly_if_every_text_behind_them_has_the_same():
    """Against all texts that the tokens may have been."""
    forms = {"@@": ("x", "x@@"), "▁": ("x", "▁x"), "##": ("x", "##x")}
    symbols = {"@@": ("a@@", "b", "?"), "▁": ("▁a", "b", "?"), "##": ("a", "##b", "?")}
    for mark, known in symbols.items():
        for tokens in itertools.chain.from_iterable(itertools.product(known, repeat=n) for n in range(1, 5)):
            choices = [forms[mark] if token == "?" else (token,) for token in tokens]
            words = {tuple(word_indices(text, mark)) for text in itertools.product(*choices)}
            if mark == "@@":  # the last token of a text is never joined to a next one
                words = {tuple(word_indices(t, mark)) for t in itertools.product(*choices) if not t[-1].endswith("x@@")}
            found = spell(" ".join(tokens), mark=mark, symbols=known[:2])
            assert found[3] == (len(words) == 1)
            assert tuple(found[1]) in words


@pytest.mark.parametrize(
    ("mark", "tokens", "text", "spelled"),
    [
        # the tokens that were binarised say which words they are
        ("@@", "? a b", "x@@ a b", ("x@@ a b", [0, 0, 1], 1, True)),
        ("@@", "? a b", "x a b", ("x a b", [0, 1, 2], 1, True)),
        ("▁", "▁a ? b", "▁a ▁x b", ("▁a ▁x b", [0, 1, 1], 1, True)),
        ("##", "a ? b", "a ##x b", ("a ##x b", [0, 0, 1], 1, True)),
        # words say it by their number
        ("@@", "? a b", "xa b", ("<unk>@@ a b", [0, 0, 1], 1, True)),
        ("@@", "? ? a c@@ b", "x xa cb", ("<unk> <unk> a c@@ b", [0, 1, 2, 3, 3], 2, False)),  # one, but which?
        ("@@", "c@@ b a", "cb A", ("c@@ b a", [0, 0, 1], 0, True)),
        ("@@", "c@@ ?", "cx", ("c@@ <unk>", [0, 0], 1, True)),  # a last piece has no marker
        ("▁", "▁a ? b", "a xb", ("▁a ▁<unk> b", [0, 1, 1], 1, True)),
        ("▁", "▁a ? b", "axb", ("▁a <unk> b", [0, 0, 0], 1, True)),
        # "x y" may be two words, or the pieces of one where SentencePiece has no dummy prefix
        ("▁", "? ?", "x y", ("<unk> <unk>", [0, 0], 2, False)),
        ("▁", "?", "x", ("x", [0], 1, True)),
        ("▁", "? ?", "▁x ▁y", ("▁x ▁y", [0, 1], 2, True)),
    ],
)
def test_the_text_says_what_unknown_tokens_were(mark, tokens, text, spelled):
    assert spell(tokens, text, mark) == spelled


@pytest.mark.parametrize(
    ("tokens", "text", "words"),
    [
        *(("c@@ b a", text, 2) for text in ("c b a a", "a", "c@@ b b a", "c@@ b@@ a", "")),
        ("c@@ ? b b", "c@@ a b b", 3),  # a form that the dictionary has is no unknown token
    ],
)
def test_another_text_is_refused(tokens, text, words):
    with pytest.raises(
        InputError, match=facts(f"words, but the binarised sentence has {words} … in {words + 1} tokens")
    ):
        spell(tokens, text)


@pytest.mark.parametrize("text", ["c@@ x@@ b a a b", "c@@ x@@ b a"])
def test_the_tokens_of_a_cut_sentence_are_the_first_of_its_text(text):
    assert spell("c@@ ? b a", text, cut=True) == ("c@@ x@@ b a", [0, 0, 0, 1], 1, True)
    assert spell("c@@ ? b a", "cxb a a b b b", cut=True)[3] is False
    assert spell("c@@ b a", "cb a a b b b", cut=True) == ("c@@ b a", [0, 0, 1], 0, True)
    with pytest.raises(InputError, match="1 words, but the binarised sentence has 2"):
        spell("c@@ b a", "cb", cut=True)


def test_more_than_five_percent_of_unknown_tokens_are_told():
    counts = UnknownTokens()
    counts.add("source", 100, 5)
    assert counts.warning() is None
    counts.add("source", 0, 1)
    assert "6 of 100 source subwords (6.0 %)" in counts.warning()


def test_tags_that_the_dictionary_has_are_special():
    dictionary = dictionary_of("ab@@", "c", "[de]", "[fr]")
    specials = special_ids(dictionary, ["[de]", "[fr]", "[xx]"])
    assert specials == {0, 1, 2, dictionary.index("[de]"), dictionary.index("[fr]")}
    assert dictionary.unk() not in specials
    tagged = Vocabulary(dictionary, "@@", specials)
    ids = torch.tensor([dictionary.index(token) for token in ("[de]", "ab@@", "?", "</s>", "[fr]")])
    assert tagged.spell(ids).side.words.tolist() == [-1, 0, 0, -1, -1]
    for text in ("[de] ab@@ x", "ab@@ x"):
        found = tagged.spell(ids, text.split())
        assert (found.side.tokens, found.certain) == (("[de]", "ab@@", "x", "</s>", "[fr]"), True)
    assert Vocabulary(dictionary, "@@", special_ids(dictionary)).spell(ids).side.words.tolist() == [0, 1, 1, -1, 2]


@pytest.mark.parametrize(
    ("tokens", "stated", "language", "tag"),
    [
        (["fra", ">>fra<<", ">>spa<<"], "fra", "mul", ">>fra<<"),
        ([">>fra<<", ">>spa<<"], ">>spa<<", "fra", ">>spa<<"),
        ([">>fra<<", ">>spa<<"], None, "fra", ">>fra<<"),
        ([">>fra<<", ">>spa<<"], "none", "fra", None),
        ([">>fra<<"], None, "fr", None),
        (["<2de>", "de"], "<2de>", "en", "<2de>"),
        (["de", "<2de>"], None, "de", None),
        ([], "none", "de", None),
    ],
)
def test_tags_that_are_stated_or_of_the_language(tokens, stated, language, tag):
    assert source_tag(dictionary_of(*tokens), stated, language) == tag


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        (None, "several languages … 'en' … --model-option target_tag=TAG (2 known: >>fra<< >>spa<<)"),
        ("deu", "target_tag='deu': … no such tag (2 known: >>fra<< >>spa<<)"),
    ],
)
def test_tags_that_a_model_lacks(stated, message):
    with pytest.raises(UsageError, match=facts(message)):
        source_tag(dictionary_of(">>fra<<", ">>spa<<"), stated, "en")


@pytest.fixture
def read(tmp_path):
    """What a reader of the sentence "? a b" makes of it; the data set has the tokens ``known``, a file the ``text``."""
    vocabulary = vocabulary_of("a", "b")
    dictionary = vocabulary.dictionary

    def make(known, text=None):
        (tmp_path / "raw").write_text(f"{known}\n", encoding="utf-8")
        raw = IndexedRawTextDataset(str(tmp_path / "raw"), dictionary)
        pairs = LanguagePairDataset(raw, raw.sizes, dictionary, raw, raw.sizes, dictionary)
        if text is not None:
            (tmp_path / "t").write_text(text)
        reader, _ = side_readers(pairs, 1, (vocabulary,) * 2, (text and tmp_path / "t", None), cut=False)
        found = reader.spell(0, torch.tensor([dictionary.index(token) for token in ("?", "a", "b", "</s>")]))
        return " ".join(found.side.tokens[:-1]), found.side.words.tolist(), found.certain

    return make


def test_a_text_goes_before_what_the_data_set_knows(read):
    """Also of a sentence that --truncate-source has cut."""
    assert read("x@@ a b a a", "y a b\n") == ("y a b", [0, 1, 2, -1], True)
    assert read("x@@ a b a a") == ("x@@ a b", [0, 0, 1, -1], True)
    # a data set that changed its sentences knows no words
    assert read("b a b b") == ("<unk> a b", [0, 1, 2, -1], False)
    with pytest.raises(InputError, match=facts("t:1: the line has 1 words, but")):
        read("x@@ a b", "y\n")
    with pytest.raises(InputError, match=facts("t: the text has 2 lines, but the binarised data has 1 sentences")):
        read("x@@ a b", "y a b\n\n")


def test_the_surface_is_found_behind_tags_and_in_the_only_part_of_a_data_set(tmp_path):
    dictionary = dictionary_of("c")
    (tmp_path / "text").write_text("x@@ c\nc\n", encoding="utf-8")
    text = IndexedRawTextDataset(str(tmp_path / "text"), dictionary)
    tagged = AppendTokenDataset(PrependTokenDataset(text, 3), 3)
    pairs = LanguagePairDataset(tagged, tagged.sizes, dictionary, text, text.sizes, dictionary)
    for dataset in (pairs, ConcatDataset([pairs])):
        assert surface(dataset, "src", 0) == surface(dataset, "tgt", 0) == ["x@@", "c"]
    assert surface(LanguagePairDataset(tagged, tagged.sizes, dictionary), "tgt", 0) is None
