from __future__ import annotations

from alignment_eval.report.labels import distinct, shortened


def test_a_word_that_came_before_has_its_number() -> None:
    assert distinct(["the", "cat", "the", "dog", "the"]) == ["the", "cat", "the#2", "dog", "the#3"]
    assert distinct(["a#2", "a", "a"]) == ["a#2", "a", "a#3"]
    assert distinct(["(null)", "(null)"], reserved=["(null)"]) == ["(null)#2", "(null)#3"]
    assert distinct([]) == []


def test_a_long_sentence_is_cut_and_shows_what_shows_nothing() -> None:
    assert shortened(["a", "b"]) == "a b"
    assert shortened(["x" * 10] * 10, 20) == "xxxxxxxxxx xxxxxxxx…"
    assert shortened(["a\u202eb\n"]) == r"a\u202eb\n"
