"""The keys and columns that the documentation lists are those that the commands write, in that order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[3] / "docs"


def documented(section: str | None = None, table: int = 0, page: str = "formats.md") -> list[str]:
    """The names in the first column of a table of a page, or of a section of it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section is not None:
        _, found, rest = text.partition(f"# {section}\n")
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
    arguments = (
        "--gold",
        files / "gold",
        "--gold-base",
        0,
        files / "hyp",
        "--per-sentence",
        rows,
        "--overwrite",
    )
    names = documented("Output of `align-eval score`")
    assert (
        list(json.loads(align_eval("score", "--format", "json", *arguments, "--confidence", "--diagnose").stdout))
        == names
    )
    assert list(json.loads(align_eval("score", "--format", "json", *arguments).stdout)) == [
        name for name in names if name not in ("confidence", "diagnosis")
    ]
    assert rows.read_text().splitlines()[0].split("\t") == documented("Output of `align-eval score`", 1)


def test_compare(files: Path, align_eval: Callable[..., Any]) -> None:
    done = align_eval(
        "compare", "--format", "json", "--gold", files / "gold", "--gold-base", 0, files / "hyp", files / "hyp"
    )
    assert list(json.loads(done.stdout)) == documented(page="commands/compare.md")


def test_errors(files: Path, align_eval: Callable[..., Any]) -> None:
    for name in ("source", "target"):
        (files / name).write_text("a b c\na\n")
    texts = ("--source", files / "source", "--target", files / "target")
    done = align_eval("errors", "--format", "json", "--gold", files / "gold", "--gold-base", 0, files / "hyp", *texts)
    assert list(json.loads(done.stdout)) == documented(table=1, page="commands/errors.md")


def test_sweep(files: Path, align_eval: Callable[..., Any]) -> None:
    out = files / "out"
    done = align_eval(
        "sweep", files / "records", "--gold", files / "gold", "--gold-base", 0, "--out", out, "--kinds", "attn_w"
    )
    assert done.returncode == 0, done.stderr
    section = "Output of `align-eval extract` and `sweep`"
    assert (out / "sweep.csv").read_text().splitlines()[0].split(",") == documented(section)
    content = json.loads((out / "sweep.json").read_text())
    assert list(content) == documented(section, 1)
    assert list(content["rows"][0]) == documented(section)


def test_select(files: Path, align_eval: Callable[..., Any]) -> None:
    choice = files / "choice"
    done = align_eval(
        *("select", files / "records", "--dev-gold", files / "gold", "--gold-base", 0, "--output", choice),
        *("--kinds", "attn_w"),
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(choice.read_text())
    assert list(content) == documented(page="commands/select.md")


def test_records(files: Path) -> None:
    import pyarrow.parquet as pq

    names = documented("Records: what `--norm-records DIR` writes")
    assert set(pq.read_table(files / "records").column_names) <= set(names)
