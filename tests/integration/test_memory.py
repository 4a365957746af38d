"""Large alignment files are read as a stream: memory does not grow with the text."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

READ = ["--gold", "gold", "--gold-base", "0", "forward"]
COMMANDS = {
    "score": [*READ, "--format", "tsv"],
    "symmetrize": ["forward", "reverse", "--method", "grow-diag-final", "-o", "out", "--overwrite"],
}
MEASURED = """
import sys
from alignment_eval import commands as cli
assert cli.main(sys.argv[1:]) == 0
print(open("/proc/self/status").read())
"""


def peak(directory, name):
    """MB of the process."""
    command = [sys.executable, "-c", MEASURED, name, *COMMANDS[name]]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return int(re.search(r"VmHWM:\s*(\d+) kB", done.stdout)[1]) / 1000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
@pytest.mark.parametrize("name", COMMANDS)
def test_peak(tmp_path, name):
    """Twice as many lines, of about 20 links, take at most the four counts of a sentence more, and 5 MB."""
    rng = np.random.default_rng(0)
    peaks = []
    for lines in (12_000, 24_000):
        for file in ("gold", "forward", "reverse"):
            targets = np.clip(np.arange(20) + rng.integers(-1, 2, (1000, 20)), 0, 19)
            some = ["".join(f"{i}-{j} " for i, j in enumerate(row)) + "\n" for row in targets.tolist()]
            (tmp_path / file).write_text("".join(some) * (lines // 1000))
        peaks.append(peak(tmp_path, name))
    assert peaks[1] - peaks[0] < 5 + 12_000 * 32 / 1e6
