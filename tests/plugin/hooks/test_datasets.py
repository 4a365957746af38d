"""fairseq's data sets: the words of ids by their text, which must be certain where there is gold."""

import pytest
import torch
from fairseq.data import AppendTokenDataset, ConcatDataset, LanguagePairDataset, PrependTokenDataset
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from alignment_eval.errors import InputError
from fairseq_norm_plugin.hooks.datasets import BinarisedText, spell_with, surface, with_gold
from tests.facts import facts, says
from tests.plugin.dictionaries import dictionary_of, vocabulary_of


def spell(tokens, text, mark="@@", cut=False):
    """What the ids of ``tokens`` spell: (tokens, words of the ordinary ones, number of unknown tokens, certain)."""
    known = vocabulary_of("a", "b", "c@@", "▁a", "[de]", mark=mark, tags=["[de]"])
    ids = torch.tensor([known.dictionary.index(token) for token in f"{tokens} </s>".split()])
    found = spell_with(known, ids, text.split(), cut)
    assert found.side.words[-1] == -1
    return " ".join(found.side.tokens[:-1]), found.side.words[:-1].tolist(), found.unknown, found.certain


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
        # tags may be in the text or not
        *(("@@", "[de] c@@ ?", text, ("[de] c@@ x", [-1, 0, 0], 1, True)) for text in ("[de] c@@ x", "c@@ x")),
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
        given = BinarisedText(pairs, 1, (vocabulary,) * 2, (text and tmp_path / "t", None))
        found = given.spell(0, 0, torch.tensor([dictionary.index(token) for token in ("?", "a", "b", "</s>")]))
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


# -- gold


class Pairs(list):
    def __init__(self, dictionary, *texts):
        sides = [
            [torch.tensor([dictionary.index(t) for t in f"{line} </s>".split()]) for line in text] for text in texts
        ]
        super().__init__(zip(*sides))
        self.src, self.tgt = sides


@pytest.fixture
def join(tmp_path):
    """Join texts, as lines, and gold; ``texts`` are what was binarised."""
    known = vocabulary_of("a@@", "b")

    def run(source, target, gold, texts=(None, None)):
        (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold))
        pairs = Pairs(known.dictionary, source, target)
        paths = []
        for number, text in enumerate(texts):
            paths.append(None if text is None else tmp_path / f"text{number}")
            if text is not None:
                paths[-1].write_text("".join(f"{line}\n" for line in text))
        text = BinarisedText(pairs, len(pairs), (known, known), paths)
        return with_gold(pairs, "test", tmp_path / "gold", "0", text)

    return run


def test_a_gold_of_possible_links_only(join):
    assert join(["b b"], ["b b"], ["0p1"]).pairs[0].gold.possible.tolist() == [[False, True], [False, False]]


def test_a_sentence_of_uncertain_words_counts_as_one_without_links(join, caplog):
    first, second = join(["? b b", "b"], ["b b", "b"], ["0-0 1-1 7-7", "0-0"]).pairs
    assert (first.gold, len(first.links.sure), first.sentence.status) == (None, 3, "unknown source subwords")
    assert second.sentence.ok
    assert "1 of 6 source subwords (16.7 %)" in caplog.text
    assert says(caplog.text, "1 of 2 sentences (50.0 %)")
    assert "(--norm-source-text)" in caplog.text


def test_messages_name_the_options_of_training(join):
    with pytest.raises(InputError) as error:
        join(["b b"] * 40, ["b b"] * 40, ["1-1"] * 40)
    assert says(str(error.value), "give --aer-gold-base 1")
    assert "unused-zero" not in str(error.value)


@pytest.mark.parametrize(
    ("gold", "said"),
    [
        (["", ""], "gold of subset test has no links"),
        (["0-0"], "1 sentences, but subset test has 2"),
        (["0-0", "1-1 5-0"], "gold, subset test: sentence 1 (line 2): link 5-0 … outside"),
    ],
)
def test_wrong_gold_is_told(join, gold, said):
    with pytest.raises(InputError, match=facts(said)):
        join(["b b"] * 2, ["b b"] * 2, gold)


def test_numbers_tell_golds_and_texts_apart(join):
    """The curves of two runs are of one only where they are equal."""
    first = join(["b b"], ["b b"], ["0-0"]).numbers
    assert first == join(["b b"], ["b b"], ["0-0"]).numbers
    for other, name in ((join(["b b"], ["b b"], ["1-1"]), "aer_gold"), (join(["b"], ["b b"], ["0-0"]), "aer_texts")):
        assert [key for key, value in other.numbers.items() if value != first[key]] == [name]
    assert all(0 <= value < 10**6 for value in first.values())  # fairseq logs six digits
