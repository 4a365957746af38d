from __future__ import annotations

import io
import sys

import pytest

from alignment_eval import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("terminal", [True, False])
def test_a_bar_is_for_terminals(monkeypatch, terminal):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_DELAY", 0)
    assert list(progress.progress_bar(iter("abc"), 3, "letters")) == ["a", "b", "c"]
    assert ("3/3" in stream.getvalue()) == terminal
    assert (" letters" in stream.getvalue()) == terminal


def test_what_is_done_at_once_has_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.progress_bar("abc", 3, "letters")) == ["a", "b", "c"]
    assert sys.stderr.getvalue() == ""


def test_a_false_total_takes_no_memory():
    assert list(progress.progress_bar("abc", 10**18, "letters")) == ["a", "b", "c"]


def test_no_progress():
    assert progress.no_progress("abc", 3, "letters") == "abc"
