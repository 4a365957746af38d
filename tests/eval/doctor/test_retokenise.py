from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.doctor.retokenise import token_words, words_of_tokens
from alignment_eval.links.table import LinkTable
from alignment_eval.maps.subwords import word_indices


@pytest.mark.parametrize(
    ("tokens", "words", "expected"),
    [
        ("a@@ b c", "ab c", [(0, 0), (0, 0), (1, 1)]),
        ("▁a b ▁c", "ab c", [(0, 0), (0, 0), (1, 1)]),
        ("▁ a ▁ b", "a b", [(0, 0), (0, 0), (1, 1), (1, 1)]),
        ("a ##b c", "ab c", [(0, 0), (0, 0), (1, 1)]),
        ("A B", "a b", [(0, 0), (1, 1)]),
        ("do n't .", "don't .", [(0, 0), (0, 0), (1, 1)]),
        ("don't.", "do n't .", [(0, 2)]),
        ("ab cd", "a bc d", [(0, 1), (1, 2)]),
        ("&apos;s x @-@ y", "'s x-y", [(0, 0), (1, 1), (1, 1), (1, 1)]),
        ("a b ▁", "a b", [(0, 0), (1, 1), (1, 1)]),
        ("a b", "a c", [None, None]),
        ("a", "", [None]),
        ("", "a", []),
    ],
)
def test_words_of_each_token(tokens: str, words: str, expected: list[tuple[int, int] | None]) -> None:
    (found,) = token_words([tokens.split()], [words.split()])
    assert [(its[0], its[-1]) if its else None for its in found] == expected


texts = st.lists(st.lists(st.text("abc", min_size=1, max_size=4), max_size=5), min_size=1, max_size=4)


@given(texts, st.randoms(use_true_random=False))
def test_pieces_belong_to_the_word_that_they_were_cut_from(words: list[list[str]], rng: object) -> None:
    choose = rng.choice  # type: ignore[attr-defined]
    pieces = [
        [piece for word in line for piece in ("@@ ".join(word) if choose([True, False]) else word).split()]
        for line in words
    ]
    expected = [[range(n, n + 1) for n in word_indices(line, "@@").tolist()] for line in pieces]
    assert [*token_words(pieces, words)] == expected


@given(texts, st.lists(st.tuples(st.integers(0, 4), st.integers(0, 9), st.integers(0, 9)), max_size=20))
def test_links_of_words(words: list[list[str]], links: list[tuple[int, int, int]]) -> None:
    """Against one link after the other; the target text is cut into letters, the source is in words of its own."""
    letters = [list("".join(line)) for line in words]
    source, target = [*token_words(words, words)], [*token_words(letters, words)]
    ids, left, right = np.array(links, dtype=np.int64).reshape(-1, 3).T
    found = words_of_tokens(LinkTable.build(ids, left, right, 5), source, target)
    expected = set()
    for n, i, j in links:
        if n < len(words) and i < len(words[n]) and j < len(letters[n]):
            expected.add((n, i, [k for k, word in enumerate(words[n]) for _ in word][j]))
    assert set(zip(found.sentence.tolist(), found.source.tolist(), found.target.tolist())) == expected
    assert found.sentences == 5


def test_a_token_of_several_words_links_them_all() -> None:
    wide = [*token_words([["abc"]], [["a", "b", "c"]])]
    found = words_of_tokens(LinkTable.of([[(1, 1), (0, 1), (2, 1)]]), wide, wide, base=1)
    assert found.to_sentences() == [frozenset((i, j) for i in (1, 2, 3) for j in (1, 2, 3))]
