"""The doctor on the De-En gold of Vilar et al. (2006) and the stored outputs of aligners, corrupted in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alignment_eval.doctor.diagnosis import Diagnosis, diagnose, diagonal
from alignment_eval.doctor.misreadings import Facts, Reading, move_lines
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.formats.text import token_counts
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import score

pytestmark = pytest.mark.shared

GOLD = "data/gold/vilar508/alignment.talp"
GIZA = "data/baselines/giza/test.deen.talp"


@pytest.fixture(scope="module")
def gold(shared: Path) -> GoldTable:
    """As it stands in the file, from 1."""
    return read_gold(shared / GOLD, ReadOptions(base="1")).links.shifted(1)


@pytest.fixture(scope="module")
def lengths(shared: Path) -> tuple[Any, Any]:
    folder = shared / "data/gold/vilar508"
    return token_counts(folder / "test.de"), token_counts(folder / "test.en")


@pytest.fixture(scope="module")
def baselines(shared: Path) -> dict[str, LinkTable]:
    paths = sorted((shared / "data/baselines").glob("*/*.talp"))
    assert len(paths) == 14
    return {str(path): read_hypothesis(path, ReadOptions(swap="reverse" in path.name)).links.possible for path in paths}


def doctor(
    gold: GoldTable, links: LinkTable, bases: tuple[int, int] = (1, 0), lengths: tuple[Any, Any] | None = None
) -> Diagnosis:
    hypothesis = GoldTable(links, links)
    return diagnose(Reading.of(gold, hypothesis, bases), Facts.of(gold, hypothesis, lengths))


def test_figures_of_giza(gold: GoldTable, lengths: tuple[Any, Any], baselines: dict[str, LinkTable]) -> None:
    """AER as read, what is named, AER corrected."""
    giza = next(links for path, links in baselines.items() if path.endswith(GIZA))
    figures = {
        "gold-base": doctor(gold, giza, (0, 0)),
        "hyp-swap": doctor(gold, giza.transposed(), lengths=lengths),
        "gold-swap": doctor(gold.transposed(), giza, lengths=lengths),
    }
    assert {name: round(100 * found.aer, 1) for name, found in figures.items()} == {
        "gold-base": 62.7,
        "hyp-swap": 81.5,
        "gold-swap": 81.5,
    }
    for name, found in figures.items():
        assert found.explanation is not None
        assert (found.explanation.name, found.equal) == (name, ())
        assert round(100 * found.explanation.aer, 1) == 21.0


def test_every_corruption_of_every_file_is_named(
    gold: GoldTable, lengths: tuple[Any, Any], baselines: dict[str, LinkTable]
) -> None:
    for path, links in baselines.items():
        found = {
            "gold-base": doctor(gold, links, (0, 0)),
            "hyp-base": doctor(gold, links.shifted(1)),
            "gold-base + hyp-base": doctor(gold, links, (0, 1)),
            "hyp-swap": doctor(gold, links.transposed(), lengths=lengths),
            "gold-swap": doctor(gold.transposed(), links, lengths=lengths),
            "hyp-base + hyp-swap": doctor(gold, links.transposed().shifted(1), lengths=lengths),
            "hyp-swap + lines": doctor(gold, move_lines(links.transposed(), 1, 100), lengths=lengths),
            "hyp-base + lines": doctor(gold, move_lines(links.shifted(1), -1, 400)),
        }
        named = {name: diagnosis.explanation and diagnosis.explanation.name for name, diagnosis in found.items()}
        assert named == {name: name for name in found}, path


@pytest.mark.parametrize(("by", "start"), [(1, 0), (-1, 0), (2, 0), (1, 100), (-1, 250), (-3, 300), (1, 490)])
def test_moved_lines_of_every_file(gold: GoldTable, baselines: dict[str, LinkTable], by: int, start: int) -> None:
    for path, links in baselines.items():
        found = doctor(gold, move_lines(links, by, start)).explanation
        assert found is not None, path
        assert found.name == "lines", path
        line = int(found.changes[0].fault.split("about line ")[1].split(":")[0])
        assert abs(line - (start + 1)) <= 1, path


def test_nothing_is_named_for_files_as_they_are(gold: GoldTable, baselines: dict[str, LinkTable]) -> None:
    for path, links in baselines.items():
        found = doctor(gold, links)
        assert found.explanation is None, path
        assert found.aer == score(links, gold.shifted(-1)).aer


def test_nothing_is_named_for_poor_alignments(gold: GoldTable, lengths: tuple[Any, Any]) -> None:
    source, target = lengths
    rng = np.random.default_rng(0)
    straight = diagonal(lengths)
    assert round(100 * score(straight, gold.shifted(-1)).aer, 1) == 74.4
    random = LinkTable.build(straight.sentence, rng.integers(0, source[straight.sentence]), straight.target, 508)
    late = LinkTable(straight.keys[straight.target > 0] - 1, 508)  # the target word before, as in maps read a row late
    others = (random, late, LinkTable.of([{(0, j) for j in range(size)} for size in target.tolist()]))
    for links in (straight, *others):
        for known in (None, lengths):
            assert doctor(gold, links, lengths=known).explanation is None


def test_command_line(shared: Path, align_eval: Callable[..., Any]) -> None:
    """De-En gold and texts, the hypothesis of the other direction."""
    folder = shared / "data/gold/vilar508"
    arguments = ["--gold", shared / GOLD, "--gold-base", "1", "--source", folder / "test.de", "--target"]
    reverse = shared / "data/baselines/giza/test.deen.reverse.talp"
    done = align_eval("doctor", *arguments, folder / "test.en", "--hyp", reverse, "--format", "json")
    result = json.loads(done.stdout)
    assert result["options"] == {"--hyp-swap": True}
    assert round(100 * result["aer_corrected"], 1) == 23.1
    done = align_eval(
        "doctor", *arguments[:5], folder / "test.en", "--target", folder / "test.de", "--hyp", shared / GIZA
    )
    assert "as are 1456 of 10534 links" in " ".join(done.stdout.split())
    assert "exchange --source and --target" in done.stdout
