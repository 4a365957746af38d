import io
import itertools
import sys
import time

import pytest

from alignment_eval import errors as progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("delay", "drawn"), [(0, True), (1, False)])
def test_a_terminal_has_a_bar_unless_all_is_done_at_once(monkeypatch, delay, drawn):
    monkeypatch.setattr(progress, "_DELAY", delay)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress.progress_bar(iter("abc"), 3, "letters")) == ["a", "b", "c"]
    assert ("3/3" in sys.stderr.getvalue()) == drawn
    assert (" letters" in sys.stderr.getvalue()) == drawn


def test_a_log_has_a_line_every_half_minute(monkeypatch, capsys):
    clock = itertools.count(0, 10)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    assert sum(progress.progress_bar(range(2000), 2000, "sentences")) == 1999000
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2000 // 3
    assert lines[0] == "3 of 2,000 sentences (0 %), 30 s"
    assert lines[-1] == "1,998 of 2,000 sentences (99 %), 19980 s"
