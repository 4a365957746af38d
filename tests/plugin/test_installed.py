"""Which fairseq serves: what is missing, too old or broken is named in one sentence, with the line that mends it."""

import platform as platform_module
import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from alignment_eval import __version__
from alignment_eval.errors import InputError
from fairseq_norm_plugin import environment as installed
from tests.facts import facts

COMPILED = ("libbleu.py", "data/data_utils_fast.py", "data/token_block_utils_fast.py")


def make_package(directory, files):
    """A fairseq of empty modules."""
    for name in ("__init__.py", *files):
        file = directory / "fairseq" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


@pytest.fixture
def only(monkeypatch, tmp_path):
    """Let the named modules be the only ones that are installed, with these files inside, and a version of torch."""

    def make(*modules, files=(), torch="2.6.0"):
        make_package(tmp_path, files)
        spec = ModuleSpec("fairseq", None, is_package=True)
        spec.submodule_search_locations.append(str(tmp_path / "fairseq"))
        monkeypatch.setattr(installed, "find_spec", lambda name: spec if name in modules else None)
        monkeypatch.setattr(installed, "_torch", lambda: torch)

    return make


@pytest.mark.parametrize(
    ("modules", "options", "said"),
    [
        ((), {}, "fairseq is not installed"),
        (("fairseq2",), {}, "fairseq2"),
        (("fairseq",), {"torch": None}, "torch is not installed"),
        (("fairseq",), {"torch": "2.5.1+cu124", "files": COMPILED}, "torch 2.5.1+cu124"),
        (("fairseq",), {}, "libbleu"),
        (("fairseq",), {"files": COMPILED[:2]}, "token_block_utils_fast"),
    ],
)
def test_what_is_missing_is_named(only, modules, options, said):
    only(*modules, **options)
    with pytest.raises(InputError, match=facts(said)) as error:
        installed.check_installed()
    assert "pip install" in str(error.value)


@pytest.mark.parametrize(
    ("python", "platform", "machine", "said"),
    [
        ((3, 10), "linux", "x86_64", "fairseq==0.12.2"),
        ((3, 11), "linux", "x86_64", "ve-fairseq==0.12.3"),
        ((3, 12), "darwin", "arm64", "fairseq-fixed==0.12.3.1"),
        ((3, 13), "linux", "x86_64", "fairseq-fixed==0.12.3.1"),
    ],
)
def test_the_line_is_that_of_python_and_platform(monkeypatch, python, platform, machine, said):
    monkeypatch.setattr(installed, "sys", SimpleNamespace(version_info=python, platform=platform))
    monkeypatch.setattr(platform_module, "machine", lambda: machine)
    line = installed.install_line()
    assert said in line
    assert said.startswith("ve-") or f"`{line}`" in Path("docs/models.md").read_text("utf-8")


def test_one_that_lacks_what_is_called(monkeypatch):
    """A fork, or fairseq 0.10."""
    monkeypatch.setitem(installed._CALLED, "fairseq.modules:MultiheadAttention.forward", "query rotary_table")
    with pytest.raises(InputError, match=facts("MultiheadAttention.forward … rotary_table")):
        installed.check_calls()


def test_an_old_one_ends_a_command_in_one_sentence(tmp_path):
    make_package(tmp_path, COMPILED)  # it can be imported, but lacks what is called
    program = "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    program += "from fairseq_norm_plugin.align.cli import main; sys.exit(main())"
    words = ["--path", "demo", "--source-text", "a", "--target-text", "b", "-o", "c"]
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "cannot be used" in done.stderr
    assert "fairseq.checkpoint_utils" in done.stderr
    assert done.stderr.count("\n") == 1


def test_versions():
    found = installed.versions()
    assert found["version"].startswith(__version__)
    assert torch.__version__.startswith(found["torch"])  # which has no +cu126
    assert "fairseq" in found["fairseq"]
    assert found["torch"] in installed.version_line("norm-align")


@pytest.mark.parametrize(
    ("command", "module"),
    [
        ("--help", "fairseq_norm_plugin"),
        ("--path demo --text - -o -", "fairseq_norm_plugin.align.cli"),
        ("calibrate --path demo --source-text a --target-text b", "fairseq_norm_plugin.align.cli"),
    ],
)
def test_commands_without_fairseq_say_so_in_one_sentence(command, module):
    run = "runpy.run_module('fairseq_norm_plugin', run_name='__main__')"
    if module != "fairseq_norm_plugin":
        run = f"from {module} import main; sys.exit(main(sys.argv[1:]))"
    program = (
        "import runpy, sys, fairseq_norm_plugin.environment as installed\n"
        f"installed.find_spec, sys.argv = lambda name: None, ['', *{command.split()!r}]\n{run}"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "fairseq is not installed" in done.stderr
