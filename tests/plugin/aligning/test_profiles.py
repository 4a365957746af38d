from __future__ import annotations

from types import SimpleNamespace

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.options import MapName
from alignment_eval.selection.profile import calibrated, profile_path, together
from alignment_eval.selection.search import Agreement
from alignment_eval.selection.shares import Calibration
from fairseq_norm_plugin.aligning import profiles
from fairseq_norm_plugin.aligning.profiles import profiles_of

AGREEMENT = Agreement(MapName(0, 0, "awi"), MapName(2, None, "awo"), 0.5, 100)
FORWARD, REVERSE = (calibrated(AGREEMENT, range(3), model, "t", 100) for model in ("m1", "m2"))
TEXT = [(["a"], ["x", "y"])]


@pytest.fixture
def directions(tmp_path):
    names = [str(tmp_path / name) for name in ("forward.pt", "reverse.pt")]
    return [SimpleNamespace(name=name, profile=profile_path(name), guided=()) for name in names]


@pytest.fixture
def asked(monkeypatch):
    """The models that were calibrated on the text, and the pairs they got."""
    found = []

    def calibrate(direction, pairs, model, max_tokens):
        found.append((model, pairs))
        return Calibration(calibrated(None, range(3), model, "text", 1))

    monkeypatch.setattr(profiles, "calibrate", calibrate)
    monkeypatch.setattr(profiles, "usable_pairs", lambda text, directions: list(text))
    return found


def test_those_beside_the_checkpoints(directions, asked):
    for direction, profile in zip(directions, (FORWARD, REVERSE)):
        profile_path(direction.name).write_text(profile.to_json())
    found, sources = profiles_of(directions, ["m1", "m2"], TEXT)
    assert found == [FORWARD, REVERSE]
    assert sources == [str(profile_path(direction.name)) for direction in directions]
    assert asked == []


def test_the_text_itself_where_there_is_none(directions, asked):
    profile_path(directions[0].name).write_text(FORWARD.to_json())
    found, sources = profiles_of(directions, ["m1", "m2"], TEXT)
    assert found[0] == FORWARD
    assert sources[1] == "none, chosen on the text itself"
    assert asked == [("m2", [(["x", "y"], ["a"])])]  # in its own direction


def test_none_is_read_on_demand(directions, asked):
    profile_path(directions[0].name).write_text("broken")
    profiles_of(directions, ["m1", "m2"], TEXT, "none")
    assert [model for model, _ in asked] == ["m1", "m2"]


def test_a_named_one(directions, asked, tmp_path):
    path = tmp_path / "named.json"
    path.write_text(FORWARD.to_json())
    assert profiles_of(directions[:1], ["m1"], TEXT, str(path)) == ([FORWARD], [str(path)])
    with pytest.raises(UsageError, match=r"named\.json: is of one direction, but two models are given"):
        profiles_of(directions, ["m1", "m2"], TEXT, str(path))
    with pytest.raises(InputError, match=r"named\.json.*model m1.*m2"):
        profiles_of(directions[:1], ["m2"], TEXT, str(path))
    path.write_text(together(FORWARD, REVERSE).to_json())
    found, _ = profiles_of(directions, ["m1", "m2"], TEXT, str(path))
    assert [profile.model for profile in found] == ["m1", "m2"]
    assert asked == []
