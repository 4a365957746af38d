"""Everything that is written, replaced or deleted goes through here (docs/reliability.md has the promises)."""

from alignment_eval.files.directories import OwnFiles, check_directory, new_directory
from alignment_eval.files.hashing import ContentHash, file_hash
from alignment_eval.files.locks import WriterLock
from alignment_eval.files.writing import (
    STANDARD,
    NewFile,
    already_exists,
    check_new,
    new_file,
    write_bytes,
    write_lines,
)

__all__ = [
    "STANDARD",
    "ContentHash",
    "NewFile",
    "OwnFiles",
    "WriterLock",
    "already_exists",
    "check_directory",
    "check_new",
    "file_hash",
    "new_directory",
    "new_file",
    "write_bytes",
    "write_lines",
]
