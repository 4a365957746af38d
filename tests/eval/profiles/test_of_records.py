"""Profiles and word tables that do not fit: every command that reads them says why, in one line, and writes nothing."""

from dataclasses import replace

import pytest

from alignment_eval.extraction.method import MapName
from alignment_eval.profiles.profile import calibrated, together
from alignment_eval.profiles.search import Agreement

PAIRS = 32
AGREEMENT = Agreement(MapName(0, 1, "awi"), MapName(1), 0.5, 99)
ONE = calibrated(AGREEMENT, (0, 1), "synthetic", "t", 99)
TWO = together(ONE, calibrated(AGREEMENT, (0, 1), "back", "t", 99))


#: Content of a profile, and what is reported of it; tests of read_profile have more.
BAD = {
    "another model": (replace(ONE, model="other").to_json(), "is the profile of model other, but the model at hand is"),
    "cut": (ONE.to_json()[:-30], "damaged, or not a profile (Input data was truncated"),
    "other layers": (
        replace(calibrated(None, (8, 9), "synthetic", "t", 99)).to_json(),
        "reads map 8 (LAYER.HEAD, or LAYER for a whole one), but",
    ),
}


@pytest.fixture
def directory(tmp_path, make_sentence, make_records, monkeypatch):
    """Records of 32 pairs in both directions, and gold."""
    monkeypatch.chdir(tmp_path)
    words = ("a b c . </s>", "x y z . </s>")
    made = [make_sentence(k, *words) for k in range(PAIRS)]
    make_records(tmp_path / "run", made)
    exchanged = [make_sentence(k, *words[::-1]) for k in range(PAIRS)]
    make_records(tmp_path / "back", exchanged, signature={"model": "back"})
    (tmp_path / "gold").write_text("0-0 1-1\n" * PAIRS)
    return tmp_path


def refused(call, directory, *words):
    before = sorted(path.name for path in directory.iterdir())
    status, out, messages = call(*words)
    assert (out, len(messages.splitlines())) == ("", 1), messages
    assert sorted(path.name for path in directory.iterdir()) == before
    return status, messages


@pytest.mark.parametrize("name", ["another model", "other layers"])
def test_a_named_profile(directory, call, name):
    content, text = BAD[name]
    (directory / "p.json").write_text(content)
    status, messages = refused(call, directory, "extract", "run", "-o", "out", "--profile", "p.json")
    assert status == 1
    assert f"p.json: {text}" in messages
    status, messages = refused(call, directory, "extract", "run", "-o", "out", "--profile", "none.json")
    assert (status, "none.json: cannot be read as a profile" in messages) == (1, True)


def test_a_profile_that_the_records_carry(directory, make_sentence, make_records, call):
    content, text = BAD["cut"]
    made = [make_sentence(k, "a b c . </s>", "x y z . </s>") for k in range(PAIRS)]
    make_records(directory / "carrying", made, profile=content)
    status, messages = refused(call, directory, "extract", "carrying", "-o", "out")
    assert status == 1
    assert f"carrying: {text}" in messages
    assert "or pass --profile none" in messages
    status, _, messages = call("extract", "carrying", "-o", "out", "--profile", "none")
    assert status == 0, messages


def test_without_a_profile_the_records_decide(directory, make_sentence, make_records, call):
    """Maps are chosen on different pairs, if there are enough; here they are random, so the upper layers are read."""
    status, out, messages = call("extract", "run")
    assert status == 0, messages
    assert "profile: none, chosen on the maps in run; the text is too short to choose maps by" in messages
    made = [make_sentence(k, f"a b{k} c . </s>", "x y z . </s>") for k in range(PAIRS)]
    make_records(directory / "different", made)
    status, out, messages = call("extract", "different")
    assert (status, out.count("\n")) == (0, PAIRS)
    assert "the mean of layer 0 (AWO) and layer 1 (AWO)" in messages
    assert "the alignment of this model has not formed" in messages


def test_a_profile_of_one_direction_for_two(directory, call):
    (directory / "p.json").write_text(ONE.to_json())
    words = ("extract", "run", "--reverse", "back", "--profile", "p.json", "-o", "out")
    status, messages = refused(call, directory, *words)
    assert (status, "--profile p.json: is of one direction, but two models are given" in messages) == (2, True)
    (directory / "p.json").write_text(TWO.to_json())
    assert call(*words)[0] == 0
