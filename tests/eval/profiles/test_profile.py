"""Profiles: written, read, and refused."""

import json
from dataclasses import replace

import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.defaults import FEWEST_PAIRS
from alignment_eval.extraction.method import MapName
from alignment_eval.profiles.profile import calibrated, read_profile, together
from alignment_eval.profiles.search import Agreement

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2, None, "awo"), 0.5, 100)
FORWARD = calibrated(AGREEMENT, range(3), "m1", "t", 100)
REVERSE = calibrated(AGREEMENT, range(3), "m2", "t", 100)
YOUNG = calibrated(replace(AGREEMENT, dice=0.39), range(3), "m3", "t", 100)
GUIDED = calibrated(None, range(3), "m4", "t", 100, [MapName(0, 0, "awi"), MapName(1, 0, "awi"), MapName(2)])


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "c.pt.align.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.parametrize(
    "profile",
    [FORWARD, YOUNG, GUIDED, calibrated(None, [0], "m", "t", 30), together(FORWARD, REVERSE), together(FORWARD, YOUNG)],
)
def test_what_is_written_is_read(write, profile):
    assert read_profile(write(profile.to_json()), profile.model) == profile


def test_what_is_chosen():
    assert FORWARD.chosen_by == "agreement"
    assert str(FORWARD.alone.forward.heads) == "0.0:awi,2"
    assert (YOUNG.chosen_by, YOUNG.figure) == ("upper-layers", 0.39)
    assert str(YOUNG.alone.forward.heads) == "1,2"
    assert calibrated(None, [0], "m", "t", 30).figure is None
    assert (GUIDED.chosen_by, GUIDED.figure) == ("training", None)
    assert str(GUIDED.streamed.forward.heads) == "0.0:awi,1.0:awi,2"
    assert GUIDED.streamed.forward.combine == "product"


def test_two_models():
    default = FORWARD.method_with(REVERSE, None)
    assert (default.forward.rule, default.both.join) == ("grow=0.4", "product")
    chosen = replace(together(FORWARD, REVERSE), both=replace(default, word_table_passes=1))
    assert chosen.method_with(REVERSE, FEWEST_PAIRS).word_table_passes == 1
    assert chosen.method_with(REVERSE, 1).word_table_passes == 0
    assert chosen.method_with(replace(REVERSE, model="other"), FEWEST_PAIRS) == default  # not the one it is for


def test_the_reverse_model_alone_has_the_rule_of_one_direction():
    """The rule of the joined maps is not it."""
    both = together(FORWARD, YOUNG)
    assert both.both.reverse.rule == "grow=0.4"
    reverse = both.of_reverse("m3", "p")
    assert (reverse.alone, reverse.streamed) == (YOUNG.alone, YOUNG.streamed)
    assert (reverse.model, reverse.both, reverse.reverse_model) == ("m3", None, None)
    with pytest.raises(InputError, match=r"p: was chosen for model m3.*m2"):
        both.of_reverse("m2", "p")


def test_another_model_is_refused(write):
    with pytest.raises(InputError, match=r"c\.pt\.align\.json.*model m1.*m2.*--profile none"):
        read_profile(write(FORWARD.to_json()), "m2")


def without(*names):
    return {key: value for key, value in json.loads(FORWARD.to_json()).items() if key not in names}


def forward(**changes):
    alone = without()["alone"]
    return {**without(), "alone": {**alone, "forward": {**alone["forward"], **changes}}}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "truncated"),
        ({"profile": 2}, "profile is 2: expected version 1"),
        ({**without(), "more": 1}, "keys are missing or unknown"),
        ({**without(), "alone": None}, "alone is None: expected object"),
        ({**without(), "chosen_by": "\x1b[31m" * 99}, r"chosen_by is '\\x1b\[31m"),
        ({**without(), "figure": 1.5}, "figure is 1.5: expected float <= 1.0"),
        ({**without(), "reverse_model": "m2"}, "reverse model"),
        ({**without(), "alone": {**without()["alone"], "word_table_passes": -1}}, "alone: word table passes -1"),
        (forward(more=1), "keys are missing or unknown"),
        (forward(heads="x"), "alone.forward.heads: cannot read heads 'x'"),
    ],
)
def test_a_damaged_file_is_named(write, content, problem):
    with pytest.raises(InputError, match=rf"c\.pt\.align\.json: .*not a profile .*{problem}") as error:
        read_profile(write(content))
    assert len(str(error.value)) < 450
    assert str(error.value).isprintable()
