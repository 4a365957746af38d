from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.links.read import ReadOptions, read_hypothesis
from alignment_eval.options.alignments import (
    add_gold_arguments,
    add_hypothesis_arguments,
    add_text_arguments,
    check_standard_input,
    gold_of,
    hypothesis_options,
    reading_fields,
    score_files,
    texts_of,
)


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "gold": "0-1 1-2 2-0\n0-0\n",
        "hyp": "1-0 2-1 0-2\n0-0\n",
        "one": "0-0\n",
        "none": "\n\n",
    }.items():
        Path(name).write_text(text)


def parsed(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_gold_arguments(parser)
    add_hypothesis_arguments(parser)
    add_text_arguments(parser)
    return parser.parse_args(["--gold", "gold", "hyp", *words])


def test_how_files_are_read() -> None:
    args = parsed("--gold-base", "1", "--gold-swap", "--hyp-base", "0-unused", "--hyp-allow-possible")
    assert (args.gold_base, args.gold_swap) == ("1", True)
    assert hypothesis_options(args) == ReadOptions(base="0-unused", allow_possible=True)


def test_files_are_scored_with_their_checks(capsys: pytest.CaptureFixture[str]) -> None:
    gold = gold_of(parsed("--gold-base", "0"), None)
    assert score_files(read_hypothesis("hyp"), gold).aer == 0.75
    assert "give --hyp-swap" in capsys.readouterr().err
    with pytest.raises(InputError, match="one has 1 sentences, gold has 2"):
        score_files(read_hypothesis("one"), gold)
    fields = reading_fields("gold", gold)
    assert {name: fields[name] for name in fields if name != "gold"} == {
        "gold_format": "talp",
        "gold_base": 0,
        "gold_swap": False,
    }


def test_gold_without_links_is_warned_of(capsys: pytest.CaptureFixture[str]) -> None:
    gold_of(parsed("--gold", "none"), None)
    assert "none: the gold has no links" in capsys.readouterr().err


def test_texts_come_in_pairs() -> None:
    assert texts_of(parsed()) is None
    with pytest.raises(UsageError, match="only one of --source and --target"):
        texts_of(parsed("--source", "gold"))


def test_one_standard_input() -> None:
    check_standard_input(["-", None, "x"])
    with pytest.raises(UsageError, match="several inputs are -"):
        check_standard_input(["-", "-"])
