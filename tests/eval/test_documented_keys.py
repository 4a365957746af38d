"""The keys and columns that docs/formats.md lists are those that the commands write, in that order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FORMATS = (Path(__file__).resolve().parents[2] / "docs/formats.md").read_text(encoding="utf-8")


def documented(section: str, table: int = 0) -> list[str]:
    """The names in the first column of a table of a section of docs/formats.md."""
    _, found, rest = FORMATS.partition(f"# {section}\n")
    assert found, section
    text = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r"^\|[^\n]*\|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    first = [re.split(r"(?<!\\)\|", row)[1] for row in tables[table].splitlines()]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


@pytest.fixture
def files(tmp_path: Path, make_records: Callable[..., Path], make_sentence: Callable[..., Any]) -> Path:
    (tmp_path / "gold").write_text("0-0 1-1 2p2\n0-0\n")
    (tmp_path / "hyp").write_text("0-0\n\n")
    make_records(tmp_path / "records", [make_sentence(0), make_sentence(1)], signature={"forced": True})
    return tmp_path


def test_score(files: Path, align_eval: Callable[..., Any]) -> None:
    rows = files / "rows"
    gold = ("--gold", files / "gold", "--gold-base", 0)
    done = align_eval("score", *gold, "--hyp", files / "hyp", "--per-sentence", rows)
    assert list(json.loads(done.stdout)) == documented("Output of `align-eval score`"), done.stderr
    assert rows.read_text().splitlines()[0].split("\t") == documented("Output of `align-eval score`", 1)


def test_sweep(files: Path, align_eval: Callable[..., Any]) -> None:
    out = files / "out"
    done = align_eval("sweep", files / "records", "--gold", files / "gold", "--gold-base", 0, "--out", out)
    assert done.returncode == 0, done.stderr
    section = "Output of `align-eval extract` and `sweep`"
    assert (out / "sweep.csv").read_text().splitlines()[0].split(",") == documented(section)
    content = json.loads((out / "sweep.json").read_text())
    assert list(content) == documented(section, 1)
    assert list(content["rows"][0]) == documented(section)


def test_doctor(files: Path, align_eval: Callable[..., Any]) -> None:
    arguments = ("--gold", files / "gold", "--gold-base", 0, "--hyp", files / "hyp", "--format", "json")
    done = align_eval("doctor", *arguments)
    assert list(json.loads(done.stdout)) == documented("Output of `align-eval doctor`"), done.stderr


def test_records(files: Path) -> None:
    import pyarrow.parquet as pq

    names = documented("Records: what `--norm-records DIR` writes")
    assert set(pq.read_table(files / "records").column_names) <= set(names)
