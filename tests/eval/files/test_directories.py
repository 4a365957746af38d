"""A directory is replaced as a whole, and only one that the same command wrote."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import OwnFiles, WriterLock, check_directory, new_directory
from tests.facts import facts

OWN = OwnFiles("tabulate", re.compile(r"table\.(csv|json)"), mark="table.json")
HIDDEN = "0123456789abcdef"


def fill(out: str | Path, text: str = "new", overwrite: bool = False) -> None:
    with new_directory(out, overwrite, OWN) as directory:
        for name in ("table.csv", "table.json"):
            (directory / name).write_text(text)


def tree(directory: Path) -> dict[str, str]:
    """Every file below ``directory`` with its content, and every empty directory."""
    return {
        str(path.relative_to(directory)): path.read_text() if path.is_file() else ""
        for path in directory.rglob("*")
        if path.is_file() or not any(path.iterdir())
    }


def of(name: str, text: str = "new") -> dict[str, str]:
    return {f"{name}/table.csv": text, f"{name}/table.json": text}


def test_new_empty_and_replaced(tmp_path: Path) -> None:
    fill(tmp_path / "deep" / "er", "one")
    assert tree(tmp_path) == of("deep/er", "one")
    (tmp_path / "empty").mkdir(mode=0o750)
    fill(tmp_path / "empty")
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o750
    fill(tmp_path / "deep" / "er", "two", overwrite=True)
    assert tree(tmp_path) == {**of("deep/er", "two"), **of("empty")}


def test_one_that_exists(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    with pytest.raises(InputError, match=r"out: already exists; choose another path or pass --overwrite$"):
        fill(tmp_path / "out")
    assert tree(tmp_path) == of("out", "old")


def test_an_error_leaves_what_was_there(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")

    def broken() -> None:
        with new_directory(tmp_path / "out", True, OWN) as directory:
            (directory / "table.csv").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert tree(tmp_path) == of("out", "old")


@pytest.mark.parametrize("foreign", ["thesis.tex", "sub/thesis.tex", "table.csv/x", "link"])
def test_a_foreign_directory_stays(foreign: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "table.json").write_text("{}")
    (out / foreign).parent.mkdir(exist_ok=True)
    if foreign == "link":
        (out / "table.csv").symlink_to("/etc/passwd")
    else:
        (out / foreign).write_text("years of work")
    before = tree(tmp_path)
    with pytest.raises(InputError, match="not one that tabulate wrote"):
        fill(out, overwrite=True)
    assert tree(tmp_path) == before


def test_a_directory_without_the_mark_stays(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "table.csv").write_text("of another program")
    with pytest.raises(InputError, match=facts("has no 'table.json'")):
        fill(tmp_path / "out", overwrite=True)
    assert tree(tmp_path) == {"out/table.csv": "of another program"}


def test_a_link_stays(tmp_path: Path) -> None:
    fill(tmp_path / "real", "old")
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "nowhere").symlink_to("nothing")
    for name in ("out", "nowhere"):
        with pytest.raises(InputError, match=facts(f"{name}: … is a symbolic link")):
            fill(tmp_path / name, overwrite=True)
    assert tree(tmp_path / "real") == {"table.csv": "old", "table.json": "old"}


def test_the_working_directory_and_what_is_above_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "out", "old")
    (tmp_path / "out" / "sub").mkdir()
    for here in ("out", "out/sub"):
        monkeypatch.chdir(tmp_path / here)
        for out in (tmp_path / "out", "..", ".", "", "/"):
            with pytest.raises(InputError):
                fill(out, overwrite=True)
    (tmp_path / "out" / "sub").rmdir()
    monkeypatch.chdir(tmp_path / "out")
    with pytest.raises(InputError, match="is the working directory or above it"):
        fill(tmp_path / "out", overwrite=True)
    assert tree(tmp_path) == of("out", "old")


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("text")
    with pytest.raises(InputError, match="out: this is a file, not a directory"):
        check_directory(tmp_path / "out", True, OWN)
    with pytest.raises(InputError, match="out/below: cannot write the directory"):
        fill(tmp_path / "out" / "below")


def test_foreign_siblings_stay(tmp_path: Path) -> None:
    siblings = [".out.tmp", ".out.1234.tmp", ".out.1234.old", f".out.{HIDDEN}.tmp", f".other.{HIDDEN}.align-eval-tmp"]
    for name in siblings:
        fill(tmp_path / name, "old")
    fill(tmp_path / "out", "old")
    fill(tmp_path / "out", "new", overwrite=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*siblings, "out"])


def test_what_a_killed_run_left_is_removed(tmp_path: Path) -> None:
    code = (
        "import os, re, sys; from alignment_eval.files import *\n"
        "own = OwnFiles('tabulate', re.compile(r'table\\.(csv|json)'), mark='table.json')\n"
        "with new_directory(sys.argv[1], True, own) as directory:\n"
        "    (directory / 'table.csv').write_text('half'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "out")]).returncode == -9
    assert len(list(tmp_path.iterdir())) == 2  # the half directory and the lock
    fill(tmp_path / "out")
    assert tree(tmp_path) == of("out")


def test_left_over_names_with_foreign_files_stay(tmp_path: Path) -> None:
    left = tmp_path / f".out.{HIDDEN}.align-eval-tmp"
    left.mkdir()
    (left / "thesis.tex").write_text("years of work")
    fill(tmp_path / "out")
    assert (left / "thesis.tex").read_text() == "years of work"


def test_killed_between_the_two_renames(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    (tmp_path / "out").rename(tmp_path / f".out.{HIDDEN}.align-eval-old")
    fill(tmp_path / f".out.{HIDDEN}.align-eval-tmp", "new")

    def broken() -> None:
        with new_directory(tmp_path / "out", True, OWN):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert tree(tmp_path) == of("out", "old")  # it is back


def test_a_rename_that_fails_puts_the_old_one_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "out", "old")
    rename = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if self.name.endswith("align-eval-tmp"):
            raise OSError(28, os.strerror(28))
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(InputError, match=r"out: cannot write the directory \(No space left on device\)"):
        fill(tmp_path / "out", overwrite=True)
    assert tree(tmp_path) == of("out", "old")


def test_a_foreign_file_that_appears_meanwhile_stays(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")

    def fill_beside_others() -> None:
        with new_directory(tmp_path / "out", True, OWN) as directory:
            (directory / "table.json").write_text("new")
            (tmp_path / "out" / "thesis.tex").write_text("years of work")

    with pytest.raises(InputError, match=r"thesis\.tex"):
        fill_beside_others()
    assert tree(tmp_path) == {**of("out", "old"), "out/thesis.tex": "years of work"}


def test_one_writer(tmp_path: Path) -> None:
    with WriterLock(tmp_path / "out"), pytest.raises(InputError, match="out: another process is writing it"):
        fill(tmp_path / "out")
