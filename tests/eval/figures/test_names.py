import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.figures.names import kind_name, label_of, layer_label, place_name, rule_name, visible
from alignment_eval.maps.kinds import KINDS


def test_names():
    assert len({kind_name(kind) for kind in KINDS} - set(KINDS)) == len(KINDS)
    assert (kind_name("attn_n"), kind_name("of_tomorrow")) == ("norms", "of_tomorrow")
    assert (place_name(2), place_name(2, 3)) == ("layer 2", "layer 2, head 3")
    assert rule_name("kobayashi2020", "mask") == "rule kobayashi2020, null masked"
    endings = {0: "1st", 1: "2nd", 2: "3rd", 3: "4th", 10: "11th", 11: "12th", 12: "13th", 20: "21st"}
    assert {layer: layer_label(layer) for layer in endings} == {n: f"layer {n} ({end})" for n, end in endings.items()}


@pytest.mark.parametrize(
    ("token", "label"),
    [
        ("$x_1$ Haus", "$x_1$ Haus"),
        ("x" * 31, "x" * 29 + "…"),
        ("a\u200bb", r"a\u200bb"),  # zero-width space
        ("\u202eab", r"\u202eab"),  # override: would turn the label around
        ("a\tb\nc\x00", r"a\tb\nc\x00"),
        ("\ue000\ud800", r"\ue000\ud800"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # joiners shape letters
    ],
)
def test_labels(token, label):
    assert label_of(token) == label


@given(st.text())
def test_labels_show_every_character(token):
    label = label_of(token)
    assert len(label) <= 30
    assert all(c in " \u200c\u200d" or unicodedata.category(c)[0] not in "CZ" for c in label)
    assert "\n" not in visible(token)
    if token.isascii() and token.isprintable() and len(token) <= 30:
        assert label == token
