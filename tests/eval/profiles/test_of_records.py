"""Profiles and lexicons that do not fit: every command that reads them says why, in one line, and writes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alignment_eval.extraction.options import MapName
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.profiles.profile import calibrated, together
from alignment_eval.profiles.search import Agreement

Call = Callable[..., tuple[int, str, str]]
Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]

PAIRS = 32
AGREEMENT = Agreement(MapName(0, 1, "awi"), MapName(1), 0.5, 99)
ONE = calibrated(AGREEMENT, (0, 1), "synthetic", "t", 99)
TWO = together(ONE, calibrated(AGREEMENT, (0, 1), "back", "t", 99))


def changed(**fields: Any) -> str:
    return json.dumps({**json.loads(ONE.to_json()), **fields})


#: Content of a profile, and what is said of it.
BAD = {
    "another model": (replace(ONE, model="other").to_json(), "is the profile of model other, but the model at hand is"),
    "a later version": (changed(profile=2), "damaged, or not a profile (profile is 2: expected version 1"),
    "cut": (ONE.to_json()[:-30], "damaged, or not a profile (Input data was truncated"),
    "empty": ("", "damaged, or not a profile (Input data was truncated"),
    "a list": ("[]", "damaged, or not a profile (the content is []"),
    "no method": (changed(alone=None), "damaged, or not a profile (alone is None"),
    "an unknown rule": (
        changed(streamed={**ONE.streamed.to_dict(), "forward": {**ONE.streamed.forward.to_dict(), "rule": "best"}}),
        "damaged, or not a profile (streamed.forward: unknown rule 'best'",
    ),
    "other layers": (
        replace(calibrated(None, (8, 9), "synthetic", "t", 99)).to_json(),
        "reads map 8 (LAYER.HEAD, or LAYER for a whole one), but",
    ),
}


@pytest.fixture
def directory(tmp_path: Path, make_sentence: Factory, make_records: Writer, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of 32 pairs in both directions, and gold."""
    monkeypatch.chdir(tmp_path)
    words = ("a b c . </s>", "x y z . </s>")
    made = [make_sentence(k, *words) for k in range(PAIRS)]
    make_records(tmp_path / "run", made)
    exchanged = [make_sentence(k, *words[::-1]) for k in range(PAIRS)]
    make_records(tmp_path / "back", exchanged, signature={"model": "back"})
    (tmp_path / "gold").write_text("0-0 1-1\n" * PAIRS)
    return tmp_path


COMMANDS = {
    "extract": ("extract", "run", "-o", "out"),
    "report": ("report", "run", "--gold", "gold", "--gold-base", 0, "-o", "out"),
}


def refused(call: Call, directory: Path, *words: object) -> tuple[int, str]:
    before = sorted(path.name for path in directory.iterdir())
    status, out, messages = call(*words)
    assert (out, len(messages.splitlines())) == ("", 1), messages
    assert sorted(path.name for path in directory.iterdir()) == before
    return status, messages


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("content", "text"), BAD.values(), ids=BAD)
def test_a_named_profile(directory: Path, call: Call, command: tuple[object, ...], content: str, text: str) -> None:
    (directory / "p.json").write_text(content)
    status, messages = refused(call, directory, *command, "--profile", "p.json")
    assert status == 1
    assert f"p.json: {text}" in messages
    status, messages = refused(call, directory, *command, "--profile", "none.json")
    assert (status, "none.json: cannot be read as a profile" in messages) == (1, True)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize(("content", "text"), [BAD[name] for name in ("a later version", "cut", "no method")])
def test_a_profile_that_the_records_carry(
    directory: Path,
    make_sentence: Factory,
    make_records: Writer,
    call: Call,
    command: tuple[Any, ...],
    content: str,
    text: str,
) -> None:
    made = [make_sentence(k, "a b c . </s>", "x y z . </s>") for k in range(PAIRS)]
    make_records(directory / "carrying", made, profile=content)
    status, messages = refused(call, directory, command[0], "carrying", *command[2:])
    assert status == 1
    assert f"carrying: {text}" in messages
    assert "or pass --profile none" in messages
    status, _, messages = call(command[0], "carrying", *command[2:], "--profile", "none")
    assert status == 0, messages


def test_without_a_profile_the_records_decide(
    directory: Path, make_sentence: Factory, make_records: Writer, call: Call
) -> None:
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


def test_a_profile_of_one_direction_for_two(directory: Path, call: Call) -> None:
    (directory / "p.json").write_text(ONE.to_json())
    words = ("extract", "run", "--reverse", "back", "--profile", "p.json", "-o", "out")
    status, messages = refused(call, directory, *words)
    assert (status, "--profile p.json: is of one direction, but two models are given" in messages) == (2, True)
    (directory / "p.json").write_text(TWO.to_json())
    assert call(*words)[0] == 0


def test_a_profile_of_two_for_another_second_model(directory: Path, call: Call) -> None:
    (directory / "p.json").write_text(replace(TWO, reverse_model="third").to_json())
    status, messages = refused(
        call, directory, "extract", "run", "--reverse", "back", "--profile", "p.json", "-o", "out"
    )
    assert status == 1
    assert "p.json: was chosen for model third of the other direction, but that at hand is back" in messages


WORDS = [f"{letter}{number}" for letter in "abcdefgh" for number in range(10)]


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda word: word.replace("a", "A"), "are in the lexicon in another case only"),
        (lambda word: f"{word}-", "are not in the lexicon"),
    ],
    ids=["case", "tokenisation"],
)
def test_a_lexicon_of_other_preprocessing(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, call: Call, change: Callable[[str], str], text: str
) -> None:
    def sentences(changed: Callable[[str], str]) -> list[SentenceMaps]:
        sides = (" ".join(map(changed, WORDS[k : k + 5])) for k in range(40))
        return [make_sentence(k, f"{side} </s>", f"{side} </s>") for k, side in enumerate(sides)]

    make_records(tmp_path / "mine", sentences(str))
    make_records(tmp_path / "other", sentences(change))
    rule = ("--kind", "attn_n", "--layer", 1, "--setting", "awo", "--rule", "two-way=0.3")
    lexicon = tmp_path / "lexicon"
    assert call("extract", tmp_path / "other", *rule, "--lexicon", 1, "--save-lexicon", lexicon)[0] == 0
    status, messages = refused(call, tmp_path, "extract", tmp_path / "mine", *rule, "--lexicon-file", lexicon)
    assert status == 1
    assert str(lexicon) in messages
    assert text in messages
