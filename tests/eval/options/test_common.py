"""Lists, errors and how a command ends."""

import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.options.common import CommandParser, add_list, exit_status
from tests.facts import says


@pytest.fixture
def parser():
    parser = CommandParser(prog="p", description="what it does\n\nin lines")
    parser.add_argument("records", nargs="+")
    add_list(parser, "--kinds", "which")
    add_list(parser, "--heads", "maps", type=str)
    return parser


@pytest.mark.parametrize(
    "words", [["--kinds", "a,b", "run"], ["run", "--kinds=a, b,a"], ["--kinds", "a,b", "--", "run"]]
)
def test_a_list(parser, words):
    args = parser.parse_args(words)
    assert (args.kinds, args.records, args.heads) == (("a", "b"), ["run"], None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--kinds", "a", "b"], "p: unrecognized arguments: "),
        (["run", "--kind", "a"], "p: unrecognized arguments: "),
        (["run", "--head=1"], "p: unrecognized arguments: "),
        (["run", "-o", ""], "p: -o/--output '': the value is empty"),
        (["run", ""], "p: records '': the value is empty"),
        *((["run", "--kinds", value], f"{value!r}: expected names") for value in ("", "a,", ",a", "a,,b")),
    ],
)
def test_refused_words(parser, capsys, words, message):
    parser.add_argument("-o", "--output", default="-")
    with pytest.raises(SystemExit, match="2"):
        parser.parse_args(words)
    assert message in capsys.readouterr().err


def test_a_title_may_be_empty(parser):
    parser.add_argument("--title")
    assert parser.parse_args(["run", "--title", ""]).title == ""


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (None, 0, None),
        (InputError("bad data"), 1, "bad data"),
        (UsageError("bad usage"), 2, "bad usage"),
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (OSError(28, "No space left on device", "part"), 1, "part: No space left on device"),
        (OSError("the stream ended"), 1, "the stream ended"),
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


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("lines", [1, 20000])
def test_a_full_disk_under_standard_output(tmp_path, lines):
    (tmp_path / "links").write_text("0-0 1-1\n" * lines)
    words = [sys.executable, "-m", "alignment_eval", "convert", str(tmp_path / "links"), "--to", "talp"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("lines", [1, 20000])
def test_a_reader_that_goes_away_is_no_error(tmp_path, lines):
    """As with ``| head``: the pipe is closed before anything is written, less than a buffer or more."""
    (tmp_path / "links").write_text("0-0 1-1\n" * lines)
    words = [sys.executable, "-m", "alignment_eval", "convert", str(tmp_path / "links"), "--to", "talp"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.close()
    with process.stderr:
        messages = process.stderr.read()
    assert process.wait() == 141
    assert "Traceback" not in messages
    assert "BrokenPipe" not in messages


@pytest.mark.parametrize(
    ("options", "status", "out", "err"),
    [
        ("-o new >&-", 0, "", "symmetrized:union"),
        ("-o new >&- 2>&-", 0, "", ""),
        ("-o - 2>&-", 0, "0-0 1-1\n", ""),
        ("-o - >&-", 1, "", "standard output: Bad file descriptor"),
        ("--none 2>&-", 2, "", ""),
    ],
)
def test_standard_streams_that_are_closed(tmp_path, options, status, out, err):
    """The status is that of the work, and no message is among the results."""
    (tmp_path / "links").write_text("0-0 1-1\n")
    words = f"{sys.executable} -m alignment_eval symmetrize links links --method union {options}"
    paths = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    done = subprocess.run(["bash", "-c", words], cwd=tmp_path, env=paths, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (status, out)
    assert "Traceback" not in done.stderr
    assert (err in done.stderr) if err else not done.stderr
    assert (tmp_path / "new").exists() == options.startswith("-o new")


def test_a_standard_input_that_is_closed(tmp_path):
    words = f"{sys.executable} -m alignment_eval convert - --to talp <&-"
    done = subprocess.run(["bash", "-c", words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert says(done.stderr, "<stdin>: cannot read")
