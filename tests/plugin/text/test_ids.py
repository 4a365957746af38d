"""Tokens and ids of one side, and when two models share them."""

from __future__ import annotations

import pytest
from fairseq.data import Dictionary
from tests.plugin.aligning.test_aligner import METHODS

from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.text.ids import SideEncoder
from fairseq_norm_plugin.text.pieces import MarkedPieces, WordPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline
from fairseq_norm_plugin.text.tokens import Frame


@pytest.fixture
def dictionary():
    found = Dictionary()
    for piece in ("a@@", "b", "__de__"):
        found.add_symbol(piece)
    return found


def encoder(dictionary, mark="@@", before=(), after=("</s>",)):
    frame = Frame(tuple(map(dictionary.index, before)), tuple(map(dictionary.index, after)))
    return SideEncoder(TextPipeline(MarkedPieces(mark)), dictionary, frame, {dictionary.index("__de__")})


def test_special_tokens_are_around_the_words_and_no_word_is_one(dictionary):
    one = encoder(dictionary, before=("__de__",))
    found = one.encoded(one.side(["a@@", "b", "zz", "</s>", "__de__"]))
    assert found.side.tokens == ("__de__", "a@@", "b", "zz", "</s>", "__de__", "</s>")
    assert found.side.words.tolist() == [-1, 0, 0, 1, 2, 3, -1]
    names = ("__de__", "a@@", "b", "<unk>", "<unk>", "<unk>", "</s>")
    assert found.ids.tolist() == [dictionary.index(name) for name in names]
    assert found.unknown == 3
    one.forget()
    assert one.encoded(found.side).ids.tolist() == found.ids.tolist()


def test_the_same_pieces_need_the_same_subwords_and_the_same_special_tokens(dictionary):
    one = encoder(dictionary)
    assert one.cuts_as(encoder(dictionary))
    assert not one.cuts_as(encoder(dictionary, mark="none"))
    assert not one.cuts_as(encoder(dictionary, before=("__de__",)))


def test_the_same_codes_are_read_once(tmp_path):
    for name, codes in (
        ("one", "#version: 0.2\nb a</w>\n"),
        ("same", "#version: 0.2\nb a</w>\n"),
        ("other", "b a</w>\n"),
    ):
        (tmp_path / name).write_text(codes)
    one, same, other = (WordPieces.shared(tmp_path / name) for name in ("one", "same", "other"))
    assert one is same
    assert other is not one
    assert WordPieces.shared(tmp_path / "one", separator="_") is not one


def test_two_models_cut_a_text_once_if_they_cut_it_alike(make_direction, monkeypatch):
    """Else each cuts it by itself; the links are the same, which test_aligner.py checks."""
    cut = []
    segment = TextPipeline.segment
    monkeypatch.setattr(TextPipeline, "segment", lambda self, words: cut.append(words) or segment(self, words))
    pair = (["w1"], ["w2", "w4"])
    for mark, times in (("@@", 2), ("none", 4)):
        cut.clear()
        directions = [make_direction(1), make_direction(2, mark=mark)]
        ((aligned),) = Aligner(METHODS["joined"], directions).align([[(0, pair)]])
        assert aligned.links is not None
        assert len(cut) == times
