"""A default is one entry: whoever aligns, shows or records reads it there."""

import pytest

from alignment_eval.extraction.defaults import DEFAULTS, Defaults
from alignment_eval.extraction.rules import rule_of


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "balanced=0.25"),
        ({"sharpened": True}, "balanced=0.4"),
        ({"join": "mutual"}, "balanced=0.25"),
        ({"join": "average"}, "grow=0.25"),
        ({"join": "average", "sharpened": True}, "grow=0.4"),
        ({"join": "product"}, "grow=0.4"),
    ],
    ids=str,
)
def test_rules(options, rule):
    assert DEFAULTS.rule(**options) == rule == rule_of(rule).name
    assert (
        Defaults(one_direction="two-way", two_directions="two-way").rule(**options) == f"two-way={rule.split('=')[1]}"
    )
