from __future__ import annotations

import argparse

import pytest

from alignment_eval.arguments.figures import add_figure_formats, add_figure_options, figure_options, warn_of_width
from alignment_eval.arguments.lists import CommandParser
from alignment_eval.figures.page import Layout
from alignment_eval.figures.style import COLUMN, PAGE, FigureOptions
from tests.facts import says


@pytest.fixture
def parser() -> argparse.ArgumentParser:
    made = CommandParser(exit_on_error=False)
    add_figure_formats(add_figure_options(made))
    return made


def test_nothing_is_said(parser: argparse.ArgumentParser) -> None:
    args = parser.parse_args([])
    assert figure_options(args) == FigureOptions()
    assert args.figure_formats == ("png", "svg")


def test_everything_is_said(parser: argparse.ArgumentParser) -> None:
    words = ["--width", "8.89cm", "--title", "a b", "--no-heading", "--dpi", "600", "--colormap", "Greys"]
    args = parser.parse_args([*words, "--figure-formats", "pdf,svg"])
    assert figure_options(args) == FigureOptions(pytest.approx(3.5), "a b", False, 600, "Greys", "cm")
    assert args.figure_formats == ("pdf", "svg")


@pytest.mark.parametrize(
    ("text", "inches", "unit"), [("3.3in", 3.3, "in"), ("8.5 cm", 8.5 / 2.54, "cm"), ("17CM", 17 / 2.54, "cm")]
)
def test_width(parser: argparse.ArgumentParser, text: str, inches: float, unit: str) -> None:
    options = figure_options(parser.parse_args(["--width", text]))
    assert options.width == pytest.approx(inches)
    assert options.shown(inches) == text.replace(" ", "").lower()  # in the user's unit


@pytest.mark.parametrize(
    ("option", "value", "fact"),
    [
        ("--width", "8.5", "8.5cm"),
        ("--width", "-3cm", "8.5cm"),
        ("--width", "0.1cm", "from 3.81cm to 254cm"),
        ("--width", "900in", "from 1.5in to 100in"),
        ("--dpi", "0", "1 or more"),
        ("--colormap", "absent", "Greys"),
        ("--figure-formats", "png,gif", "png, svg, pdf"),
    ],
)
def test_bad_values(parser: argparse.ArgumentParser, option: str, value: str, fact: str) -> None:
    with pytest.raises(argparse.ArgumentError, match=fact.replace(".", r"\.")):
        parser.parse_args([f"{option}={value}"])


@pytest.mark.parametrize(
    ("width", "unit", "needed", "said"),
    [
        (None, "cm", COLUMN, ""),
        (None, "cm", 9.62 / 2.54, "p.svg: 17.5cm wide, two columns … --width 9.7cm"),
        (None, "cm", PAGE, ""),
        (None, "cm", 10.0, "warning: p.svg: 25.4cm wide, so … --width 17.5cm leaves them out"),
        (3.0, "in", 5.01, "warning: p.svg: … left out … --width 5.1in"),
        (3.0, "cm", 5.0, "warning: p.svg: … left out … --width 12.7cm"),
        (5.0, "in", 5.0, ""),
        (10.0, "in", 9.0, ""),
    ],
)
def test_a_width_that_is_not_a_columns_is_told(
    width: float | None, unit: str, needed: float, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the width that the words need, in the user's unit and rounded up."""
    options = FigureOptions(width=width, unit=unit)
    drawn = width or (options.width_for(needed) if needed <= PAGE else needed)
    warn_of_width(Layout(drawn, 0.1, drawn >= needed, 0, 0, needed), "p.svg", options)
    assert says(capsys.readouterr().err, said) if said else capsys.readouterr().err == ""
