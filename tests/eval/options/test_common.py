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


@pytest.mark.parametrize("words", [["run", "--kinds", "a", "b"], ["run", "--kind", "a"], ["run", "--head=1"]])
def test_other_words_and_abbreviations_are_refused(parser, capsys, words):
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("p: unrecognized arguments: ")


@pytest.mark.parametrize("value", ["", "a,", ",a", "a,,b"])
def test_empty_entries(parser, value, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--kinds", value])
    assert f"{value!r}: expected names, separated by commas" in capsys.readouterr().err
