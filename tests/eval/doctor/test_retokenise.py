from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.doctor.retokenise import joined, subword_mark, token_words, words_of_tokens
from alignment_eval.errors import InputError
from alignment_eval.links.table import LinkTable
from alignment_eval.maps.subwords import word_indices


def spans(tokens: str, words: str, mark: str = "none") -> list[tuple[int, int]]:
    found = token_words([tokens.split()], [words.split()], mark)
    assert found.starts.tolist() == [0, len(tokens.split())]
    return list(zip(found.first.tolist(), found.last.tolist()))


@pytest.mark.parametrize(
    ("tokens", "words", "mark", "expected"),
    [
        ("a@@ b c", "ab c", "@@", [(0, 0), (0, 0), (1, 1)]),
        ("▁a b ▁c", "ab c", "▁", [(0, 0), (0, 0), (1, 1)]),
        ("▁ a ▁ b", "a b", "▁", [(0, 0), (0, 0), (1, 1), (1, 1)]),
        ("a ##b c", "ab c", "##", [(0, 0), (0, 0), (1, 1)]),
        ("A B", "a b", "none", [(0, 0), (1, 1)]),
        ("do n't .", "don't .", "none", [(0, 0), (0, 0), (1, 1)]),
        ("don't.", "do n't .", "none", [(0, 2)]),
        ("ab cd", "a bc d", "none", [(0, 1), (1, 2)]),
        ("&apos;s x @-@ y", "'s x-y", "none", [(0, 0), (1, 1), (1, 1), (1, 1)]),
        ("a b", "a c", "none", [(-1, -1), (-1, -1)]),
        ("a", "", "none", [(-1, -1)]),
        ("", "a", "none", []),
    ],
)
def test_words_of_each_token(tokens: str, words: str, mark: str, expected: list[tuple[int, int]]) -> None:
    assert spans(tokens, words, mark) == expected


texts = st.lists(st.lists(st.text("abc", min_size=1, max_size=4), max_size=5), min_size=1, max_size=4)


@given(texts, st.randoms(use_true_random=False))
def test_pieces_belong_to_the_word_that_they_were_cut_from(words: list[list[str]], rng: object) -> None:
    choose = rng.choice  # type: ignore[attr-defined]
    pieces = [
        [piece for word in line for piece in ("@@ ".join(word) if choose([True, False]) else word).split()]
        for line in words
    ]
    found = token_words(pieces, words, "@@")
    expected = [number for line in pieces for number in word_indices(line, "@@").tolist()]
    assert found.first.tolist() == found.last.tolist() == expected
    assert joined(pieces, "@@") == words
    assert found.identity == (pieces == words)


@given(texts, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_links_of_words(words: list[list[str]], links: list[tuple[int, int, int]]) -> None:
    """Against one link after the other; the target text is cut into letters, the source is in words of its own."""
    letters = [list("".join(line)) for line in words]
    source, target = token_words(words, words, "none"), token_words(letters, words, "none")
    columns = np.array(links, dtype=np.int64).reshape(-1, 3).T
    found = words_of_tokens(LinkTable.build(*columns, 5), source, target)
    expected = set()
    for n, i, j in links:
        if n < len(words) and i < len(words[n]) and j < len(letters[n]):
            word = [k for k, word in enumerate(words[n]) for _ in word][j]
            expected.add((n, i, word))
    assert set(zip(found.sentence.tolist(), found.source.tolist(), found.target.tolist())) == expected


def test_a_token_of_several_words_links_them_all() -> None:
    wide = token_words([["abc"]], [["a", "b", "c"]], "none")
    link = LinkTable.of([[(1, 1)]])
    assert words_of_tokens(link, wide, wide, base=1).to_sentences() == [
        frozenset((i, j) for i in (1, 2, 3) for j in (1, 2, 3))
    ]


def test_mark_of_a_text() -> None:
    assert subword_mark([["a@@", "b"], ["c"]], "text") == "@@"
    assert subword_mark([["a", "b"]], "text") == "none"
    with pytest.raises(InputError, match=r"^text: the vocabulary of 2 entries carries several subword marks"):
        subword_mark([["a@@", "▁b"]], "text")
