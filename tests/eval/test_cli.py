"""align-eval, and what all command lines share: lists, errors, progress, and how a command ends."""

import io
import itertools
import subprocess
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

import alignment_eval
from alignment_eval import __version__, errors
from alignment_eval.command_line import System, exit_status
from alignment_eval.commands import main
from alignment_eval.errors import AlignmentWarning, InputError, UsageError, warn_user
from alignment_eval.options import distinct_names


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"align-eval {__version__}\n"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import alignment_eval", "numpy"),
        ("from alignment_eval.commands import _parser; _parser(['--help'])", "pandas"),
        ("from alignment_eval.commands import curve, plot, sweep", "matplotlib"),
    ],
)
def test_imports_are_light(code, heavy):
    script = f"import sys; {code}; sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("score", "hyp", "--gold", "gold", "--gold-base", 0),
        ("score", "hyp", "gold", "--gold", "gold", "--gold-base", 0),
        ("errors", "hyp", "gold", "--gold", "gold", "--gold-base", 0, "--source", "text", "--target", "text"),
        ("curve", "log", "--metrics", "aer", "-o", "out.csv"),
        ("convert", "none", "--to", "talp"),
        ("score", "--none"),
    ],
    ids=lambda words: words[0],
)
def test_no_name_of_a_file_controls_the_terminal(align_eval, tmp_path, monkeypatch, words):
    escape, names = "\x1b[2J\n", {"gold": "0-0\n1-1\n", "hyp": "0-0\n1-0\n", "text": "a b\nc d\n"}
    names["log"] = '{"epoch": 1, "valid_loss": "2.0", "valid_aer": "0.5", "valid_num_updates": "100"}\n'
    monkeypatch.chdir(tmp_path)
    for name, content in names.items():
        (tmp_path / f"{name}{escape}").write_text(content)
    done = align_eval(*(f"{word}{escape}" if word in (*names, "none", "--none") else word for word in words))
    assert "\x1b" not in done.stdout + done.stderr
    assert done.returncode == (1 if "none" in words else 2 if "--none" in words else 0)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (None, 0, None),
        (InputError("bad data"), 1, "bad data"),
        (UsageError("bad usage"), 2, "bad usage"),
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (OSError(28, "No space left on device", "part"), 1, "part: No space left on device"),
    ],
    ids=str,
)
def test_errors_are_one_line(capsys, error, status, message):
    def run(args):
        if error is not None:
            raise error

    assert exit_status("tool", lambda: Namespace(command="score"), run) == status
    assert exit_status("tool", Namespace, run) == status
    expected = [] if error is None else [f"tool score: {message}", f"tool: {message}"]
    assert capsys.readouterr().err.splitlines() == expected


@pytest.fixture(params=[1, 20000], ids=["less than a buffer", "more"])
def converting(request, tmp_path):
    """A command that writes so many lines to the standard output."""
    (tmp_path / "links").write_text("0-0 1-1\n" * request.param)
    return [sys.executable, "-m", "alignment_eval", "convert", str(tmp_path / "links"), "--to", "talp"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_under_standard_output(converting):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(converting, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


def test_a_reader_that_goes_away_is_no_error(converting):
    """As with ``| head``: the pipe is closed before anything is written."""
    process = subprocess.Popen(converting, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    with process.stderr:
        messages = process.stderr.read()
    assert process.wait() == 141
    assert "Traceback" not in messages
    assert "BrokenPipe" not in messages


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["runs/small/1/links", "runs/large/1/links", "other"], ["small", "large", "other"]),
        (["x/links", "x/links"], ["x/links", "x/links"]),
        (["ours=x/links", "x/links", "-"], ["ours", "links", "standard input"]),
    ],
)
def test_names_of_systems(given, expected):
    assert distinct_names([System.of(word) for word in given]) == expected


def test_a_file_whose_name_has_the_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=1").write_text("0-0\n")
    assert distinct_names([System.of("lr=1")]) == ["lr=1"]
    assert System.of("lr=1").path == "lr=1"


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
    assert capsys.readouterr() == ("", "it: warning: 3 lines are \\x1b[2J\\n\n" * 2 + "3 lines\n")
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
