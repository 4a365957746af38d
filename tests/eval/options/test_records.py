from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.links.read import ReadOptions, read_gold
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.options.common import CommandParser
from alignment_eval.options.records import (
    add_configuration_arguments,
    configuration_fields,
    configurations_of,
    forced_records,
    gold_of_records,
    warn_skipped,
    with_progress,
)

Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]


@pytest.fixture
def directory(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> Path:
    return make_records(tmp_path / "run", [make_sentence(0), make_sentence(1)])


def test_configurations(directory: Path) -> None:
    parser = CommandParser()
    add_configuration_arguments(parser)
    args = parser.parse_args(
        ["--kinds", "attn_n,attn_n", "--settings", "awo", "--rules", "threshold=.2,threshold=0.20"]
    )
    args.final_punctuation = False
    options = configurations_of(args, forced_records(str(directory)))
    assert [(o.kind, o.setting, o.rule) for o in options] == [("attn_n", "awo", "threshold=0.2")] * len(options)
    assert configuration_fields(options)["rules"] == "threshold=0.2"


def test_records_of_translations_are_refused(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> None:
    run = make_records(tmp_path / "generated", [make_sentence(0)], signature={"generation": {"score_reference": False}})
    with pytest.raises(InputError, match="--score-reference"):
        forced_records(str(run))


def test_gold_of_as_many_sentences(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = forced_records(str(directory))
    assert [sentence.id for sentence in with_progress(records)] == [0, 1]
    for text, sentences in (("0-0\n\n", 2), ("1 1 1\n", 2), ("0-0\n", None)):
        (tmp_path / "gold").write_text(text)
        gold = read_gold(tmp_path / "gold", ReadOptions(base="0" if "-" in text else None))
        if sentences is None:
            with pytest.raises(InputError, match=r"gold: 1 sentences, but .*run has records of 2"):
                gold_of_records(gold, records)
        else:
            assert gold_of_records(gold, records).links.sentences == sentences
    assert "1 of 2 sentences have no line" in capsys.readouterr().err


def test_skipped_sentences_are_counted_by_reason(capsys: pytest.CaptureFixture[str]) -> None:
    warn_skipped({}, 9, "")
    warn_skipped({1: "too long", 2: "skipped", 5: "too long"}, 9, "so be it")
    (line,) = capsys.readouterr().err.splitlines()
    assert "3 of 9 sentences" in line
    assert line.endswith("so be it (2 too long, 1 skipped)")
