"""Lists with commas or spaces, and what ends them."""

from __future__ import annotations

import pytest

from alignment_eval.arguments.lists import ListParser, add_list
from alignment_eval.arguments.short_help import ShortHelpParser


@pytest.fixture
def parser():
    parser = ListParser()
    parser.add_argument("records", nargs="+")
    parser.add_argument("--layer", type=int)
    parser.add_argument("--plain", action="store_true")
    add_list(parser, "--kinds", "which", known=("attn_w", "attn_n"))
    add_list(parser, "--heads", "maps", type=str)
    return parser


@pytest.mark.parametrize(
    "words",
    [
        ["--kinds", "a,b", "run"],
        ["--kinds", "a", "b", "run"],
        ["--kinds", "a", "b,a", "b", "run"],
        ["run", "--kinds", "a", "b"],
        ["run", "--kinds=a,b"],
        ["--kinds", "a", "b", "--", "run"],
        ["--kinds", "a", "b", "--layer", "1", "run"],
    ],
)
def test_commas_and_spaces(parser, tmp_path, monkeypatch, words):
    """A file or directory that exists ends a list."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run").mkdir()
    args = parser.parse_args(words)
    assert (args.kinds, args.records) == (("a", "b"), ["run"])


def test_a_known_name_belongs_to_the_list_though_there_is_such_a_file(parser, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("attn_n", "other", "run"):
        (tmp_path / name).mkdir()
    args = parser.parse_args(["--kinds", "attn_w", "attn_n", "run", "other"])
    assert (args.kinds, args.records) == (("attn_w", "attn_n"), ["run", "other"])


def test_other_options_take_what_they_took(parser):
    args = parser.parse_args(["--layer", "1", "run", "more", "--plain", "--heads", "1.0,2", "0.1:awi"])
    assert (args.layer, args.records, args.heads, args.plain) == (1, ["run", "more"], "1.0,2,0.1:awi", True)


@pytest.mark.parametrize("value", ["", "a,", ",a", "a,,b"])
def test_empty_entries(parser, value, capsys):
    with pytest.raises(SystemExit):
        parser.parse_args(["run", "--kinds", value])
    assert f"{value!r}: expected names, separated by commas or spaces" in capsys.readouterr().err


def test_help_says_how(parser):
    assert "--kinds NAME,…" in parser.format_help()
    assert "which; separated by commas or spaces" in parser.format_help()


def test_the_parser_of_norm_align_takes_them_too():
    parser = ShortHelpParser(common=(), short_usage="")
    add_list(parser, "--heads", "maps", type=str)
    assert parser.parse_args(["--heads", "1.0", "2"]).heads == "1.0,2"
