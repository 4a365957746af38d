from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib import colormaps
from matplotlib.colors import to_rgb

from alignment_eval.figures.style import (
    COLOURS,
    COLUMN,
    LAYER_COLOURS,
    MAP_COLOURS,
    MARKERS,
    PAGE,
    SCORE_COLOURS,
    FigureOptions,
    contrasting,
    layer_colours,
    new_figure,
    styled,
)


def luminance(colour: object) -> float:
    """Of WCAG 2, written out."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def test_settings_are_as_before_afterwards() -> None:
    before = dict(matplotlib.rcParams)
    sizes = styled(lambda: matplotlib.rcParams["font.size"])()
    assert sizes >= 7
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("name", [MAP_COLOURS, SCORE_COLOURS, LAYER_COLOURS])
def test_colour_maps_rise_or_fall_steadily_in_grey(name: str) -> None:
    steps = np.diff([luminance(colormaps[name](share)) for share in np.linspace(0, 1, 20)])
    assert (steps > 0).all() or (steps < 0).all()


def test_series_differ_in_marker_and_neighbours_in_grey() -> None:
    assert len(set(MARKERS)) == len(MARKERS) > len(set(COLOURS)) == len(COLOURS)
    first = [luminance(colour) for colour in COLOURS[:4]]
    assert all(abs(a - b) > 0.1 for a, b in zip(first, first[1:]))


@pytest.mark.parametrize("name", [SCORE_COLOURS, "Blues", "Greys", "viridis"])
def test_numbers_contrast_with_their_cell(name: str) -> None:
    for share in np.linspace(0, 1, 20):
        back, text = (luminance(c) for c in (colormaps[name](share), contrasting(colormaps[name], share)))
        assert (max(back, text) + 0.05) / (min(back, text) + 0.05) >= 4.5  # WCAG 2, AA


def test_layers_have_colours_of_their_own() -> None:
    colours = layer_colours(range(6))
    assert len(set(colours.values())) == 6
    assert layer_colours([3])[3] == colours[0]


def test_options() -> None:
    assert FigureOptions().width_for(2) == COLUMN
    assert FigureOptions().width_for(5) == PAGE
    assert FigureOptions(width=4.0).width_for(2) == 4.0
    assert [FigureOptions(unit=unit).shown(4.01) for unit in ("cm", "in")] == ["10.2cm", "4.1in"]  # rounded up
    assert FigureOptions().heading_of("own") == "own"
    assert FigureOptions(title="mine").heading_of("own") == "mine"
    assert FigureOptions(title="mine", heading=False).heading_of("own") == ""


def test_a_figure_has_its_size() -> None:
    assert tuple(new_figure(COLUMN, 2).get_size_inches()) == (COLUMN, 2)
