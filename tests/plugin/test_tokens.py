from __future__ import annotations

import pytest
import torch
from fairseq.data import AppendTokenDataset, ConcatDataset, Dictionary, LanguagePairDataset, PrependTokenDataset
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from alignment_eval.errors import InputError
from fairseq_norm_plugin.tokens import Vocabulary, dictionary_mark, special_ids, surface


def dictionary_of(*symbols):
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


def side(ids, dictionary, mark, surface=None, specials=None):
    return Vocabulary(dictionary, mark, specials or special_ids(dictionary)).side(ids, surface)


def test_tokens_and_words_of_ids():
    dictionary = dictionary_of("ab@@", "c", "d")
    ids = torch.tensor([dictionary.index(t) for t in ("ab@@", "c", "d")] + [dictionary.eos()])
    result = side(ids, dictionary, "@@")
    assert result.tokens == ("ab@@", "c", "d", "</s>")
    assert result.words.tolist() == [0, 0, 1, -1]


def test_an_unknown_piece_keeps_its_mark_where_the_surface_is_known():
    dictionary = dictionary_of("c")
    ids = torch.tensor([dictionary.unk(), dictionary.index("c"), dictionary.eos()])
    assert side(ids, dictionary, "@@").words.tolist() == [0, 1, -1]
    known = side(ids, dictionary, "@@", surface=["x@@", "c"])
    assert known.tokens == ("x@@", "c", "</s>")
    assert known.words.tolist() == [0, 0, -1]


def test_a_surface_of_another_length_is_left_aside():
    # a truncated source, say: the tokens are the model's
    dictionary = dictionary_of("c")
    ids = torch.tensor([dictionary.index("c"), dictionary.eos()])
    assert side(ids, dictionary, "@@", surface=["c", "c", "c"]).tokens == ("c", "</s>")


@pytest.mark.parametrize(
    ("symbols", "mark"),
    [(["ab@@", "c"], "@@"), (["▁ab", "c"], "▁"), (["ab", "##c"], "##"), (["ab", "c"], "none")],
)
def test_marks_are_told_from_the_dictionary(symbols, mark):
    assert dictionary_mark(dictionary_of(*symbols), "auto") == mark
    assert dictionary_mark(dictionary_of(*symbols), "none") == "none"


def test_a_mixed_dictionary_needs_a_stated_mark():
    with pytest.raises(InputError, match=r"several subword marks \(@@ on 1, ▁ on 1\).*state"):
        dictionary_mark(dictionary_of("ab@@", "▁c"), "auto")


def test_tags_that_the_dictionary_has_are_special():
    dictionary = dictionary_of("ab@@", "c", "[de]", "[fr]")
    specials = special_ids(dictionary, ["[de]", "[fr]", "[xx]"])
    assert specials == {0, 1, 2, dictionary.index("[de]"), dictionary.index("[fr]")}
    assert dictionary.unk() not in specials
    ids = torch.tensor([dictionary.index(token) for token in ("[de]", "ab@@", "c", "</s>", "[fr]")])
    assert side(ids, dictionary, "@@", specials=specials).words.tolist() == [-1, 0, 0, -1, -1]
    assert side(ids, dictionary, "@@").words.tolist() == [0, 1, 1, -1, 2]


def test_the_surface_is_found_behind_tags_and_in_the_only_part_of_a_data_set(tmp_path):
    dictionary = dictionary_of("c")
    (tmp_path / "text").write_text("x@@ c\nc\n", encoding="utf-8")
    text = IndexedRawTextDataset(str(tmp_path / "text"), dictionary)
    tagged = AppendTokenDataset(PrependTokenDataset(text, 3), 3)
    pairs = LanguagePairDataset(tagged, tagged.sizes, dictionary, text, text.sizes, dictionary)
    for dataset in (pairs, ConcatDataset([pairs])):
        assert surface(dataset, "src", 0) == surface(dataset, "tgt", 0) == ["x@@", "c"]
    assert surface(LanguagePairDataset(tagged, tagged.sizes, dictionary), "tgt", 0) is None
