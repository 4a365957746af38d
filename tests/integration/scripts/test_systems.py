"""Scripts of the main table: scripts/results/systems.py and baselines.py."""

import argparse
from pathlib import Path

import pandas as pd
import pytest

ROOT = Path(__file__).resolve().parents[3]
LINKS = ["0-0 1-1\n", "0-1 2-2\n"]


@pytest.fixture
def gold(monkeypatch, tmp_path):
    """A gold set of two pairs, and its links."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))
    from gold_sets import SETS, TEST, Gold

    (tmp_path / TEST).mkdir()
    texts = ("A B\nA B C\n", "X Y\nX Y Z\n", "1-1 2-2\n1-1 2p2 3-3\n")
    for file, text in zip(SETS[TEST][1], texts):
        (tmp_path / TEST / file).write_text(text)
    return Gold(tmp_path, TEST, tmp_path / "out")


def test_rows_have_aer_interval_and_p_against_the_baseline(gold, tmp_path):
    import systems

    (tmp_path / "one").write_text("".join(LINKS))
    (tmp_path / "other").write_text("0-0\n0-1 2-2\n")
    rows = [systems.system(gold, "ours", name, "t", tmp_path / name, tmp_path / "one") for name in ("one", "other")]
    assert [row["aer"] for row in rows] == pytest.approx([25.0, 100 * (1 - 4 / 7)])
    assert rows[0]["p"] is None  # the baseline itself
    assert rows[1]["low"] <= rows[1]["aer"] <= rows[1]["high"]
    assert 0 < rows[1]["p"] <= 1
    table, picture = tmp_path / "systems.csv", tmp_path / "systems.svg"
    pd.DataFrame([*rows, {"group": "published", "name": "b", "text": "t", "aer": 15.0}]).to_csv(table, index=False)
    systems.figure(argparse.Namespace(csv=table, png=picture))
    assert all(words in picture.read_text() for words in ("one – t", "25.0", "15.0"))
