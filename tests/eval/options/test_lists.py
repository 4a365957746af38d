"""Lists are separated by commas, whatever files there are; errors of the command line are one sentence."""

from __future__ import annotations

import pytest

from alignment_eval.options.common import CommandParser, add_list


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


def test_files_of_the_names_of_entries_change_nothing(parser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b").mkdir()
    assert parser.parse_args(["run", "--kinds", "a,b"]).kinds == ("a", "b")
    assert parser.parse_args(["--kinds", "a", "run", "b"]).records == ["run", "b"]


@pytest.mark.parametrize("present", [True, False])
def test_entries_after_a_blank_are_refused(parser, tmp_path, monkeypatch, capsys, present):
    monkeypatch.chdir(tmp_path)
    if present:
        (tmp_path / "b").touch()
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["run", "--kinds", "a", "b"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "p: unrecognized arguments: b; see p --help\n"


@pytest.mark.parametrize("value", ["", "a,", ",a", "a,,b"])
def test_empty_entries(parser, value, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--kinds", value])
    assert f"{value!r}: expected names, separated by commas" in capsys.readouterr().err


def test_help(parser):
    text = parser.format_help()
    assert "--kinds NAME,…" in text
    assert "which; separated by commas" in text
    assert "what it does\n\nin lines\n" in text
