from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.options import ExtractionOptions, parse_maps
from alignment_eval.records.store import RunInfo
from alignment_eval.selection.choice_file import (
    Choice,
    check_maps,
    model_warning,
    read_choice,
    same_sentences,
    text_hash,
)

CHOICE = Choice(
    chosen_by="dev-gold",
    extraction=ExtractionOptions(
        "attn_n", heads=parse_maps("1.2,0"), combine="product", setting="awo", rule="threshold=0.2", null="mask"
    ),
    reverse_heads=None,
    figure=0.25,
    candidates=12,
    sentences=3,
    model="m1",
    data="d1",
    text="t1",
    gold="g1",
    signature="records:x",
)
AGREED = replace(CHOICE, chosen_by="agreement", gold=None, reverse_heads="3.1", model=None, data=None)


def info(**signature: Any) -> RunInfo:
    return RunInfo(
        signature,
        "hash",
        kinds=("attn_w",),
        layers=(0, 1),
        heads=3,
        dtype="float32",
        size=3,
        nbest=1,
        shard=0,
        shards=1,
    )


@pytest.mark.parametrize("choice", [CHOICE, AGREED])
def test_round_trip(tmp_path: Path, choice: Choice) -> None:
    (tmp_path / "c").write_text(choice.to_json(), encoding="utf-8")
    assert read_choice(tmp_path / "c") == choice


def test_maps_of_the_other_direction() -> None:
    assert CHOICE.reverse_extraction == CHOICE.extraction
    assert AGREED.reverse_extraction == replace(CHOICE.extraction, heads=(), layer=3, head=1)


def test_signature_says_what_was_chosen_on() -> None:
    assert CHOICE.fields() == {"chosen_by": "dev-gold", "chosen_on": "d1", "chosen_gold": "g1"}
    assert AGREED.fields() == {"chosen_by": "agreement", "chosen_on": "t1", "chosen_gold": None}


CONTENT = json.loads(CHOICE.to_json())


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        "3",
        "null",
        "{}",
        {**CONTENT, "choice": 2},
        {**CONTENT, "chosen_by": "luck"},
        {key: value for key, value in CONTENT.items() if key != "aer"},
        {key: value for key, value in CONTENT.items() if key != "data"},
        {**CONTENT, "more": 1},
        {**CONTENT, "aer": "low"},
        {**CONTENT, "aer": None},
        {**CONTENT, "extraction": None},
        {**CONTENT, "extraction": {**CONTENT["extraction"], "rule": "best"}},
        {**CONTENT, "extraction": {**CONTENT["extraction"], "heads": "a"}},
        {**CONTENT, "extraction": {**CONTENT["extraction"], "heads": 1}},
        {**CONTENT, "extraction": {**CONTENT["extraction"], "layer": 1}},
        {**CONTENT, "reverse_heads": "a"},
    ],
)
def test_no_choice_file(tmp_path: Path, content: Any) -> None:
    (tmp_path / "c").write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(
        InputError, match=r"/c: no choice file of version 1 \(.+\): expected a file that align-eval select"
    ):
        read_choice(tmp_path / "c")


def test_unreadable(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"/c: cannot be read \(No such file or directory\): expected a file that align"
    ):
        read_choice(tmp_path / "c")
    for content in (b"0-0 1-1\n", b"\xff\xfe", b""):
        (tmp_path / "c").write_bytes(content)
        with pytest.raises(
            InputError, match=r"/c: no JSON \(.+\): expected a file that align-eval select wrote; select a"
        ):
            read_choice(tmp_path / "c")


def test_another_model() -> None:
    maps = CHOICE.extraction.maps
    check_maps(CHOICE, "c", maps, info(), "run")
    for names, shown in (("2.0", "2.0"), ("1,7", "7"), ("0.3", "0.3")):
        with pytest.raises(
            InputError,
            match=rf"c: chose {shown} \(LAYER.HEAD, or LAYER for a whole one\), but run holds layers 0, 1 of 3 hea",
        ):
            check_maps(CHOICE, "c", parse_maps(names), info(), "run")
    assert model_warning(CHOICE, "c", info(model="m1"), "run") is None
    assert model_warning(AGREED, "c", info(model="m2"), "run") is None  # not known on which model
    warning = model_warning(CHOICE, "c", info(model="m2"), "run")
    assert warning is not None
    assert warning.startswith("c: chosen on model m1, but run is of model m2: layers and heads of the same number")


def test_the_same_sentences() -> None:
    assert same_sentences(CHOICE, info(data="d1"), "t2")
    assert same_sentences(CHOICE, info(data="d2"), "t1")  # binarised again, or cut into other subwords
    assert not same_sentences(CHOICE, info(data="d2"), "t2")
    assert not same_sentences(AGREED, info(), "t2")  # neither says its data


def test_hash_of_words() -> None:
    pairs = [(0, (["a"], ["x", "y"])), (1, (["b"], []))]
    assert text_hash(pairs) == text_hash(reversed(pairs))
    others = [
        pairs[:1],
        [(0, (["a", "x"], ["y"])), pairs[1]],
        [(1, pairs[0][1]), (0, pairs[1][1])],
        [(0, (["ax"], ["y"])), pairs[1]],
    ]
    assert len({text_hash(other) for other in [pairs, *others]}) == 5
