from __future__ import annotations

import io
import sys
from pathlib import Path

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


DEMO = Path(__file__).resolve().parents[2] / "data/demo"
SCORED = ("--gold", DEMO / "demo.talp", "--gold-base", 1, "--hyp-base", 1, "--hyp-allow-possible")


@pytest.mark.parametrize(
    ("command", "bars"),
    [
        (("compare", *SCORED, DEMO / "demo.talp", DEMO / "demo.talp"), ["resamples"] * 2),
        (("score", *SCORED, DEMO / "demo.talp", "--confidence", "--per-sentence", "a.tsv"), ["resamples", "sentences"]),
        (("errors", *SCORED, DEMO / "demo.talp", "--source", DEMO / "demo.de", "--target", DEMO / "demo.en",
          "--against", DEMO / "demo.talp"), ["sentences"] * 3),
        (("convert", DEMO / "demo.talp", "--from-base", 1, "--to", "talp"), ["60/60 "]),
        (("convert", DEMO / "demo.talp", "--from-base", 1, "--to", "naacl"), ["991/991 "]),
    ],
)  # fmt: skip
def test_commands_that_take_seconds_have_bars(monkeypatch, tmp_path, call, command, bars):
    monkeypatch.setattr(progress, "_DELAY", 0)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stderr", Terminal())
    status, *_ = call(*command)
    said = [line for line in sys.stderr.getvalue().replace("\r", "\n").split("\n") if "100%" in line]
    assert status == 0, sys.stderr.getvalue()
    assert len(said) >= len(bars)
    for bar in bars:
        assert any(bar in line for line in said), said
