"""Hashes of bytes, files and streams."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from alignment_eval.errors import InputError

_BLOCK_BYTES = 2**20


class ContentHash:
    """A running blake2b hash of content.

    Args:
        size: bytes of the hash; another size gives other digits.
    """

    def __init__(self, size: int = 64) -> None:
        self._hash = hashlib.blake2b(digest_size=size)

    def update(self, data: bytes | memoryview) -> None:
        """Add content."""
        self._hash.update(data)

    def update_from(self, stream: BinaryIO) -> None:
        """Add the rest of a stream, in blocks."""
        while block := stream.read(_BLOCK_BYTES):
            self._hash.update(block)

    @property
    def short(self) -> str:
        """The first 12 hexadecimal digits of the hash of all content so far."""
        return self.whole[:12]

    @property
    def whole(self) -> str:
        """All hexadecimal digits of the hash."""
        return self._hash.hexdigest()


def file_hash(content: str | Path | bytes) -> str:
    """Short hash of a file's content; ``content`` is the path of the file or its bytes.

    Raises:
        InputError: the file cannot be read.
    """
    result = ContentHash()
    if isinstance(content, bytes):
        result.update(content)
        return result.short
    try:
        with Path(content).open("rb") as file:
            result.update_from(file)
    except OSError as error:
        raise InputError(f"{content}: cannot read the file ({error.strerror})") from error
    return result.short
