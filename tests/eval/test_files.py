"""Files and directories appear whole or not at all, where they were asked for, and nothing else is touched."""

import gzip
import hashlib
import io
import lzma
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from alignment_eval import files, reading
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import NewFile, check_distinct, check_new, new_directory, new_file, write_bytes, write_lines
from alignment_eval.reading import TextFile, content_hash, file_hash, token_lines
from tests.facts import facts

LINES = ["α β", "", "c"]
CONTENT = "α β\n\nc\n".encode()
OWN = re.compile(r"table\.(csv|json)")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def failing_lines():
    yield "first"
    raise InputError("line 2 is bad")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_terminal_gets_no_control_characters(monkeypatch, is_terminal):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr(sys, "stdout", stream)
    lines = ["\x1b]0;title\x07\tä", "\x9b31m\x7f"]
    write_lines("-", lines)
    escaped = [r"\x1b]0;title\x07" + "\tä", r"\x9b31m\x7f"]
    assert stream.buffer.getvalue().decode().splitlines() == (escaped if is_terminal else lines)


def test_a_file_is_new_or_stays_as_it_was(tmp_path):
    with new_file(tmp_path / "a") as path:
        path.write_bytes(CONTENT)
        assert names(tmp_path) == [path.name] != ["a"]
    write_lines(tmp_path / "b", LINES)
    write_bytes(str(tmp_path / "c"), [CONTENT])
    with pytest.raises(InputError, match="line 2 is bad"):
        write_lines(tmp_path / "a", failing_lines())
    NewFile(tmp_path / "a").drop()
    assert [(tmp_path / name).read_bytes() for name in "abc"] == [CONTENT] * 3
    assert names(tmp_path) == ["a", "b", "c"]


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to("elsewhere/a")
    for _ in range(2):  # the file does not exist, then it does
        write_lines(tmp_path / "link", LINES)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "elsewhere" / "a").read_bytes() == CONTENT


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    (tmp_path / "a").touch(0o640)
    write_lines(tmp_path / "a", LINES)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("name", ["/dev/stdout", "-"])
@pytest.mark.parametrize("to", ["pipe", "file"])
def test_standard_output_by_its_names(name, to, tmp_path):
    code = (
        "from alignment_eval.files import *\n"
        f"path = {name!r}; check_new(path, False); print('before'); write_lines(path, ['x'])\n"
        "with new_file(path) as temporary: temporary.write_text('y\\n')\n"
        "print('after')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    with (tmp_path / "out").open("w+b") as file:
        out = subprocess.PIPE if to == "pipe" else file
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, stdout=out)
        file.seek(0)
        assert (done.stdout or file.read()) == b"before\nx\ny\nafter\n"
    assert names(tmp_path) == ["out"]


def test_devices_and_pipes_are_written_to(tmp_path):
    check_new(os.devnull, overwrite=False)
    write_lines(os.devnull, LINES)
    assert Path(os.devnull).is_char_device()
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write_lines(tmp_path / "pipe", LINES)
    reader.join()
    assert read == [CONTENT]


def fill(out, text="new", overwrite=False, error=None):
    with new_directory(out, overwrite, OWN) as directory:
        (directory / "table.csv").write_text(text)
        if error:
            raise error
        (directory / "table.json").write_text(text)


def tree(directory):
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


def table(name, text="new"):
    return {f"{name}/table.csv": text, f"{name}/table.json": text}


def test_new_empty_and_replaced_directories(tmp_path):
    (tmp_path / "empty").mkdir()
    fill(tmp_path / "empty")
    fill(tmp_path / "deep" / "er", "one")
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "deep" / "er", "half", overwrite=True, error=KeyboardInterrupt())
    assert tree(tmp_path) == {**table("deep/er", "one"), **table("empty")}
    fill(tmp_path / "deep" / "er", "two", overwrite=True)
    (tmp_path / "link").symlink_to("empty")
    fill(tmp_path / "link", "three", overwrite=True)
    assert names(tmp_path) == ["deep", "empty", "link"]
    assert tree(tmp_path) == {**table("deep/er", "two"), **table("empty", "three")}


def test_a_directory_with_foreign_files_stays(tmp_path):
    out, foreign = tmp_path / "out", "table.csv/thesis.tex"
    (out / foreign).parent.mkdir(parents=True)
    (out / foreign).write_text("years of work")
    with pytest.raises(InputError, match="did not write"):
        fill(out, overwrite=True)
    assert tree(out) == {foreign: "years of work"}


def test_what_a_killed_run_left_is_removed(tmp_path):
    """But not the file of another run of the same output, here or in another container, which may go on."""
    dead, here, elsewhere = 2**31 - 1, files._place(), "0" * 8
    live = tmp_path / f".out.{here}-{os.getppid():x}-0.tmp"
    left, *others = (
        tmp_path / f".{name}.{place}-{dead:x}-0.tmp"
        for name, place in (("out", here), ("out", elsewhere), ("out.more", here))
    )
    for file in (live, left, *others):
        file.write_text("half")
    (tmp_path / f".made.{here}-{dead:x}-0.tmp").mkdir()
    write_lines(tmp_path / "out", ["a"])
    fill(tmp_path / "made")
    assert names(tmp_path) == sorted([live.name, *(other.name for other in others), "made", "out"])


def test_hashes(tmp_path):
    content = bytes(range(256)) * 20_000  # several blocks
    (tmp_path / "x").write_bytes(content)
    expected = hashlib.blake2b(content).hexdigest()[:12]
    assert file_hash(tmp_path / "x") == content_hash([content[:10], content[10:]]) == expected


@pytest.mark.parametrize(
    ("outputs", "inputs"), [(["a"], ["a"]), (["d"], ["d/e"]), (["d/part.parquet"], ["d"]), (["new", "d/../new"], [])]
)
def test_outputs_that_are_lost(tmp_path, monkeypatch, outputs, inputs):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    for name in ("a", "d/e", "d/part.parquet", "d/other"):
        (tmp_path / name).touch()
    with pytest.raises(UsageError, match="of this command, or holds it"):
        check_distinct(outputs, inputs)
    check_distinct(["d/other", "b", "c", "/dev/null", "/dev/null", "-"], ["a", "d", "-"])


@pytest.mark.parametrize("size", [1, 3, 100])
def test_pieces_are_whole_lines(tmp_path, monkeypatch, size):
    monkeypatch.setattr(reading, "_CHUNK_BYTES", size)
    (tmp_path / "x").write_bytes("\ufeffä b\r\n\nc ü ß\r\nd".encode())
    file = TextFile(tmp_path / "x")
    chunks = list(file)
    assert file.hash == file_hash(tmp_path / "x")
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert b"".join(chunks).decode() == "ä b\n\nc ü ß\nd\n"
    assert list(map(len, token_lines(tmp_path / "x"))) == [2, 0, 3, 1]


@pytest.mark.parametrize(
    ("name", "content", "fact"),
    [
        ("x", "\ufeffä\nb".encode() + b"\xe4\n", "x:2: … UTF-8 … iconv"),
        ("x", "ä\n".encode("utf-16"), "x:1: … iconv -f UTF-16"),
        ("x", b"\xef\xbb\xbf", "x: … empty … one line per sentence"),
        ("nothing", b"", "nothing: no such file"),
        (".", b"", "directory"),
    ],
)
def test_files_that_are_no_text(tmp_path, monkeypatch, name, content, fact):
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 3)
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=facts(fact)):
        list(TextFile(tmp_path / name))


@pytest.mark.parametrize(
    ("place", "fact"),
    [
        ("", "a directory"),
        ("..", "a directory"),
        ("folder", "a directory"),
        ("folder/", "a directory"),
        ("no/where", "no directory … no;"),
        ("locked", "the file is read-only"),
    ],
)
def test_no_place_for_a_file(tmp_path, monkeypatch, place, fact):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("locked").touch(0o444)
    with pytest.raises(InputError, match=facts(fact)):
        check_new(place, overwrite=True)
    if "where" in place:
        check_new(place, overwrite=True, parents=True)


@pytest.mark.parametrize("compressed", [gzip.compress, lzma.compress])
def test_compressed_files(tmp_path, compressed):
    text = "ein Dach\n\nüber dem Kopf\n".encode()
    (tmp_path / "x").write_bytes(compressed(text))
    file = TextFile(tmp_path / "x")
    assert b"".join(file) == text
    assert file.hash == content_hash([text])
    (tmp_path / "x").write_bytes(compressed(text)[:-9])
    with pytest.raises(InputError, match="x: cannot read the file"):
        list(file)


def test_a_pipe_that_was_read_before():
    """What a shell gives for <(command) is empty the second time."""
    reading, writing = os.pipe()
    os.write(writing, b"a\n")
    os.close(writing)
    path = f"/dev/fd/{reading}"
    assert list(TextFile(path)) == [b"a\n"]
    with pytest.raises(InputError, match=facts(f"{path}: the pipe is empty … second time, give a file")):
        list(TextFile(path))
    os.close(reading)


def test_a_file_is_read_again_once_it_has_changed(tmp_path):
    """And for other arguments; a reader that fails keeps nothing."""
    taken = []

    @reading.read_once
    def read(path, suffix=""):
        taken.append(path)
        return Path(path).read_text() + suffix

    file = tmp_path / "a"
    with pytest.raises(FileNotFoundError):
        read(file)
    file.write_text("1")
    assert [read(file), read(str(file)), read(file, "x")] == ["1", "1", "1x"]
    file.write_text("22")
    assert read(file) == "22"
    assert taken == [str(file)] * 4
