"""Profiles: written, read, and refused."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.defaults import FEWEST_PAIRS
from alignment_eval.extraction.options import MapName
from alignment_eval.selection.agreement import Agreement
from alignment_eval.selection.profile import calibrated, parse_profile, profile_path, read_profile, together

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2, None, "awo"), 0.5, 100)
FORWARD = calibrated(AGREEMENT, range(3), "m1", "t", 100)
REVERSE = calibrated(AGREEMENT, range(3), "m2", "t", 100)
YOUNG = calibrated(replace(AGREEMENT, dice=0.39), range(3), "m3", "t", 100)


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "c.pt.align.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    return write


@pytest.mark.parametrize(
    "profile",
    [FORWARD, YOUNG, calibrated(None, [0], "m", "t", 30), together(FORWARD, REVERSE), together(FORWARD, YOUNG)],
)
def test_what_is_written_is_read(write, profile):
    assert read_profile(write(profile.to_json()), profile.model) == profile


def test_what_is_chosen():
    assert FORWARD.chosen_by == "agreement"
    assert FORWARD.alone.forward.map_names == "0.0:awi,2"
    assert (YOUNG.chosen_by, YOUNG.figure) == ("upper-layers", 0.39)
    assert YOUNG.alone.forward.map_names == "1,2"
    assert calibrated(None, [0], "m", "t", 30).figure is None


def test_the_method_by_the_size_of_the_text():
    assert FORWARD.method(FEWEST_PAIRS).lexicon_passes
    for few in (None, 1, FEWEST_PAIRS - 1):
        assert not FORWARD.method(few).lexicon_passes


def test_two_models():
    default = FORWARD.method_with(REVERSE, None)
    assert (default.forward.rule, default.both.join) == ("two-way=0.4", "product")
    chosen = replace(together(FORWARD, REVERSE), both=replace(default, lexicon_passes=1))
    assert chosen.method_with(REVERSE, FEWEST_PAIRS).lexicon_passes == 1
    assert chosen.method_with(REVERSE, 1).lexicon_passes == 0
    assert chosen.method_with(replace(REVERSE, model="other"), FEWEST_PAIRS) == default  # not the one it is for


def test_beside_the_checkpoint():
    assert str(profile_path("a/b.pt")) == "a/b.pt.align.json"


def test_another_model_is_refused(write):
    with pytest.raises(InputError, match=r"c\.pt\.align\.json.*model m1.*m2.*--profile none"):
        read_profile(write(FORWARD.to_json()), "m2")


def test_a_later_version_is_refused(write):
    content = {**json.loads(FORWARD.to_json()), "profile": 2}
    with pytest.raises(InputError, match=r"c\.pt\.align\.json.*version 2.*expected 1"):
        read_profile(write(content))


def without(*names):
    return {key: value for key, value in json.loads(FORWARD.to_json()).items() if key not in names}


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[",
        "[" * 100_000,
        "[]",
        "3",
        "{}",
        without("alone"),
        without("model"),
        {**without(), "more": 1},
        {**without(), "alone": None},
        {**without(), "alone": 3},
        {**without(), "chosen_by": "luck"},
        {**without(), "figure": 1.5},
        {**without(), "figure": "NaN"},
        {**without(), "reverse_model": "m2"},
        {**without(), "alone": {**without()["alone"], "lexicon_passes": -1}},
        {**without(), "alone": {**without()["alone"], "forward": {**without()["alone"]["forward"], "heads": "x"}}},
    ],
)
def test_a_damaged_file_is_named(write, content):
    with pytest.raises(InputError, match=r"c\.pt\.align\.json: is no profile") as error:
        read_profile(write(content))
    assert len(str(error.value)) < 400


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: cannot be read"):
        read_profile(tmp_path / "none.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"binary\.json: cannot be read"):
        read_profile(tmp_path / "binary.json")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(name=st.sampled_from(sorted(json.loads(FORWARD.to_json()))), value=json_values)
def test_a_changed_field_gives_a_profile_or_a_named_error(name, value):
    content = {**json.loads(FORWARD.to_json()), name: value}
    with suppress(InputError):
        assert isinstance(parse_profile(json.dumps(content), "p").model, str)
