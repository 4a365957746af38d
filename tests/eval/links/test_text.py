import gzip
import lzma
import os

import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import file_hash
from alignment_eval.links import text as textfiles
from alignment_eval.links.text import TextFile, token_counts
from tests.facts import facts


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_pieces_are_whole_lines(tmp_path, monkeypatch, size):
    monkeypatch.setattr(textfiles, "_CHUNK_BYTES", size)
    (tmp_path / "x").write_bytes("\ufeffä b\r\n\nc ü ß\r\nd".encode())
    file = TextFile(tmp_path / "x")
    chunks = list(file)
    assert file.hash.short == file_hash(tmp_path / "x")
    assert all(chunk.endswith(b"\n") for chunk in chunks)
    assert b"".join(chunks).decode() == "ä b\n\nc ü ß\nd\n"
    assert token_counts(tmp_path / "x").tolist() == [2, 0, 3, 1]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_not_utf8(tmp_path, monkeypatch, size):
    monkeypatch.setattr(textfiles, "_CHUNK_BYTES", size)
    (tmp_path / "x").write_bytes("\ufeffä\nb".encode() + b"\xe4\n")
    with pytest.raises(InputError, match=facts("x: … not UTF-8 (byte 7) … iconv")):
        list(TextFile(tmp_path / "x"))


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf"])
def test_empty_file(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(InputError, match=facts("x: … empty … one line per sentence")):
        list(TextFile(tmp_path / "x"))


def test_missing_file_and_directory(tmp_path):
    with pytest.raises(InputError, match="nothing: no such file"):
        list(TextFile(tmp_path / "nothing"))
    with pytest.raises(InputError, match=facts(f"{tmp_path}: … (Is a directory)")):
        list(TextFile(tmp_path))


def test_tokens_end_at_ascii_blanks_only(tmp_path):
    (tmp_path / "x").write_text("a\u00a0b  c\td \n\u2028 e\n", encoding="utf-8")
    assert token_counts(tmp_path / "x").tolist() == [3, 2]


@pytest.mark.parametrize("compressed", [gzip.compress, lzma.compress])
def test_compressed_files(tmp_path, compressed):
    text = "ein Dach\n\nüber dem Kopf\n".encode()
    (tmp_path / "x").write_bytes(compressed(text))
    file = TextFile(tmp_path / "x")
    assert b"".join(file) == text
    assert file.hash.short == file_hash(text)
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
