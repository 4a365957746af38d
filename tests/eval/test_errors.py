"""What a user reads on stderr: messages of one printable line, and progress."""

import io
import itertools
import sys
import time
from argparse import Namespace

import pytest

import alignment_eval
from alignment_eval import errors
from alignment_eval.command_line import exit_status
from alignment_eval.errors import AlignmentWarning, InputError, UsageError, warn_user


def test_a_program_gets_warnings_and_log_messages_and_a_command_prints_them(capsys, tmp_path):
    """A warning names the program's line; a command says it again each time."""
    path = tmp_path / "links"
    path.write_text("1-1 2-2\n" * 20)
    with pytest.warns(AlignmentWarning, match="1-based") as caught:
        alignment_eval.read_gold(path)
    assert caught[0].filename == __file__

    def run(_):
        for _ in range(2):
            warn_user("3 lines are \x1b[2J\n")
        errors.logger.info("%s lines", 3)

    errors.logger.info("not asked for")
    assert exit_status("it", Namespace, run) == 0
    assert capsys.readouterr() == ("", "warning: 3 lines are \\x1b[2J\\n\n" * 2 + "3 lines\n")
    errors.logger.info("not asked for")
    assert capsys.readouterr() == ("", "")


def test_every_message_is_one_printable_line():
    """Whatever puts text of files and arguments into it."""
    text = f"{'x' * 10**6}: \x1b[2J is not {'y ' * 10**6}\n"
    for error in (InputError(text), UsageError(text)):
        assert str(error).startswith("x" * 80 + r"… \x1b[2J is not y y ")
        assert str(error).isprintable()
        assert len(str(error)) < 2100
    path = f"/{'long directory ' * 10}/{'n' * 250}"
    assert str(InputError(f"{path}: no such file")) == f"{path}: no such file"  # names of files stay whole


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("delay", "drawn"), [(0, True), (1, False)])
def test_a_terminal_has_a_bar_unless_all_is_done_at_once(monkeypatch, delay, drawn):
    monkeypatch.setattr(errors, "_DELAY", delay)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(errors.progress_bar(iter("abc"), 3, "letters")) == ["a", "b", "c"]
    assert ("3/3" in sys.stderr.getvalue()) == drawn
    assert (" letters" in sys.stderr.getvalue()) == drawn


def test_a_log_has_a_line_every_half_minute(monkeypatch, caplog):
    clock = itertools.count(0, 10)
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    caplog.set_level("INFO")
    assert sum(errors.progress_bar(range(2000), 2000, "sentences")) == 1999000
    lines = caplog.messages
    assert len(lines) == 2000 // 3
    assert lines[0] == "3 of 2,000 sentences (0 %), 30 s"
    assert lines[-1] == "1,998 of 2,000 sentences (99 %), 19980 s"
