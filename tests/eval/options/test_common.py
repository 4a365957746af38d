"""Lists, errors and how a command ends."""

import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.options.common import CommandParser, add_list, exit_status


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


@pytest.mark.parametrize("words", [["run", "--kinds", "a", "b"], ["run", "--kind", "a"], ["run", "--head=1"]])
def test_other_words_and_abbreviations_are_refused(parser, capsys, words):
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("p: unrecognized arguments: ")


def test_an_empty_value_is_no_name(parser, capsys):
    parser.add_argument("-o", "--output", default="-")
    parser.add_argument("--title")
    assert parser.parse_args(["run", "--title", ""]).title == ""
    for words, name in ((["run", "-o", ""], "-o/--output"), (["run", ""], "records")):
        with pytest.raises(SystemExit):
            parser.parse_args(words)
        assert f"p: {name} '': the value is empty" in capsys.readouterr().err


@pytest.mark.parametrize("value", ["", "a,", ",a", "a,,b"])
def test_empty_entries(parser, value, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--kinds", value])
    assert f"{value!r}: expected names, separated by commas" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "status"), [(None, 0), (InputError("bad data"), 1), (UsageError("bad usage"), 2)], ids=str
)
def test_errors_are_one_line(capsys, error, status):
    def run(args):
        if error is not None:
            raise error

    assert exit_status("tool", lambda: Namespace(command="score"), run) == status
    assert exit_status("tool", Namespace, run) == status
    expected = [] if error is None else [f"tool score: {error}", f"tool: {error}"]
    assert capsys.readouterr().err.splitlines() == expected


def test_ctrl_c_is_one_line(capsys):
    def run(args):
        raise KeyboardInterrupt

    assert exit_status("tool", lambda: Namespace(command="score"), run) == 130
    assert capsys.readouterr().err == "tool score: stopped by Ctrl-C\n"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(28, "No space left on device"), "tool: No space left on device"),
        (OSError(28, "No space left on device", "part"), "tool: part: No space left on device"),
        (OSError("the stream ended"), "tool: the stream ended"),
    ],
)
def test_an_error_of_the_system_names_its_file_if_it_has_one(capsys, error, message):
    def run(args):
        raise error

    assert exit_status("tool", Namespace, run) == 1
    assert capsys.readouterr().err == f"{message}\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("lines", [1, 20000])
def test_a_full_disk_under_standard_output(tmp_path, lines):
    (tmp_path / "links").write_text("0-0 1-1\n" * lines)
    words = [sys.executable, "-m", "alignment_eval", "convert", str(tmp_path / "links"), "--to", "talp"]
    for options in ([], ["-o", "/dev/full"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([*words, *options], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
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
