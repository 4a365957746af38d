"""Hashes of content."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import ContentHash, file_hash

CONTENT = bytes(range(256)) * 20_000  # several blocks


def test_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(CONTENT)
    expected = hashlib.blake2b(CONTENT).hexdigest()[:12]
    assert file_hash(tmp_path / "x") == file_hash(str(tmp_path / "x")) == file_hash(CONTENT) == expected
    assert file_hash(CONTENT + b"\n") != expected


def test_of_pieces() -> None:
    content = ContentHash(size=8)
    content.update(CONTENT[:10])
    content.update_from(io.BytesIO(CONTENT[10:]))
    assert content.whole == hashlib.blake2b(CONTENT, digest_size=8).hexdigest()
    assert content.short == content.whole[:12]


def test_of_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing: cannot read the file"):
        file_hash(tmp_path / "nothing")
