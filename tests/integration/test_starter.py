"""A started command is what a new process of the same words is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHOW = "import os, sys; print(sys.argv, os.getcwd(), os.environ['HERE'], sys.stdin.read(), sys.path)"
LOGGING = "import logging, {}; print(logging.root.level, len(logging.root.handlers))"


@pytest.fixture
def both(bin_directory, tmp_path):
    """What a started and a new python do: status, stdout, stderr."""

    def run(*words, **environment):
        environment = {**os.environ, "HERE": "1", **environment}
        files = {"input": "typed", "capture_output": True, "text": True, "cwd": tmp_path, "check": False}
        done = [
            subprocess.run([str(python), *words], env=environment, **files)
            for python in (bin_directory / "python", sys.executable)
        ]
        return [(each.returncode, each.stdout, each.stderr) for each in done]

    return run


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["-c", SHOW, "a"], 0),
        (["-m", "module", "a"], 0),
        (["script.py", "a"], 0),
        (["-c", "import sys; sys.exit(3)"], 3),
        (["-c", "import sys; sys.exit('why')"], 1),
        (["-c", "import os; os.kill(os.getpid(), 9)"], -9),
    ],
)
def test_words_files_and_exit(both, tmp_path, words, status):
    for name in ("module.py", "script.py"):
        (tmp_path / name).write_text(SHOW)
    started, new = both(*words)
    assert started == new
    assert started[0] == status


def test_an_exception(both):
    for status, out, err in both("-c", "print(1); 1 / 0"):
        assert (status, out) == (1, "1\n")
        assert err.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_variables_that_an_interpreter_reads_as_it_starts(both):
    started, new = both("-c", "print(hash('a'))", PYTHONHASHSEED="5")
    assert started == new


@pytest.mark.parametrize(
    ("module", "said"), [("fairseq", "10 1\n"), ("fairseq_norm_plugin", "30 0\n"), ("fairseq_cli.train", "20 1\n")]
)
def test_logging_is_set_up_as_by_a_first_import(command, bin_directory, module, said):
    """A new process says the same, after seconds."""
    assert command(bin_directory / "python", "-c", LOGGING.format(module), PYTHONPATH=str(ROOT)).stdout == said
