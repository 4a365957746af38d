from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.commands.convert import mapped_links, word_subwords
from alignment_eval.errors import InputError
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import (
    DEFAULT_KINDS,
    MARKS,
    detect_mark,
    status_of,
    with_marks,
    word_indices,
    word_strings,
)
from tests.facts import facts


@pytest.mark.parametrize(
    ("mark", "tokens", "words"),
    [
        ("@@", "cut@@", [0]),  # a piece cut off at the end of the sentence
        ("@@", "a @-@ b", [0, 1, 2]),  # a hyphen of Moses, no mark
        ("▁", "▁ un der ▁ ▁way", [0, 0, 0, 1, 2]),  # a lone mark begins a word that "un" continues
        ("##", "##der now", [0, 1]),  # nothing before it to continue
        ("none", "un@@ ▁der ##way", [0, 1, 2]),
        # special tokens belong to no word
        ("@@", "a@@ <x> b </s>", [0, -1, 1, -1]),  # a special token ends the word
        ("##", "a <x> ##b </s>", [0, -1, 1, -1]),
    ],
)
def test_word_indices(mark, tokens, words):
    result = word_indices(tokens.split(), mark, [token.startswith("<") for token in tokens.split()])
    assert result.dtype == np.int32
    assert result.tolist() == words


def test_unknown_mark():
    with pytest.raises(InputError, match=facts("'@' … one of @@, ▁, ##, ￭, </w>, none")):
        word_indices(["a"], "@")


def split_word(word, mark, cuts):
    """Cut ``word`` after each character whose cut is true, and mark the pieces."""
    pieces = [""]
    for character, cut in zip(word, [*cuts, False]):
        pieces[-1] += character
        if cut:
            pieces.append("")
    pieces = [piece for piece in pieces if piece]
    if mark == "@@":
        return [piece + "@@" for piece in pieces[:-1]] + pieces[-1:]
    if mark == "▁":
        return ["▁" + pieces[0], *pieces[1:]]
    if mark == "</w>":
        return [*pieces[:-1], pieces[-1] + "</w>"]
    if mark == "￭":  # joiners of both forms
        return [pieces[0] + "￭" * (len(pieces) > 1), *pieces[1:2], *("￭" + piece for piece in pieces[2:])]
    return pieces[:1] + ["##" + piece for piece in pieces[1:]]


WORD = st.text("abc.", min_size=1, max_size=5)


@given(
    st.lists(st.tuples(WORD, st.lists(st.booleans(), min_size=4, max_size=4)), max_size=6),
    st.sampled_from([*MARKS][:-1]),
)
def test_splitting_is_undone(cut_words, mark):
    split = [split_word(word, mark, cuts) for word, cuts in cut_words]
    tokens = [piece for pieces in split for piece in pieces]
    words = word_indices(tokens, mark)
    assert words.tolist() == [i for i, pieces in enumerate(split) for _ in pieces]
    assert word_strings(tokens, words) == [word for word, _ in cut_words]


@pytest.mark.parametrize(
    ("tokens", "words", "strings"),
    [
        ("▁ . </s>", [0, 0, -1], ["."]),  # a lone mark and its piece
        ("## @@ </s>", [0, 1, -1], ["##", "@@"]),  # words that look like marks stay what they are
    ],
)
def test_word_strings(tokens, words, strings):
    assert word_strings(tokens.split(), words) == strings


@pytest.mark.parametrize(
    ("vocabulary", "mark"),
    [
        (["th@@", "e", "a", "##"], "@@"),
        (["the", "@@", "##", "▁"], "none"),  # the bare marks may be words
        (["##1", *(f"w{i}" for i in range(29)), *(f"p{i}@@" for i in range(20))], "@@"),  # a stray one of 50
        (["th@@", *(f"w{i}" for i in range(19))], "@@"),  # one of 20 is a scheme with few subwords
        (["￭.", *(f"w{i}" for i in range(99))], "￭"),  # a joiner is a mark wherever it stands
        (["un", "der</w>", "a</w>"], "</w>"),
        (["Ġorġ", *(f"w{i}" for i in range(99))], "none"),  # a letter of Maltese
    ],
)
def test_detect_mark(vocabulary, mark):
    assert detect_mark(vocabulary) == mark


@pytest.mark.parametrize("vocabulary", [["ĠDas", "ĠHaus", "boot"], ["Das▁", "Haus", "boot▁"]])
def test_marks_that_are_not_read_are_named(vocabulary):
    with pytest.raises(InputError, match=facts(f"2 of 3 … {vocabulary[0].strip('Das')} at the … one of @@, ▁")):
        detect_mark(vocabulary)


@pytest.mark.parametrize(
    ("mark", "marked"),
    [("@@", "<unk>@@"), ("▁", "▁<unk>"), ("##", "##<unk>"), ("none", "<unk>"), ("￭", "￭<unk>￭"), ("</w>", "<unk></w>")],
)
def test_unknown_tokens_with_the_mark_that_they_may_have_lost(mark, marked):
    assert with_marks(["<unk>", "<unk>", "b"], [False, True, False], mark) == ["<unk>", marked, "b"]


COUNTS = st.lists(st.integers(1, 3), max_size=4)


@given(COUNTS, COUNTS, st.data())
def test_each_subword_has_the_links_of_its_word(source, target, data):
    cells = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = data.draw(st.frozensets(st.sampled_from(cells))) if cells else frozenset()
    texts = [" ".join("w@@ " * (count - 1) + "w" for count in counts) for counts in (source, target)]
    sides = [word_subwords(text.split(), "@@") for text in texts]
    made = mapped_links(GoldSentence(links, confidence=dict.fromkeys(links, 0.25)), *sides)
    expected = frozenset((a, b) for i, j in links for a in sides[0][i] for b in sides[1][j])
    assert made == GoldSentence(expected)
    assert made.confidence == dict.fromkeys(expected, 0.25)
    assert [list(map(len, side)) for side in sides] == [source, target]


def test_kinds_are_derived_as_the_slow_loop(make_sentence):
    s = make_sentence(3)
    assert s.kinds == (*DEFAULT_KINDS, "attnres_w", "attnres_n")
    assert s.heads == 3
    weights, norms = s.arrays["head_attn_w"], s.arrays["transformed_norm"]
    expected = np.empty_like(weights)
    for layer, head, row, column in np.ndindex(weights.shape):
        expected[layer, head, row, column] = weights[layer, head, row, column] * norms[layer, head, column]
    np.testing.assert_array_equal(s.head_maps("attn_w"), weights)
    np.testing.assert_array_equal(s.head_maps("attn_n"), expected)
    np.testing.assert_array_equal(s.layer_maps("attn_n"), s.arrays["layer_attn_n"])
    mean = s.layer_maps("attn_w")
    assert mean.dtype == np.float64
    np.testing.assert_allclose(mean, weights.astype(np.float64).sum(axis=1) / 3, rtol=1e-15)
    np.testing.assert_array_equal(s.layer_maps("attnres_w"), mean / 2)


def test_recorded_head_norms_win_over_the_product(make_sentence):
    s = make_sentence()
    own = np.full_like(s.arrays["head_attn_w"], 7)
    s = replace(s, arrays={"head_attn_n": own, "layer_attn_n": s.arrays["layer_attn_n"]})
    assert s.kinds == ("attn_n", "attnres_n")
    np.testing.assert_array_equal(s.head_maps("attn_n"), own)
    assert replace(s, arrays={"head_attn_n": own}).kinds == ()


def test_errors(make_sentence):
    with pytest.raises(InputError, match=facts("unknown map kind 'attn_x' … one of attn_w, attn_n")):
        make_sentence().head_maps("attn_x")
    stub = make_sentence(4, status="skipped: too long")
    with pytest.raises(InputError, match=r"sentence 4 has no maps: skipped: too long"):
        stub.layer_maps("attn_w")
    weights = {"head_attn_w": make_sentence().arrays["head_attn_w"]}
    only_weights = replace(make_sentence(), arrays=weights)
    assert only_weights.kinds == ("attn_w", "attnres_w")
    for read in (only_weights.head_maps, only_weights.layer_maps):
        with pytest.raises(InputError, match=facts("'attn_n' … attn_w, attnres_w … --norm-record-kinds attn_n")):
            read("attn_n")
    with pytest.raises(InputError, match=r"they have none"):
        replace(make_sentence(), arrays={}).head_maps("attn_w")


def test_uncertain_words(make_sentence):
    s = replace(make_sentence(), status=status_of(False, True))
    assert not s.ok
    assert s.head_maps("attn_w").shape == (2, 3, 5, 5)
    assert s.confirmed().status == "ok"
    tokens = s.by_tokens()
    assert (tokens.ok, tokens.source.words.tolist()) == (True, [0, 1, 2, 3, -1])
    assert status_of(True, True) == "ok"
