from __future__ import annotations

import subprocess
import sys

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
