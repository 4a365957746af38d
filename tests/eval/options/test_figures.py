import argparse

import pytest

from alignment_eval.figures.style import FigureOptions
from alignment_eval.options.common import CommandParser
from alignment_eval.options.figures import add_figure_formats, add_figure_options, figure_options


@pytest.fixture
def parser():
    made = CommandParser(exit_on_error=False)
    add_figure_formats(add_figure_options(made))
    return made


def test_options(parser):
    args = parser.parse_args([])
    assert figure_options(args) == FigureOptions()
    assert args.figure_formats == ("png", "svg")
    args = parser.parse_args(["--width", "8.89cm", "--title", "a b", "--figure-formats", "pdf,svg"])
    assert figure_options(args) == FigureOptions(pytest.approx(3.5), "a b")
    assert args.figure_formats == ("pdf", "svg")


@pytest.mark.parametrize(("text", "inches"), [("3.3in", 3.3), ("8.5 cm", 8.5 / 2.54), ("17CM", 17 / 2.54)])
def test_width(parser, text, inches):
    assert parser.parse_args(["--width", text]).width == pytest.approx(inches)


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
