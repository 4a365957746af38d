"""Token ids: the words that they spell by themselves; tags."""

import itertools

import pytest
import torch

from alignment_eval.errors import UsageError
from alignment_eval.maps.sentence import word_indices
from fairseq_norm_plugin.text.tokens import UnknownTokens, Vocabulary, source_tag, special_ids
from tests.facts import facts
from tests.plugin.dictionaries import dictionary_of, vocabulary_of


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
            vocabulary = vocabulary_of(*known[:2], mark=mark)
            found = vocabulary.spell(torch.tensor([vocabulary.dictionary.index(token) for token in (*tokens, "</s>")]))
            assert found.certain == (len(words) == 1)
            assert tuple(found.side.words[:-1].tolist()) in words


def test_more_than_five_percent_of_unknown_tokens_are_told():
    counts = UnknownTokens()
    counts.add("source", 100, 5)
    assert counts.warning() is None
    counts.add("source", 0, 1)
    assert "6 of 100 source subwords (6.0 %)" in counts.warning()
    other = UnknownTokens()
    other.add("source", 100, 8)
    counts.update(other)
    assert "14 of 200 source subwords (7.0 %)" in counts.warning()
    assert "--lowercase" in counts.warning()


def test_tags_that_the_dictionary_has_are_special():
    dictionary = dictionary_of("ab@@", "c", "[de]", "[fr]")
    specials = special_ids(dictionary, ["[de]", "[fr]", "[xx]"])
    assert specials == {0, 1, 2, dictionary.index("[de]"), dictionary.index("[fr]")}
    assert dictionary.unk() not in specials
    ids = torch.tensor([dictionary.index(token) for token in ("[de]", "ab@@", "?", "</s>", "[fr]")])
    assert Vocabulary(dictionary, "@@", specials).spell(ids).side.words.tolist() == [-1, 0, 0, -1, -1]
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
