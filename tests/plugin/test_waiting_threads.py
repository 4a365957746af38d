from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fairseq_norm_plugin.waiting_threads import is_own_command, let_waiting_threads_sleep

OWN = ["/usr/bin/python3", "/usr/bin/norm-align", "-s", "de"]


@pytest.mark.parametrize(
    ("words", "own"),
    [
        (OWN, True),
        (["norm-analyze", "data"], True),
        (["python", "-X", "dev", "-m", "fairseq_norm_plugin.align", "-s", "de"], True),
        (["python", "-m", "pytest", "norm-align"], False),
        (["python", "program.py", "norm-align"], False),
        (["python", "/usr/bin/fairseq-generate", "DATA"], False),
        (["python", "-m"], False),
        (["python"], False),
        ([""], False),
    ],
)
def test_commands_of_the_package(words: list[str], own: bool) -> None:
    assert is_own_command(words) == own


@pytest.mark.parametrize(("before", "after"), [(None, "passive"), ("active", "active")])
def test_what_the_environment_says_stays(monkeypatch: pytest.MonkeyPatch, before: str | None, after: str) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    if before:
        monkeypatch.setenv("OMP_WAIT_POLICY", before)
    let_waiting_threads_sleep(OWN)
    assert os.environ.pop("OMP_WAIT_POLICY") == after


def spin_count(*words: str) -> str:
    """What GNU's OpenMP says of itself when torch loads it."""
    environment = {
        name: value for name, value in os.environ.items() if name not in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")
    }
    environment["OMP_DISPLAY_ENV"] = "verbose"
    told = subprocess.run([sys.executable, *words], capture_output=True, text=True, env=environment, check=True).stderr
    counts = [line.split("'")[1] for line in told.splitlines() if "GOMP_SPINCOUNT" in line]
    return counts[0] if counts else pytest.skip("this torch has another OpenMP")


def test_openmp_hears_of_it_before_it_starts() -> None:
    assert spin_count("-m", "fairseq_norm_plugin.align", "--help") == "0"


def test_a_program_that_imports_the_plugin_is_left_alone() -> None:
    assert spin_count("-c", "import fairseq_norm_plugin") != "0"
