from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import alignment_eval.commands
from alignment_eval import __version__
from alignment_eval.cli import COMMANDS, main


def test_every_module_of_commands_is_a_command():
    assert sorted(COMMANDS) == sorted(module.name for module in pkgutil.iter_modules(alignment_eval.commands.__path__))


@pytest.mark.parametrize("name", COMMANDS)
def test_help(capsys, name):
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert COMMANDS[name] in " ".join(capsys.readouterr().out.split())


def test_version(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"align-eval {__version__}\n"


@pytest.mark.parametrize("words", [[], ["nothing"]])
def test_bad_usage(words):
    with pytest.raises(SystemExit, match="2"):
        main(words)


def test_help_of_all_imports_no_command():
    code = "import sys; from alignment_eval.cli import _parser; _parser(['--help']); sys.exit('pandas' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
