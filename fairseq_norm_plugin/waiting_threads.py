"""Threads of a command that wait for each other sleep.

OpenMP lets a thread that waits for another one spin on its processor.  On a busy machine it holds up the very thread
that it waits for: small models took 20 times as long with two threads as with one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_COMMANDS = ("norm-align", "norm-analyze")
_POLICY = "OMP_WAIT_POLICY"


def is_own_command(words: Sequence[str]) -> bool:
    """Whether ``sys.orig_argv`` runs a command of this package, by name or as ``python -m fairseq_norm_plugin.…``."""
    if "-m" in words[:-1]:
        return words[words.index("-m") + 1].startswith(f"{__package__}.")
    return any(Path(word).name in _COMMANDS for word in words[:2])


def let_waiting_threads_sleep(words: Sequence[str]) -> None:
    """Do so in a command of this package, unless the environment says otherwise; call it before torch is imported.

    It is a setting of the whole process, so a Python program that imports the plugin is left alone.
    """
    if is_own_command(words):
        os.environ.setdefault(_POLICY, "passive")


def waiting_threads_sleep() -> bool:
    """Whether the environment says so."""
    return os.environ.get(_POLICY, "").lower() == "passive"
