"""The documentation names the keys and columns that the commands write."""

import json
import re
from pathlib import Path

import pyarrow.parquet as pq

from alignment_eval.profiles.profile import fit_profile

DOCS = Path(__file__).resolve().parents[2] / "docs"
GOLD = ("--gold", "gold", "--gold-base", 0)


def test_keys(call, tmp_path, make_records, make_sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in (("gold", "0-0 1-1 2p2\n0-0\n"), ("hyp", "0-0\n\n"), ("text", "a b c\na\n")):
        Path(name).write_text(text)
    make_records(Path("records"), [make_sentence(0), make_sentence(1)], signature={"forced": True})

    def printed(*words):
        return call(*words)[1].splitlines()

    score = json.loads(printed("score", *GOLD, "hyp", "hyp", "--resamples", 200, "--diagnose", "--format", "json")[-1])
    texts = ("--source", "text", "--target", "text")
    printed("sweep", "records", *GOLD, "-o", "out", "--kinds", "attn_w")
    pages = {
        "commands/score.md": [
            *score,
            *score["differences"][0],
            *printed("score", *GOLD, "hyp", "--format", "sentences")[0].split("\t"),
        ],
        "commands/errors.md": json.loads(printed("errors", *GOLD, "hyp", *texts, "--format", "json")[0]),
        "commands/sweep.md": [
            *Path("out/sweep.csv").read_text().splitlines()[0].split(","),
            *json.loads(Path("out/sweep.json").read_text()),
        ],
        "profiles.md": fit_profile((), [0], "m").to_dict(),
        "records.md": pq.read_table("records").column_names,
    }
    for page, names in pages.items():
        assert set(names) - set(re.findall(r"`(\w+)`", (DOCS / page).read_text(encoding="utf-8"))) == set(), page
