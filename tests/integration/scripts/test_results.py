"""The scripts of the tables of results: systems.py of the main table, parts.py of its parts, use.py of the jobs."""

import argparse
import sys
from functools import partial

import pandas as pd
import pytest

from tests.demo import DEMO, lines, written
from tests.integration.scripts.preparing import SCRIPTS

GERMAN = "Anna\tB-PER\nlebt\tO\nin\tO\nGraz\tB-LOC\n\nGraz\tB-LOC\nruht\tO\n"
ENGLISH = "Graz\tB-LOC\nhouses\tO\nAnna\tB-PER\n\nGraz\tB-LOC\nrests\tO\n"


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS / "results"))


def test_rows_have_aer_interval_and_p_against_the_baseline(tmp_path):
    import systems
    from gold_sets import SETS, TEST, Gold

    (tmp_path / TEST).mkdir()
    texts = ("A B\nA B C\n", "X Y\nX Y Z\n", "1-1 2-2\n1-1 2p2 3-3\n")
    for file, text in zip(SETS[TEST][1], texts):
        (tmp_path / TEST / file).write_text(text)
    gold = Gold(tmp_path, TEST, tmp_path / "out")
    (tmp_path / "one").write_text("0-0 1-1\n0-1 2-2\n")
    (tmp_path / "other").write_text("0-0\n0-1 2-2\n")
    names = {"one": "both models, a (default)", "other": "German-English, norms of the best layer (2020)"}
    rows = [
        systems.system(gold, "ours", name, "87,652 pairs", tmp_path / file, tmp_path / "one")
        for file, name in names.items()
    ]
    assert [row["aer"] for row in rows] == pytest.approx([25.0, 100 * (1 - 4 / 7)])
    assert rows[0]["p"] is None  # the baseline itself
    assert rows[1]["low"] <= rows[1]["aer"] <= rows[1]["high"]
    assert 0 < rows[1]["p"] <= 1
    table, picture = tmp_path / "systems.csv", tmp_path / "systems.svg"
    published = {"set": TEST, "group": "published", "name": "Cross-Align", "text": "t", "aer": 15.0}
    pd.DataFrame([*rows, published]).to_csv(table, index=False)
    systems.figure(argparse.Namespace(csv=table, png=picture))
    assert all(words in picture.read_text() for words in (">ours, both models<", "25.0", "15.0"))


def test_parts_of_the_default(tmp_path, monkeypatch, capsys):
    """The default is that of the models; parts that a lexical table has are worth nothing without one."""
    import parts
    from gold_sets import DEV, SETS, Gold

    import fairseq_norm_plugin as fnp

    (tmp_path / DEV).mkdir()
    size = 12
    texts = [lines(language)[:size] for language in ("de", "en")]
    gold_lines = (DEMO / "demo.talp").read_text().splitlines()[:size]
    for file, text in zip(SETS[DEV][1], (*texts, gold_lines)):
        written(tmp_path / DEV / file, text)
    given = ["--gold", tmp_path, "--set", DEV, "--models", DEMO, "--out", tmp_path / "out"]

    def printed(*options):
        monkeypatch.setattr(sys, "argv", ["parts.py", *map(str, given), *options])
        parts.main()
        return [
            {cells[1]: cells[2:-1] for cells in ([*map(str.strip, row.split("|"))] for row in table.splitlines())}
            for table in capsys.readouterr().out.split("\n\n")
        ]

    orders, of_parts = printed()
    assert orders["AER %, order of the source"] == [f"{DEV}, {way}" for way in ("de-en", "en-de", "both")]
    assert orders["as it is"] == of_parts["all parts"]
    assert orders["random"] != orders["as it is"] != of_parts["without the order of words"]
    assert of_parts["without fertility"][:2] == of_parts["all parts"][:2]  # of two models only
    assert all(float(worse) > float(aer) for worse, aer in zip(of_parts[parts.UNIFORM], of_parts["all parts"]))
    links = fnp.load("demo", tokenizer="none").align(*texts)
    gold = Gold(tmp_path, DEV, tmp_path / "out")
    assert of_parts["all parts"][2] == f"{100 * gold.score([frozenset(pair.links) for pair in links]).aer:.2f}"
    _, of_none = printed("--table", "none")
    assert parts.UNIFORM not in of_none
    assert of_none["without first letters"] == of_none["all parts"]


def test_span_f1_and_lead_in_both_directions(tmp_path):
    import use

    for name, text in (("de.conll", GERMAN), ("en.conll", ENGLISH)):
        (tmp_path / f"europarl-ner.{name}").write_text(text)
    (tmp_path / "good").write_text("0-2 1-1 3-0\n0-0 1-1\n")
    (tmp_path / "poor").write_text("0-2 1-1 3-1\n0-1\n")
    corpus = use.read_labelled(tmp_path)
    others = use.read_others([f"good={tmp_path}/good", f"poor={tmp_path}/poor"])
    systems = {name: partial(use.projected, corpus, links) for name, links in others.items()}
    *_, good, poor = (row.split(" | ") for row in use.table(["spans"], systems, "good", leads=True).splitlines())
    assert good[1::2] == ["100.0 [100.0, 100.0]"] * 2
    assert poor[1].startswith("50.0 [")  # of English: Anna; Graz has no counterpart
    assert poor[2].startswith("+50.0 [")
    assert poor[3].startswith("33.3 [")  # of German: Anna; Graz is at two wrong words
    assert poor[4].startswith("+66.7 [")
    assert "| -66.7 [" in use.table(["spans"], systems, "good", leads=False)
