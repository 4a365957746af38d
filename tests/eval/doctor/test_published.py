"""The doctor on the De-En gold of Vilar et al. (2006) and the stored outputs of aligners, corrupted in every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alignment_eval.doctor.diagnosis import Diagnosis, diagnose
from alignment_eval.doctor.misreadings import FileEvidence, move_lines, plausible_bases
from alignment_eval.doctor.orientation import diagonal
from alignment_eval.formats.reading import ReadOptions, read_gold, read_hypothesis
from alignment_eval.formats.text import token_counts
from alignment_eval.links.table import GoldTable, LinkTable
from alignment_eval.scoring.aer import score

pytestmark = pytest.mark.shared

GOLD = "data/gold/vilar508/alignment.talp"
GIZA = "data/baselines/giza/test.deen.talp"
Lengths = tuple[Any, Any]


@pytest.fixture(scope="module")
def gold(shared: Path) -> GoldTable:
    """As it stands in the file, from 1."""
    return read_gold(shared / GOLD, ReadOptions(base="1")).links.shifted(1)


@pytest.fixture(scope="module")
def lengths(shared: Path) -> Lengths:
    folder = shared / "data/gold/vilar508"
    return token_counts(folder / "test.de"), token_counts(folder / "test.en")


@pytest.fixture(scope="module")
def baselines(shared: Path) -> dict[str, LinkTable]:
    paths = sorted((shared / "data/baselines").glob("*/*.talp"))
    assert len(paths) == 14
    return {str(path): read_hypothesis(path, ReadOptions(swap="reverse" in path.name)).links.possible for path in paths}


def doctor(
    gold: GoldTable, links: LinkTable, bases: tuple[int, int] = (1, 0), lengths: Lengths | None = None
) -> Diagnosis:
    plausible = plausible_bases(gold.possible), plausible_bases(links)
    evidence = FileEvidence(gold, GoldTable(links, links), *plausible, lengths)
    return diagnose(evidence, {"gold-base": bases[0], "hyp-base": bases[1], "gold-swap": False, "hyp-swap": False})


def test_figures_of_giza(gold: GoldTable, lengths: Lengths, baselines: dict[str, LinkTable]) -> None:
    """AER as read, what is named, AER corrected."""
    giza = next(links for path, links in baselines.items() if path.endswith(GIZA))
    for name, aer, found in (
        ("gold-base", 62.7, doctor(gold, giza, (0, 0))),
        ("hyp-swap", 81.5, doctor(gold, giza.transposed(), lengths=lengths)),
        ("gold-swap", 81.5, doctor(gold.transposed(), giza, lengths=lengths)),
    ):
        assert found.explanation is not None
        assert (found.explanation.name, found.equal) == (name, ())
        assert (round(100 * found.read.aer, 1), round(100 * found.explanation.aer, 1)) == (aer, 21.0)


def test_every_fault_of_every_file_is_named(gold: GoldTable, lengths: Lengths, baselines: dict[str, LinkTable]) -> None:
    for path, links in baselines.items():
        for name, found in {
            "hyp-base": doctor(gold, links.shifted(1)),
            "gold-base + hyp-base": doctor(gold, links, (0, 1)),
            "hyp-base + hyp-swap": doctor(gold, links.transposed().shifted(1), lengths=lengths),
            "hyp-base + lines": doctor(gold, move_lines(links.shifted(1), -1, 400)),
        }.items():
            assert found.explanation is not None, (path, name)
            assert found.explanation.name == name, path


@pytest.mark.parametrize(("by", "start"), [(1, 0), (2, 0), (-3, 300), (1, 490)])
def test_moved_lines_of_every_file(gold: GoldTable, baselines: dict[str, LinkTable], by: int, start: int) -> None:
    for path, links in baselines.items():
        found = doctor(gold, move_lines(links, by, start)).explanation
        assert found is not None, path
        assert found.name == "lines", path
        line = int(found.corrections[0].fault.split("about line ")[1].split(":")[0])
        assert abs(line - (start + 1)) <= 1, path


def test_nothing_is_named_for_files_as_they_are(gold: GoldTable, baselines: dict[str, LinkTable]) -> None:
    for path, links in baselines.items():
        found = doctor(gold, links)
        assert found.explanation is None, path
        assert found.read.aer == score(links, gold.shifted(-1)).aer


def test_nothing_is_named_for_poor_alignments(gold: GoldTable, lengths: Lengths) -> None:
    source, target = lengths
    straight = diagonal(lengths)
    assert round(100 * score(straight, gold.shifted(-1)).aer, 1) == 74.4
    sources = np.random.default_rng(0).integers(0, source[straight.sentence])
    random = LinkTable.build(straight.sentence, sources, straight.target, 508)
    late = LinkTable(straight.keys[straight.target > 0] - 1, 508)  # the target word before, as in maps read a row late
    first = LinkTable.of([{(0, j) for j in range(size)} for size in target.tolist()])
    for links in (straight, random, late, first):
        for known in (None, lengths):
            assert doctor(gold, links, lengths=known).explanation is None


def test_command_line(shared: Path, align_eval: Callable[..., Any]) -> None:
    """De-En gold and texts, the hypothesis of the other direction; then the texts exchanged."""
    gold = ("doctor", "--gold", shared / GOLD, "--gold-base", "1", "--format", "json")
    texts = [shared / "data/gold/vilar508" / name for name in ("test.de", "test.en")]
    reverse = shared / "data/baselines/giza/test.deen.reverse.talp"
    done = align_eval(*gold, "--source", texts[0], "--target", texts[1], "--hyp", reverse)
    result = json.loads(done.stdout)
    assert (result["options"], round(100 * result["aer_corrected"], 1)) == ({"--hyp-swap": True}, 23.1)
    result = json.loads(align_eval(*gold, "--source", texts[1], "--target", texts[0], "--hyp", shared / GIZA).stdout)
    assert "1456 of 10534 links" in result["refused"][0]
    assert any("exchange --source and --target" in note for note in result["notes"])
