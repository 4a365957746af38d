"""The script of docs/use.md: scripts/results/use.py."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
GERMAN = "Anna\tB-PER\nlebt\tO\nin\tO\nGraz\tB-LOC\n\nGraz\tB-LOC\nruht\tO\n"
ENGLISH = "Graz\tB-LOC\nhouses\tO\nAnna\tB-PER\n\nGraz\tB-LOC\nrests\tO\n"


@pytest.fixture
def corpus(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "results"))
    import use

    for language, text in (("de", GERMAN), ("en", ENGLISH)):
        (tmp_path / f"europarl-ner.{language}.conll").write_text(text)
    return use.Corpus(tmp_path, tmp_path / "out")


def test_span_f1_and_lead_in_both_directions(corpus, tmp_path):
    import use

    (tmp_path / "good").write_text("0-2 1-1 3-0\n0-0 1-1\n")
    (tmp_path / "poor").write_text("0-2 1-1 3-1\n0-1\n")
    good, poor = (
        [corpus.counts(tmp_path / name, "de", source) for source in ("de", "en")] for name in ("good", "poor")
    )
    assert [use.percent(counts) for counts in good] == ["100.0", "100.0"]
    assert use.percent(poor[0]) == "33.3"  # Anna; Graz is at two wrong words
    assert use.percent(poor[1]) == "50.0"  # Anna; Graz has no counterpart
    assert use.f1(good[0]).startswith("100.0 [100.0, 100.0]")
    assert use.lead(good[0], poor[0]).startswith("+66.7 [")
    assert use.lead(poor[0], good[0]).startswith("-66.7 [")
    assert corpus.lowercased["de"].read_text() == "anna lebt in graz\ngraz ruht\n"
