"""How the tests run the data preparation scripts: as a user runs them."""

import io
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout

import pytest

from tests.integration.conftest import ROOT, run_command

SCRIPTS = ROOT / "scripts"
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
    return run_command("bash", *words, check=False, PYTHONPATH=str(ROOT), **environment)


def names(directory):
    return sorted(p.name for p in directory.iterdir()) if directory.exists() else []
