"""The unfinished output of a run: one line for each pair, in the order of the text, so that a stopped run can go on."""

from __future__ import annotations

import json
import mmap
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from alignment_eval.errors import InputError, say
from alignment_eval.files import NewFile, writing_errors


def partial_path(output: str) -> Path:
    """The file of the unfinished output; links are followed, as for the output itself."""
    return Path(os.path.realpath(output) + ".partial")


def translations_of(output: str) -> str:
    """The file whose unfinished form keeps the translations until the output is complete."""
    return f"{output}.translations"


def begun_with(output: str) -> list[str]:
    """The files that may hold unfinished output of ``output``."""
    return [str(partial_path(name)) for name in (output, translations_of(output))]


def check_not_begun(output: str, resume: bool, overwrite: bool) -> None:
    """Check that there is no unfinished output, unless an option says what to do with it."""
    path = partial_path(output)
    if path.exists() and not (resume or overwrite):
        raise InputError(
            f"{path}: a run of this output was stopped, or is running; give --resume, --overwrite or another -o"
        )


class UnfinishedOutput:
    """The rows of an output that is not complete, in a file next to it: the signature of the run, then a row a line.

    A context manager: if the block fails, the file stays, and a run with ``resume`` goes on after its last row.  Each
    run writes a file of its own, which takes the place of an earlier one: two runs at once do not disturb each other.

    Args:
        signature: what decides the links.
        ends: the number of rows before the end of each window; rows of a window that is not complete are dropped.
    """

    def __init__(
        self, output: str, signature: str, ends: Sequence[int], resume: bool = False, overwrite: bool = False
    ) -> None:
        self.path = partial_path(output)
        self._head = f"{signature}\n".encode()
        check_not_begun(output, resume, overwrite)
        with writing_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            #: How many rows an earlier run left.
            self.kept, size = self._complete({*ends}) if resume and self.path.exists() else (0, 0)
            self._rows = self.kept
            file = NewFile(self.path)
            try:
                if size:
                    shutil.copyfile(self.path, file.path)
                self._file = file.path.open("r+b")
                self._file.truncate(size)
                self._file.seek(size)
                if not size:
                    self._file.write(self._head)
                self._sync()
                file.keep()
            finally:
                file.drop()

    def __enter__(self) -> UnfinishedOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        own = self.path.exists() and os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))
        if own and (kind is None or not self._rows):
            self.path.unlink()
        elif own:
            say(f"norm-align: {self._rows} sentences are kept: --resume continues this run")
        with suppress(OSError):  # the disk is full: append said so
            self._file.close()

    def append(self, rows: Iterable[Sequence[Any]]) -> None:
        """Append the rows of a window: values that JSON can hold."""
        lines = [f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in rows]
        with writing_errors(self.path):
            self._file.writelines(lines)
            self._sync()
        self._rows += len(lines)

    def rows(self) -> Iterator[list[Any]]:
        """All rows; several may read them at once."""
        with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            content.seek(len(self._head))
            while line := content.readline():
                yield json.loads(line)

    def _sync(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())

    def _complete(self, ends: set[int]) -> tuple[int, int]:
        """The number of rows in complete windows of an earlier run, and where they end in its file, in bytes."""
        rows, place, complete = 0, 0, (0, 0)
        with self.path.open("rb") as file:
            head = file.readline()
            if head.endswith(b"\n") and head != self._head:
                fields = [{*line.decode(errors="replace").rstrip("\n").split("|")} for line in (head, self._head)]
                names = sorted({field.partition(":")[0] for field in fields[0] ^ fields[1]})
                raise InputError(
                    f"{self.path}: this is output of another run (different: {', '.join(names)}); give its options, "
                    f"--overwrite to start again, or name another output with -o"
                )
            place = len(head)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                rows, place = rows + 1, place + len(line)
                if rows in ends:
                    complete = rows, place
        return complete
