"""What scripts and make delete: only what carries their own mark."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


def run(*words, **environment):
    command, inherited = [str(word) for word in words], {**os.environ, **environment}
    return subprocess.run(command, cwd=ROOT, env=inherited, capture_output=True, text=True, check=False)


@pytest.fixture
def thesis(tmp_path):
    """A directory of somebody's."""
    directory = tmp_path / "thesis"
    directory.mkdir()
    (directory / "thesis.tex").write_text("ten years")
    return directory


def test_clean_removes_what_carries_the_mark(tmp_path, thesis):
    made, link = tmp_path / "made here", tmp_path / "link"
    for directory in (made, tmp_path / "elsewhere"):
        directory.mkdir()
        (directory / ".mark").touch()
    link.symlink_to("elsewhere")
    done = run("bash", "scripts/clean.sh", made, ".mark", thesis, ".mark", link, ".mark", tmp_path / "no", ".mark")
    assert done.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "thesis"]
    assert (thesis / "thesis.tex").exists()
    assert (tmp_path / "elsewhere" / ".mark").exists()
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [str(thesis), str(link)]


def test_make_clean_with_a_venv_of_the_environment(thesis):
    # make in make names the directory that it enters
    commands = run("make", "--no-print-directory", "-n", "clean", VENV=str(thesis)).stdout.splitlines()
    assert commands == [
        f'bash scripts/clean.sh "{thesis}" .made-by-make out/demo .made-by-demo.sh out/bench .made-by-demo.sh'
    ]


def test_a_venv_that_was_there_gets_no_mark(thesis):
    commands = run("make", "--no-print-directory", "-n", "install", VENV=str(thesis)).stdout.splitlines()
    assert [line for line in commands if ".made-by-make" in line] == [
        f'test -e "{thesis}" || {{ mkdir -p "{thesis}" && touch "{thesis}/.made-by-make"; }}'
    ]


@pytest.mark.parametrize("slash", ["", "/"])
def test_the_demo_replaces_no_directory_of_somebody_s(thesis, slash):
    for out in (f"{thesis}{slash}", f"{thesis}/thesis.tex", f"{thesis.parent}{slash}"):
        done = run("bash", "scripts/demo.sh", OUT=out)
        assert done.returncode == 1
        assert "already exists and is not of an earlier demo; choose another OUT or remove it" in done.stderr
    assert (thesis / "thesis.tex").read_text() == "ten years"


def test_the_demo_follows_no_link(thesis, tmp_path):
    (tmp_path / "link").symlink_to("thesis")
    (thesis / ".made-by-demo.sh").touch()
    assert run("bash", "scripts/demo.sh", OUT=str(tmp_path / "link")).returncode == 1
    assert (thesis / "thesis.tex").exists()
