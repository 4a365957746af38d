import argparse

import pytest

from alignment_eval.cli import CommandParser
from alignment_eval.figures.options import add_figure_formats, add_figure_options, figure_options
from alignment_eval.figures.style import FigureOptions


@pytest.fixture
def parser():
    made = CommandParser(exit_on_error=False)
    add_figure_formats(add_figure_options(made))
    return made


def test_options(parser):
    args = parser.parse_args([])
    assert figure_options(args) == FigureOptions()
    assert args.figure_formats == ("png", "svg")
    args = parser.parse_args(["--width", "8.89 CM", "--title", "a b", "--figure-formats", "pdf,svg"])
    assert figure_options(args) == FigureOptions(pytest.approx(3.5), "a b")
    assert args.figure_formats == ("pdf", "svg")
    assert parser.parse_args(["--width", "3.3in"]).width == pytest.approx(3.3)


@pytest.mark.parametrize(
    ("option", "value", "fact"),
    [
        ("--width", "8.5", "8.5cm"),
        ("--width", "-3cm", "8.5cm"),
        ("--width", "0.1cm", "1.5in or more"),
        ("--figure-formats", "png,gif", "png, svg, pdf"),
    ],
)
def test_bad_values(parser, option, value, fact):
    with pytest.raises(argparse.ArgumentError, match=fact.replace(".", r"\.")):
        parser.parse_args([f"{option}={value}"])
