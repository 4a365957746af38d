"""The documentation names the keys and columns that the commands write."""

import json
import re
from pathlib import Path

import pytest

from alignment_eval.profiles.profile import fit_profile

DOCS = Path(__file__).resolve().parents[2] / "docs"


def undocumented(names, page):
    """The names that a page does not have as code."""
    return set(names) - set(re.findall(r"`(\w+)`", (DOCS / page).read_text(encoding="utf-8")))


@pytest.fixture(autouse=True)
def _files(tmp_path, make_records, make_sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("gold", "0-0 1-1 2p2\n0-0\n"), ("hyp", "0-0\n\n"), ("text", "a b c\na\n")):
        Path(name).write_text(text)
    make_records(Path("records"), [make_sentence(0), make_sentence(1)], signature={"forced": True})


GOLD = ("--gold", "gold", "--gold-base", 0)


@pytest.mark.parametrize(
    "command",
    [
        ("score", *GOLD, "hyp", "hyp", "--resamples", 200, "--diagnose"),
        ("errors", *GOLD, "hyp", "--source", "text", "--target", "text"),
    ],
)
def test_json(call, command):
    result = json.loads(call(*command, "--format", "json")[1].splitlines()[-1])
    keys = {*result}.union(*result.get("differences", ()))
    assert undocumented(keys, f"commands/{command[0]}.md") == set()


def test_files(call):
    table = call("score", *GOLD, "hyp", "--format", "sentences")[1]
    assert undocumented(table.splitlines()[0].split("\t"), "commands/score.md") == set()
    assert call("sweep", "records", *GOLD, "-o", "out", "--kinds", "attn_w")[0] == 0
    assert undocumented(Path("out/sweep.csv").read_text().splitlines()[0].split(","), "commands/sweep.md") == set()
    assert undocumented(json.loads(Path("out/sweep.json").read_text()), "commands/sweep.md") == set()
    assert undocumented(fit_profile((), [0], "m").to_dict(), "profiles.md") == set()


def test_records():
    import pyarrow.parquet as pq

    assert undocumented(pq.read_table("records").column_names, "records.md") == set()
