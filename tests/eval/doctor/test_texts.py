from __future__ import annotations

from pathlib import Path

import pytest

from alignment_eval.doctor.texts import read_given
from alignment_eval.errors import InputError
from tests.facts import facts


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "source": "ab c\nd\n",
        "target": "x yz\nw\n",
        "pieces": "a@@ b c\nd\n",
        "other": "q q q q\nd\n",
        "short": "x\n",
        "mixed": "a@@ b\n▁c d\n",
    }.items():
        Path(name).write_text(text, encoding="utf-8")


def test_the_same_texts_need_no_other_words() -> None:
    given = read_given("source", "target", None, None)
    assert (given.words, given.notes) == (None, ())
    assert [side.tolist() for side in given.lengths] == [[2, 1], [2, 1]]
    assert given.texts.source.tolist() == [2, 1]


def test_tokens_of_the_hypothesis() -> None:
    given = read_given("source", "target", "pieces", None)
    assert given.words is not None
    assert given.words[0] == [[range(1), range(1), range(1, 2)], [range(1)]]
    assert given.words[1] == [[range(1), range(1, 2)], [range(1)]]


def test_gold_texts_in_subwords_are_joined() -> None:
    given = read_given("pieces", "target", None, None)
    assert given.lengths[0].tolist() == [2, 1]
    assert given.texts.source.tolist() == [3, 1]  # as the file has them
    assert "pieces has the subword marker @@" in given.notes[0]


def test_another_text_is_said_to_be_one() -> None:
    given = read_given("source", "target", "other", None)
    assert given.words is None
    assert "80% of its tokens" in given.notes[0]


@pytest.mark.parametrize(("name", "message"), [("short", "source has 2 lines … short has 1"), ("mixed", "mixed: ")])
def test_refused(name: str, message: str) -> None:
    with pytest.raises(InputError, match=facts(message)):
        read_given("source" if name == "short" else name, "short" if name == "short" else "target", None, None)
