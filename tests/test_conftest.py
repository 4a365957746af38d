"""What fixtures make once for all workers."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import make_once

PROGRAM = """
import sys, time
from pathlib import Path
from tests.conftest import make_once

def make(directory):
    time.sleep(0.2)
    (directory / "made").open("x")

print(make_once(Path(sys.argv[1]), "model", make))
"""


def test_processes_make_it_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "shared")]
    root = Path(__file__).parents[1]
    running = [subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert {process.communicate()[0].strip() for process in running} == {str(tmp_path / "shared/model")}
    assert [process.returncode for process in running] == [0, 0, 0]


def test_what_a_failure_left_is_made_anew(tmp_path: Path) -> None:
    def failing(directory: Path) -> None:
        (directory / "half").touch()
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        make_once(tmp_path, "model", failing)
    directory = make_once(tmp_path, "model", lambda directory: (directory / "whole").touch())
    assert [path.name for path in directory.iterdir()] == ["whole"]
    assert make_once(tmp_path, "model", failing) == directory
