"""The memory of commands that read large files: little more than what the links and the words take as numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("large_files.py")
LINES = 40_000
#: MB of the process; before the commands worked block by block they took 352, 258 and 150 MB.
LIMITS = {"errors": 230, "doctor": 170, "symmetrize": 120}
READ = ["--gold", "gold.talp", "--gold-base", "0", "forward.pharaoh"]
TEXTS = ["--source", "text.source", "--target", "text.target"]
COMMANDS = {
    "errors": [*READ, *TEXTS],
    "doctor": [*READ, *TEXTS],
    "symmetrize": ["forward.pharaoh", "reverse.pharaoh", "--method", "grow-diag-final"],
}

MEASURED = """
import sys
from alignment_eval import cli
cli.main(sys.argv[1:])
print(open("/proc/self/status").read())
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    directory = tmp_path_factory.mktemp("large")
    subprocess.run([sys.executable, SCRIPT, directory, "--lines", str(LINES)], check=True)
    return directory


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize("name", ["errors", *(pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS)])
def test_peak(large, name):
    command = [sys.executable, "-c", MEASURED, name, *COMMANDS[name]]
    said = subprocess.run(command, cwd=large, capture_output=True, text=True, check=True).stdout
    assert int(re.search(r"VmHWM:\s*(\d+) kB", said)[1]) / 1000 < LIMITS[name]
