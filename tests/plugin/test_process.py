"""What commands of the package do before they import torch and fairseq."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fairseq_norm_plugin.process import is_own_command


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["python", "-m", "fairseq_norm_plugin.align", "-o", "x"], True),
        (["python", "-X", "utf8", "-m", "fairseq_norm_plugin"], True),
        (["python", "/usr/bin/norm-align", "--help"], True),
        (["/usr/bin/norm-analyze"], True),
        (["python", "/usr/bin/fairseq-generate", "--user-dir", "norm-align"], False),
        (["python", "-m", "pytest", "fairseq_norm_plugin.align"], False),
        (["python", "-m"], False),
        (["python"], False),
    ],
)
def test_commands_of_the_package(words, expected):
    assert is_own_command(words) == expected


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        (["align", "--help"], 0, "--source-text"),
        (["align", "--bpe", "none"], 2, "--path"),
        (["align", "--path", "x", "-o", "y", "--text", "z", "--join", "no"], 2, "--join"),
        (["align", "--path", "x", "-o", "y", "--text", "z", "--layer", "max-norm"], 2, "--layer max-norm"),
        (["align", "--path", "x", "-o", "y", "--text", "z", "--rule", "two-way=2"], 2, "two-way"),
        (["align", "calibrate", "--help"], 0, "--dev-gold"),
        (["align", "calibrate", "--text", "x"], 2, "--path"),
        (["analyze", "--help"], 0, "--mixing-kinds"),
        (["analyze", "data"], 2, "--output"),
        (["convert", "--help"], 0, "marian"),
        (["convert", "bird"], 2, "bird"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_line_is_parsed_before_torch_is_imported(words, status, text):
    """Help and usage errors took 6 seconds."""
    command = [sys.executable, "-X", "importtime", "-m", f"fairseq_norm_plugin.{words[0]}", *words[1:]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    said = done.stdout + "".join(line for line in done.stderr.splitlines() if not line.startswith("import time:"))
    assert (done.returncode, text in said) == (status, True), said
    assert "numpy" in imported or "argparse" in imported
    assert not imported & {"torch", "fairseq", "pandas", "matplotlib"}


_PROGRAM = """
import logging
import fairseq_norm_plugin
root = logging.getLogger()
assert (root.level, root.handlers) == (logging.WARNING, []), (root.level, root.handlers)
logging.getLogger("matplotlib").debug("seen")
logging.getLogger("matplotlib").warning("warned")
"""


def test_importing_the_plugin_leaves_the_log_alone():
    """In a process of its own: fairseq's modules set the root logger up when they are imported first."""
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "warned\n"
