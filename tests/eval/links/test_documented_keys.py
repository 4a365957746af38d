"""The keys and columns that the documentation lists are those that the commands write, in that order."""

import json
import re
from pathlib import Path

import pytest

from alignment_eval.profiles.profile import fit_profile

DOCS = Path(__file__).resolve().parents[3] / "docs"


def documented(section=None, table=0, page="output.md"):
    """The names in the first column of a table of a page, or of a section of it."""
    text = (DOCS / page).read_text(encoding="utf-8")
    if section is not None:
        _, found, rest = text.partition(f"# {section}\n")
        assert found, section
        text = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    tables = re.findall(r"^\|[^\n]*\|\n\|[-|]+\|\n((?:\|.*\n)+)", text, re.MULTILINE)
    first = [re.split(r"(?<!\\)\|", row)[1] for row in tables[table].splitlines()]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


@pytest.fixture(autouse=True)
def _files(tmp_path, make_records, make_sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("gold", "0-0 1-1 2p2\n0-0\n"), ("hyp", "0-0\n\n"), ("text", "a b c\na\n")):
        Path(name).write_text(text)
    make_records(Path("records"), [make_sentence(0), make_sentence(1)], signature={"forced": True})


GOLD = ("--gold", "gold", "--gold-base", 0)
SCORE, SWEEP = "Output of `align-eval score`", "Output of `align-eval sweep`"


@pytest.mark.parametrize(
    ("command", "table"),
    [
        (("score", *GOLD, "hyp", "--resamples", 200, "--diagnose"), {"section": SCORE}),
        (("compare", *GOLD, "hyp", "hyp"), {"page": "commands/compare.md"}),
        (("errors", *GOLD, "hyp", "--source", "text", "--target", "text"), {"table": 1, "page": "commands/errors.md"}),
    ],
)
def test_json(call, command, table):
    assert list(json.loads(call(*command, "--format", "json")[1])) == documented(**table)


def test_files(call):
    table = call("score", *GOLD, "hyp", "--format", "sentences")[1]
    assert table.splitlines()[0].split("\t") == documented(SCORE, 1)
    assert call("sweep", "records", *GOLD, "--out", "out", "--kinds", "attn_w")[0] == 0
    assert Path("out/sweep.csv").read_text().splitlines()[0].split(",") == documented(SWEEP)
    content = json.loads(Path("out/sweep.json").read_text())
    assert list(content) == documented(SWEEP, 1)
    assert list(content["rows"][0]) == documented(SWEEP)
    assert list(fit_profile((), [0], "m").to_dict()) == documented("The file", page="profiles.md")


def test_records():
    import pyarrow.parquet as pq

    names = documented("Records: what `--norm-records DIR` writes", page="records.md")
    assert set(pq.read_table("records").column_names) <= set(names)
