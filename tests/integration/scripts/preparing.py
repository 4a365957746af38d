"""How the tests run the data preparation scripts: as a user runs them."""

import io
import os
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]
SCRIPTS = REPOSITORY / "scripts"
#: Where the scripts find subword-nmt, fairseq-preprocess and the like.
PROGRAMS = Path(sys.executable).parent
LANGUAGES = ("--source-lang", "de", "--target-lang", "en")


def run(script, *args, **environment):
    """Run a shell script, or a script of Python in this process."""
    words = [str(SCRIPTS / script), *map(str, args)]
    if script.endswith(".py"):
        out, messages = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(messages):
            patch.setattr(sys, "argv", words)
            patch.syspath_prepend(SCRIPTS)
            with pytest.raises(SystemExit) as ended:
                runpy.run_path(words[0], run_name="__main__")
        return subprocess.CompletedProcess(words, ended.value.code or 0, out.getvalue(), messages.getvalue())
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), "PATH": path, **environment},
    )


def names(directory):
    return sorted(p.name for p in directory.iterdir()) if directory.exists() else []
