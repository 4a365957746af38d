"""The script of docs/use.md: scripts/results/use.py."""

from functools import partial
from pathlib import Path

import pytest

from alignment_eval.transfer.markup import parse_markup

ROOT = Path(__file__).resolve().parents[3]
GERMAN = "Anna\tB-PER\nlebt\tO\nin\tO\nGraz\tB-LOC\n\nGraz\tB-LOC\nruht\tO\n"
ENGLISH = "Graz\tB-LOC\nhouses\tO\nAnna\tB-PER\n\nGraz\tB-LOC\nrests\tO\n"
LINES = [
    {"en": "Press <b>Stop</b> now.", "de": "Jetzt <b>Halt</b> drücken."},
    {"en": "a <i>tree</i> and <b>two</b>", "de": "<i>ein Baum</i> und <b> zwei</b>"},
]


@pytest.fixture(autouse=True)
def _path(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))


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


@pytest.mark.parametrize("source", ["de", "en"])
def test_lines_and_tags_that_are_right(tmp_path, source):
    import use

    sides = {language: [parse_markup(line[language], "xml") for line in LINES] for language in ("de", "en")}
    (tmp_path / "links").write_text("0-2 1-1 2-0 3-3\n0-0 1-1 2-2 3-3\n")
    links = use.read_others([f"x={tmp_path}/links"])["x"]
    totals = [figure.total() for figure in use.tagged(sides, links, source)]
    assert [(int(total.sure), int(total.hypothesis_sure)) for total in totals] == [(2, 1), (3, 2)]
