from __future__ import annotations

import pytest
import torch
from fairseq.data import Dictionary

from alignment_eval.errors import InputError
from fairseq_norm_plugin.sides import dictionary_mark, side


def dictionary_of(*symbols):
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    return dictionary


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
