"""A default is one entry: whoever aligns, shows or records reads it there."""

import pytest

from alignment_eval.extraction.defaults import DEFAULTS, Defaults
from alignment_eval.extraction.rules import rule_of


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({}, "balanced=0.25"),
        ({"added": 0.05}, "balanced=0.3"),
        ({"guided": True, "added": 0.2}, "balanced=0.55"),  # the sum is not quite 0.55
        ({"join": "mutual", "guided": True}, "balanced=0.35"),
        ({"join": "average"}, "grow=0.25"),
        ({"join": "product", "guided": True}, "grow=0.4"),
    ],
    ids=str,
)
def test_rules(options, rule):
    assert DEFAULTS.rule(**options) == rule == rule_of(rule).name
    assert (
        Defaults(one_direction="two-way", two_directions="two-way").rule(**options) == f"two-way={rule.split('=')[1]}"
    )
