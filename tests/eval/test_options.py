"""Lists, errors, names of systems, and how a command ends."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from alignment_eval.cli import CommandParser, add_list, exit_status, system
from alignment_eval.errors import InputError, UsageError
from alignment_eval.options import distinct_names


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


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (None, 0, None),
        (InputError("bad data"), 1, "bad data"),
        (UsageError("bad usage"), 2, "bad usage"),
        (KeyboardInterrupt(), 130, "stopped by Ctrl-C"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
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
    ("given", "names"),
    [
        (["runs/a.links", "b.links"], ["a.links", "b.links"]),
        (["runs/small/1/links", "runs/large/1/links", "other"], ["small", "large", "other"]),
        (["runs/links", "links"], ["runs", "links"]),
        (["x/links", "x/links"], ["x/links", "x/links"]),
        (["ours=x/links", "x/links", "-"], ["ours", "links", "standard input"]),
        (["a b=x=1/links"], ["a b"]),
    ],
)
def test_names_of_systems(given, names):
    assert distinct_names([system(word) for word in given]) == names


def test_a_file_whose_name_has_the_sign(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lr=1").write_text("0-0\n")
    assert distinct_names([system("lr=1")]) == ["lr=1"]
    assert system("lr=1") == "lr=1"
