from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.display.labels import distinct, shortened


def test_a_word_that_came_before_has_its_number() -> None:
    assert distinct(["the", "cat", "the", "dog", "the"]) == ["the", "cat", "the#2", "dog", "the#3"]
    assert distinct(["a#2", "a", "a"]) == ["a#2", "a", "a#3"]
    assert distinct(["(null)", "(null)"], reserved=["(null)"]) == ["(null)#2", "(null)#3"]
    assert distinct([]) == []


@given(st.lists(st.sampled_from(["a", "a#2", "a#2#2", "a#3", "#2", ""])))
def test_names_are_distinct_and_begin_with_the_word(words: list[str]) -> None:
    names = distinct(words, reserved=["a"])
    assert len({*names, "a"}) == len(words) + 1
    assert all(name.startswith(word) for name, word in zip(names, words))
    assert all(name == word for name, word in zip(distinct(words), words) if words.count(word) == 1 and "#" not in word)


def test_a_long_sentence_is_cut_and_shows_what_shows_nothing() -> None:
    assert shortened(["a", "b"]) == "a b"
    assert shortened(["x" * 10] * 10, 20) == "xxxxxxxxxx xxxxxxxx…"
    assert shortened(["a\u202eb\n"]) == r"a\u202eb\n"
