"""Files appear whole or not at all, where they were asked for, and nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import NewFile, check_new, new_file, write_bytes, write_lines
from alignment_eval.files.temporaries import temporary_name

LINES = ["α β", "", "c"]
CONTENT = "α β\n\nc\n".encode()


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def failing_lines() -> object:
    yield "first"
    raise InputError("line 2 is bad")


class TestWhole:
    def test_content(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "a", LINES)
        write_bytes(str(tmp_path / "b"), CONTENT)
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == CONTENT
        assert names(tmp_path) == ["a", "b"]

    def test_an_error_leaves_what_was_there(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "a", LINES)
        with pytest.raises(InputError, match="line 2 is bad"):
            write_lines(tmp_path / "a", failing_lines())
        assert (tmp_path / "a").read_bytes() == CONTENT
        assert names(tmp_path) == ["a"]

    def test_a_full_disk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(InputError, match=r"a: cannot write the file \(No space left on device\)"):
            write_lines(tmp_path / "a", LINES)
        assert names(tmp_path) == []

    def test_the_mode_of_a_file_is_kept(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "a", ["old"])
        (tmp_path / "a").chmod(0o640)
        write_lines(tmp_path / "a", LINES)
        assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640

    def test_a_new_file_has_the_usual_mode(self, tmp_path: Path) -> None:
        (tmp_path / "usual").touch()
        write_lines(tmp_path / "a", LINES)
        assert (tmp_path / "a").stat().st_mode == (tmp_path / "usual").stat().st_mode

    def test_written_by_the_caller(self, tmp_path: Path) -> None:
        with new_file(tmp_path / "a") as path:
            assert path.parent == tmp_path
            path.write_bytes(CONTENT)
            assert not (tmp_path / "a").exists()
        assert (tmp_path / "a").read_bytes() == CONTENT

    def test_kept_and_dropped(self, tmp_path: Path) -> None:
        kept, dropped = NewFile(tmp_path / "a"), NewFile(tmp_path / "b")
        kept.path.write_bytes(CONTENT)
        kept.keep()
        dropped.drop()
        dropped.drop()
        assert names(tmp_path) == ["a"]


class TestTemporaries:
    def test_names_cannot_be_guessed(self, tmp_path: Path) -> None:
        assert len({temporary_name(tmp_path / "a") for _ in range(100)}) == 100

    def test_a_planted_link_is_not_followed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "victim").write_text("precious")
        planted = tmp_path / ".a.0000000000000000.align-eval-tmp"
        planted.symlink_to(tmp_path / "victim")
        monkeypatch.setattr("secrets.token_hex", lambda _: "0" * 16)
        with pytest.raises(InputError, match="a: cannot write the file"):
            write_lines(tmp_path / "a", LINES)
        assert (tmp_path / "victim").read_text() == "precious"
        assert planted.is_symlink()

    def test_what_a_killed_run_left_is_removed(self, tmp_path: Path) -> None:
        code = (
            "import os, sys; from alignment_eval.files import NewFile; "
            "NewFile(sys.argv[1]).path.write_text('half'); os.kill(os.getpid(), 9)"
        )
        assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "a")]).returncode == -9
        assert len(names(tmp_path)) == 1
        write_lines(tmp_path / "a", LINES)
        assert names(tmp_path) == ["a"]

    def test_what_is_being_written_or_foreign_is_not(self, tmp_path: Path) -> None:
        foreign = [".a.tmp", ".a.1234.tmp", ".a.0123456789abcdef.tmp", ".b.0123456789abcdef.align-eval-tmp"]
        for name in foreign:
            (tmp_path / name).touch()
        other = NewFile(tmp_path / "a")
        write_lines(tmp_path / "a", LINES)
        assert names(tmp_path) == sorted([*foreign, other.path.name, "a"])
        other.keep()

    @pytest.mark.parametrize("name", ["a", "link"])
    def test_writers_at_the_same_time_give_whole_files(self, tmp_path: Path, name: str) -> None:
        (tmp_path / "link").symlink_to("a")

        def write(letter: str) -> None:
            for _ in range(100):
                write_lines(tmp_path / name, [letter] * 1000)

        threads = [threading.Thread(target=write, args=(letter,)) for letter in "uvwxyz"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (tmp_path / "a").read_text() in [f"{letter}\n" * 1000 for letter in "uvwxyz"]
        assert names(tmp_path) == ["a", "link"]


class TestCheckNew:
    def test_there_is_one(self, tmp_path: Path) -> None:
        (tmp_path / "a").touch()
        check_new(tmp_path / "a", overwrite=True)
        with pytest.raises(InputError, match=r"a: already exists; choose another path or pass --overwrite$"):
            check_new(tmp_path / "a", overwrite=False)
        with pytest.raises(InputError, match="pass --norm-overwrite"):
            check_new(tmp_path / "a", overwrite=False, option="--norm-overwrite")

    def test_a_link_that_leads_nowhere_is_there_too(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to(tmp_path / "nothing")
        with pytest.raises(InputError, match="already exists"):
            check_new(tmp_path / "a", overwrite=False)

    @pytest.mark.parametrize("path", ["", ".", "..", "/", "new/", "there"])
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_no_name_of_a_file(
        self, path: str, overwrite: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        (tmp_path / "there").mkdir()
        for check in (lambda: check_new(path, overwrite), lambda: write_lines(path, LINES)):
            with pytest.raises(InputError, match="give the name of a file"):
                check()
        assert names(tmp_path) == ["there"]

    def test_no_directory(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        for path in (tmp_path / "no" / "a", tmp_path / "file" / "a"):
            with pytest.raises(InputError, match="/a: "):
                check_new(path, overwrite=False)

    def test_a_directory_that_is_yet_to_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        check_new(tmp_path / "no" / "where" / "a", overwrite=False, parents=True)
        with pytest.raises(InputError, match="file/no/a: "):
            check_new(tmp_path / "file" / "no" / "a", overwrite=False, parents=True)

    def test_a_read_only_file_stays(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("old")
        (tmp_path / "a").chmod(0o444)
        for check in (lambda: check_new(tmp_path / "a", True), lambda: write_lines(tmp_path / "a", LINES)):
            with pytest.raises(InputError, match="a: the file is read-only"):
                check()
        assert (tmp_path / "a").read_text() == "old"

    def test_a_directory_that_is_not_writable(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
        with pytest.raises(InputError, match=f"a: the directory {tmp_path} is not writable"):
            check_new(tmp_path / "a", overwrite=False)

    def test_a_name_too_long(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="cannot write the file"):
            check_new(tmp_path / ("a" * 300), overwrite=False)


class TestLinksAndStreams:
    def test_a_link_stays_and_its_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "link").symlink_to("elsewhere/a")
        for _ in range(2):  # the file is not there, then it is
            write_lines(tmp_path / "link", LINES)
            assert (tmp_path / "link").is_symlink()
            assert (tmp_path / "elsewhere" / "a").read_bytes() == CONTENT

    def test_a_circle_of_links(self, tmp_path: Path) -> None:
        (tmp_path / "a").symlink_to("a")
        with pytest.raises(InputError, match="a: cannot write the file"):
            write_lines(tmp_path / "a", LINES)

    def test_standard_output(self, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
        write_lines("-", LINES)
        assert capsysbinary.readouterr().out == CONTENT

    @pytest.mark.parametrize("name", ["/dev/stdout", "/proc/self/fd/1", "link", "-"])
    @pytest.mark.parametrize("way", ["write_lines(path, ['x'])", "write_bytes(path, b'x\\n')", "by_caller(path)"])
    @pytest.mark.parametrize("to", ["pipe", "file", "deleted"])
    def test_standard_output_by_its_names(self, name: str, way: str, to: str, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/proc/self/fd/1")
        code = (
            "import os, sys; from alignment_eval.files import *\n"
            "def by_caller(path):\n"
            "    with new_file(path) as temporary: temporary.write_text('x\\n')\n"
            f"path = {name!r}; check_new(path, False); print('before'); {way}; print('after')"
        )
        command = [sys.executable, "-c", code]
        environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
        if to == "pipe":
            out = subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=subprocess.PIPE).stdout
        else:
            with (tmp_path / "out").open("w+b") as file:
                if to == "deleted":
                    (tmp_path / "out").unlink()
                subprocess.run(command, cwd=tmp_path, env=environment, check=True, stdout=file)
                file.seek(0)
                out = file.read()
        assert out == b"before\nx\nafter\n"
        assert names(tmp_path) == (["link", "out"] if to == "file" else ["link"])
        assert (tmp_path / "link").is_symlink()

    def test_a_device(self) -> None:
        check_new(os.devnull, overwrite=False)
        write_lines(os.devnull, LINES)
        assert Path(os.devnull).is_char_device()

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
    def test_a_full_device(self) -> None:
        with pytest.raises(InputError, match=r"/dev/full: cannot write the file \(No space left on device\)"):
            write_lines("/dev/full", LINES)

    def test_a_pipe(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        read: list[bytes] = []
        reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
        reader.start()
        check_new(tmp_path / "pipe", overwrite=False)
        write_lines(tmp_path / "pipe", LINES)
        reader.join()
        assert read == [CONTENT]
