from __future__ import annotations

import pytest

from alignment_eval.figures.names import kind_name, layer_label, place_name, rule_name
from alignment_eval.maps.sentence import KINDS


@pytest.mark.parametrize(
    ("layer", "label"),
    [
        *((0, "layer 0 (1st)"), (1, "layer 1 (2nd)"), (2, "layer 2 (3rd)"), (3, "layer 3 (4th)")),
        *((10, "layer 10 (11th)"), (11, "layer 11 (12th)"), (12, "layer 12 (13th)"), (20, "layer 20 (21st)")),
    ],
)
def test_layer_label(layer: int, label: str) -> None:
    assert layer_label(layer) == label


def test_every_kind_has_a_name_of_its_own() -> None:
    assert len({kind_name(kind) for kind in KINDS} - set(KINDS)) == len(KINDS)
    assert (kind_name("attn_n"), kind_name("of_tomorrow")) == ("norms", "of_tomorrow")


def test_places_and_rules() -> None:
    assert (place_name(2), place_name(2, 3)) == ("layer 2", "layer 2, head 3")
    assert rule_name("kobayashi2020", "mask") == "rule kobayashi2020, null masked"
