"""Tokens and ids of one side."""

from __future__ import annotations

from fairseq.data import Dictionary

from fairseq_norm_plugin.text.ids import SideEncoder
from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline
from fairseq_norm_plugin.text.tokens import Frame


def test_special_tokens_are_around_the_words_and_no_word_is_one():
    dictionary = Dictionary()
    for piece in ("a@@", "b", "__de__"):
        dictionary.add_symbol(piece)
    tag = dictionary.index("__de__")
    encode = SideEncoder(TextPipeline(MarkedPieces("@@")), dictionary, Frame((tag,), (dictionary.eos(),)), {tag})
    found = encode(["a@@", "b", "zz", "</s>", "__de__"])
    assert found.side.tokens == ("__de__", "a@@", "b", "zz", "</s>", "__de__", "</s>")
    assert found.side.words.tolist() == [-1, 0, 0, 1, 2, 3, -1]
    names = ("__de__", "a@@", "b", "<unk>", "<unk>", "<unk>", "</s>")
    assert found.ids.tolist() == [dictionary.index(name) for name in names]
    assert found.unknown == 3
