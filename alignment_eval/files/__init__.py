"""All code that writes, replaces or deletes files (docs/reliability.md has the guarantees)."""

from alignment_eval.files.directories import OwnFiles, check_directory, new_directory
from alignment_eval.files.hashing import ContentHash, file_hash
from alignment_eval.files.locks import WriterLock
from alignment_eval.files.temporaries import remove_left_over_files
from alignment_eval.files.writing import (
    STANDARD,
    NewFile,
    already_exists,
    check_new,
    is_stream,
    new_file,
    write_bytes,
    write_lines,
    writing_errors,
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
    "is_stream",
    "new_directory",
    "new_file",
    "remove_left_over_files",
    "write_bytes",
    "write_lines",
    "writing_errors",
]
