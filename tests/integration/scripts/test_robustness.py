"""scripts/results/robustness.py: damaged text, and how far links agree."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAIRS = [([f"s{n}"], [f"t{n}"]) for n in range(200)]


@pytest.fixture
def robustness(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))
    import robustness

    return robustness


@pytest.mark.parametrize("where", ["one stretch", "single lines"])
def test_shifted_lines_have_each_others_targets(robustness, where):
    found = robustness.shifted(PAIRS, 0.05, where)
    wrong = [n for n, pair in enumerate(found) if pair != PAIRS[n]]
    assert len(wrong) == 10
    assert (wrong[-1] - wrong[0] == 9) == (where == "one stretch")
    assert [source for source, _ in found] == [source for source, _ in PAIRS]
    assert sorted(target for _, target in found) == sorted(target for _, target in PAIRS)


def test_dice_of_links(robustness):
    one, other = frozenset({(0, 0), (1, 1)}), frozenset({(0, 0)})
    assert robustness.dice([one, other], [other, other]) == pytest.approx(2 * 2 / (3 + 2))
    assert robustness.dice([frozenset()], [frozenset()]) == 0
