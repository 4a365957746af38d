"""The script of docs/use.md: scripts/results/use_markup.py."""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES = [
    {"en": "Press <b>Stop</b> now.", "de": "Jetzt <b>Halt</b> drücken."},
    {"en": "a <i>tree</i> and <b>two</b>", "de": "<i>ein Baum</i> und <b> zwei</b>"},
]


@pytest.mark.parametrize("source", ["de", "en"])
def test_lines_and_tags_that_are_right(monkeypatch, tmp_path, source):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))
    import use_markup

    (tmp_path / "lines").write_text("".join(f"{json.dumps(line)}\n" for line in LINES))
    (tmp_path / "links").write_text("0-2 1-1 2-0 3-3\n0-0 1-1 2-2 3-3\n")
    figures = use_markup.Corpus(tmp_path / "lines", tmp_path / "out").by_links(tmp_path / "links", source)
    totals = [figure.total() for figure in figures]
    assert [(int(total.sure), int(total.hypothesis_sure)) for total in totals] == [(2, 1), (3, 2)]
    assert (tmp_path / "out" / "words.de").read_text() == "jetzt halt drücken .\nein baum und zwei\n"
