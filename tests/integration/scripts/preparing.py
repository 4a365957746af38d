"""How the tests run the data preparation scripts: as a user runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "scripts"
#: Where the scripts find subword-nmt, fairseq-preprocess and the like.
PROGRAMS = Path(sys.executable).parent
LANGUAGES = ("--source-lang", "de", "--target-lang", "en")


def run(script: str, *args: object, **environment: str) -> subprocess.CompletedProcess[str]:
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    command = [sys.executable] if script.endswith(".py") else ["bash"]
    return subprocess.run(
        [*command, str(SCRIPTS / script), *map(str, args)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, **environment},
    )


def names(directory: Path) -> list[str]:
    return sorted(p.name for p in directory.iterdir()) if directory.exists() else []
