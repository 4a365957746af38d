"""``--help`` shows the common options, ``--help-all`` all."""

from __future__ import annotations

import pytest

from alignment_eval.arguments.short_help import ShortHelpParser


@pytest.fixture
def parser():
    parser = ShortHelpParser(
        prog="p", common=["path"], short_usage="%(prog)s [options]", description="what it does", epilog="an example"
    )
    parser.add_argument_group("model").add_argument("--path", help="the model")
    parser.add_argument_group("speed").add_argument("--window", help="pairs at once")
    return parser


def shown(parser, capsys, option):
    with pytest.raises(SystemExit) as ended:
        parser.parse_args([option])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(parser, capsys, option):
    text = shown(parser, capsys, option)
    assert text.startswith("usage: p [options]\n\nwhat it does\n")
    assert "--path PATH  the model" in text
    assert "--window" not in text
    assert "speed" not in text
    assert text.index("an example") < text.index("--help-all shows every option.")


def test_help_all(parser, capsys):
    text = shown(parser, capsys, "--help-all")
    assert "--path PATH" in text
    assert "--window WINDOW" in text


def test_values_are_parsed_as_ever(parser):
    assert vars(parser.parse_args(["--window", "3"])) == {"path": None, "window": "3"}


def test_groups_stand_in_the_order_of_the_common_options(capsys):
    parser = ShortHelpParser(prog="p", common=["own", "cpu"], short_usage="%(prog)s [options]")
    parser.add_argument("--cpu")
    parser.add_argument_group("analysis").add_argument("--own")
    text = shown(parser, capsys, "--help")
    assert text.index("--own") < text.index("--cpu")


def test_an_error_is_one_sentence(parser, capsys):
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(["--nothing"])
    assert ended.value.code == 2
    assert capsys.readouterr().err == "p: unrecognized arguments: --nothing; see p --help\n"
