"""A gold for training that is monitored, and what its log says."""

import json
import logging
import random
import re

import pytest


def words(side):
    return sum(not token.endswith("@@") for token in side.split())


@pytest.fixture(scope="module")
def gold(texts, tmp_path_factory):
    """A gold of subset test (texts[2]), base 1: word i with word n - 1 - i for sure, some others possible."""
    rng = random.Random(3)
    lines = []
    for source, target in texts[2]:
        size = words(source)
        assert size == words(target)
        links = [f"{i + 1}-{size - i}" for i in range(size) if rng.random() < 0.8]
        links += [f"{rng.randint(1, size)}p{rng.randint(1, size)}" for _ in range(2)]
        lines.append(" ".join(links) + "\n")
    path = tmp_path_factory.mktemp("gold") / "gold.talp"
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def logged(caplog):
    """The figures of each validation of a subset, as fairseq's JSON log has them."""
    caplog.set_level(logging.INFO)

    def read(subset):
        lines = [json.loads(record.message) for record in caplog.records if record.name == subset]
        return [{key.removeprefix(f"{subset}_"): value for key, value in line.items()} for line in lines]

    return read


def halves(lines):
    """The last figures of two runs of equal length."""
    return lines[len(lines) // 2 - 1], lines[-1]


def comparable(lines):
    """The figures of log lines that two runs of one training share: no AER, no times."""
    times = re.compile(r".*aer|.*mixing|.*wps|.*ups|.*wall|.*best")
    return [{name: value for name, value in line.items() if not times.match(name)} for line in lines]
