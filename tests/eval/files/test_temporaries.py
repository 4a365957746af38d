from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from alignment_eval.files.temporaries import (
    left_over,
    new_temporary_file,
    remove_left_over_files,
    temporary_name,
)


def test_names_are_hidden_beside_the_target_and_never_the_same(tmp_path: Path) -> None:
    names = {temporary_name(tmp_path / "a.txt") for _ in range(5)}
    assert len(names) == 5
    assert all(name.parent == tmp_path and name.name.startswith(".a.txt.") for name in names)


def test_only_names_of_ours_are_left_over(tmp_path: Path) -> None:
    mine = temporary_name(tmp_path / "a.txt")
    others = [temporary_name(tmp_path / "b.txt"), tmp_path / ".a.txt.tmp", tmp_path / "a.txt", tmp_path / mine.name[1:]]
    for path in (mine, *others):
        path.touch()
    assert left_over(tmp_path, r"a\.txt") == [mine]
    assert left_over(tmp_path, r"a\.txt", "other-ending") == []


def test_a_file_has_the_mode_of_what_it_replaces(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    (tmp_path / "a").chmod(0o640)
    path, descriptor = new_temporary_file(tmp_path / "a")
    os.close(descriptor)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_is_being_written_stays(tmp_path: Path) -> None:
    """The owner holds a lock; when it is gone, killed or not, so is the lock."""
    path, descriptor = new_temporary_file(tmp_path / "a")
    remove_left_over_files(tmp_path, "a")
    assert path.exists()
    os.close(descriptor)
    remove_left_over_files(tmp_path, "a")
    assert not path.exists()


def test_links_and_directories_stay(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    link, directory = temporary_name(tmp_path / "a"), temporary_name(tmp_path / "a")
    link.symlink_to(victim)
    directory.mkdir()
    remove_left_over_files(tmp_path, "a")
    assert (link.is_symlink(), directory.is_dir(), victim.read_text()) == (True, True, "mine")


def test_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        new_temporary_file(tmp_path / "none" / "a")
