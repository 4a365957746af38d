"""What scripts and make delete: only what carries their own mark."""

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
    links = [word for name in (link, f"{link}/", f"{link}//") for word in (name, ".mark")]
    done = run("bash", "scripts/clean.sh", f"{made}/", ".mark", thesis, ".mark", *links, tmp_path / "no", ".mark")
    assert done.returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "thesis"]
    assert (thesis / "thesis.tex").exists()
    assert (tmp_path / "elsewhere" / ".mark").exists()
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [str(thesis), *[str(link)] * 3]
