"""Scripts of the main table: scripts/results/baselines.py, scripts/results/systems.py and the figure of the table."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
GOLD = ["1-1 2-2\n", "1-1 2p2 3-3\n"]
LINKS = ["0-0 1-1\n", "0-1 2-2\n"]


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))


def write(path, lines):
    path.write_text("".join(lines))
    return path


def test_rows_have_aer_interval_and_p_against_the_baseline(tmp_path):
    import systems

    gold, one = write(tmp_path / "gold", GOLD), write(tmp_path / "one", LINKS)
    other = write(tmp_path / "other", ["0-0\n", "1-0 2-2\n"])  # target-source links
    rows = systems.systems(gold, [("ours", "a", "t", one, False), ("measured", "b", "t", other, True)], one)
    assert [row.aer for row in rows] == pytest.approx([25.0, 100 * (1 - 4 / 7)])
    assert rows[0].p is None  # the baseline itself
    assert rows[1].low <= rows[1].aer <= rows[1].high
    assert 0 < rows[1].p <= 1
    assert systems.table(rows).splitlines()[2].startswith("| ours | a | t | 25.00 [")


def test_links_of_the_reverse_direction_are_exchanged_and_cut_by_gold(tmp_path, monkeypatch):
    import baselines
    from experiment_steps import DEV, FILES, TEST, Experiment

    for gold, count in ((TEST, 2), (DEV, 1)):
        (tmp_path / gold).mkdir()
        for file in FILES[gold][:2]:
            write(tmp_path / gold / file, ["A B C\n"] * count)
    for language in ("de", "en"):
        write(tmp_path / f"pairs.{language}", ["x y\n"] * 3)
    experiment = Experiment(argparse.Namespace(gold=tmp_path), Path(), Path(), tmp_path / "out")
    asked = []

    def run(words):
        asked.append(words)
        write(Path(words[words.index("-f") + 1]), ["9-9\n"] * 3 + ["0-1 2-0\n", "\n", "1-2\n"])
        return {"seconds": 3.0, "memory": 5.0, "clock": 7.0}

    monkeypatch.setattr(baselines, "measured", run)
    baseline = baselines.Baseline(experiment, Path("/venv/bin/python"), tmp_path / "pairs", "eflomal")
    links = baseline.links("reverse")
    assert {gold: path.read_text() for gold, path in links.items()} == {TEST: "1-0 0-2\n\n", DEV: "2-1\n"}
    assert baseline.text("en").read_text() == "x y\n" * 3 + "a b c\n" * 3
    assert asked[0][:3] == ["/venv/bin/eflomal-align", "-s", str(baseline.text("en"))]
    baseline.links("reverse")
    assert len(asked) == 1  # made once
    assert json.loads((tmp_path / "out/made/eflomal-pairs-reverse.json").read_text())["memory"] == 5.0


def test_the_figure_has_systems_with_and_without_intervals(tmp_path):
    import systems_figure

    columns = ["group", "name", "text", "aer", "low", "high", "p"]
    lines = [("ours", "a", "t", 20.0, 19.0, 21.0, 0.1), ("published", "b", "t", 15.0, None, None, None)]
    table, picture = tmp_path / "systems.csv", tmp_path / "systems.svg"
    pd.DataFrame(lines, columns=columns).to_csv(table, index=False)
    systems_figure.main(str(table), str(picture))
    assert all(words in picture.read_text() for words in ("a – t", "20.0", "15.0"))
