"""The unfinished output of a run: one line for each pair, in the order of the text, so that a stopped run can go on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from alignment_eval.errors import InputError
from alignment_eval.files import writing_errors

try:
    import fcntl
except ImportError:  # Windows: no locks
    fcntl = None  # type: ignore[assignment]

#: The status of a pair, and what the output says of it; or the score of a translation, and the translation.
Row = tuple[str, str]


def partial_path(output: str) -> Path:
    """The file of the unfinished output; links are followed, as for the output itself."""
    return Path(os.path.realpath(output) + ".partial")


def check_not_begun(output: str, resume: bool, overwrite: bool) -> None:
    """Check that there is no unfinished output, unless an option says what to do with it.

    Raises:
        InputError: it exists.
    """
    path = partial_path(output)
    if path.exists() and not (resume or overwrite):
        raise InputError(
            f"{path}: a run of this output was stopped, or is running; give --resume to continue it, --overwrite to "
            f"start again, or name another output with -o"
        )


class UnfinishedOutput:
    """The rows of an output that is not complete, in a file next to it; the first line is the signature of the run.

    A context manager: if the block fails, the file stays, and a run with ``resume`` goes on after its last row.

    Args:
        output: the output.
        signature: what decides the links.
        resume: continue the file, if it exists.
        overwrite: replace the file, if it exists.

    Raises:
        InputError: it is of another run, or another process writes it.
    """

    def __init__(self, output: str, signature: str, resume: bool = False, overwrite: bool = False) -> None:
        self.path = partial_path(output)
        self._head = f"{signature}\n".encode()
        self._rows = 0
        with writing_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("r+b" if self.path.exists() else "x+b")
            try:
                self._lock()
                if overwrite:
                    self._file.truncate(0)
                self._check_signature()
            except BaseException:
                self._file.close()
                raise

    def __enter__(self) -> UnfinishedOutput:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None or not self._rows:
            self.path.unlink()
        else:
            print(f"norm-align: {self._rows} sentences are kept: --resume continues this run", file=sys.stderr)
        self._file.close()

    def keep(self, ends: Sequence[int]) -> int:
        """Keep the rows of complete windows, which end before each of ``ends``; returns their number."""
        wanted, row, place = set(ends), 0, len(self._head)
        kept = place
        with writing_errors(self.path):
            self._file.seek(place)
            for line in self._file:
                if not line.endswith(b"\n"):
                    break
                row, place = row + 1, place + len(line)
                if row in wanted:
                    self._rows, kept = row, place
            self._file.seek(kept)
            self._file.truncate()
        return self._rows

    def append(self, rows: Iterable[Row]) -> None:
        """Append the rows of a window."""
        lines = [f"{status}\t{links}\n".encode() for status, links in rows]
        with writing_errors(self.path):
            self._file.writelines(lines)
            self._file.flush()
            os.fsync(self._file.fileno())
        self._rows += len(lines)

    def rows(self) -> Iterator[Row]:
        """All rows; several may read them at once."""
        with self.path.open("rb") as file:
            file.seek(len(self._head))
            for line in file:
                first, _, rest = line.decode().rstrip("\n").partition("\t")
                yield first, rest

    def _lock(self) -> None:
        """Refuse the file if another process has it open.

        Raises:
            InputError: one has.
        """
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(
                f"{self.path}: another process is writing it; wait until it ends, or name another output with -o"
            ) from error

    def _check_signature(self) -> None:
        first = self._file.readline()
        if not first.endswith(b"\n"):  # new, or stopped while it was begun
            self._file.seek(0)
            self._file.truncate()
            self._file.write(self._head)
        elif first != self._head:
            fields = [set(head.decode(errors="replace").rstrip("\n").split("|")) for head in (first, self._head)]
            names = sorted({field.partition(":")[0] for field in fields[0] ^ fields[1]})
            raise InputError(
                f"{self.path}: this is output of another run (different: {', '.join(names)}); give its options, "
                f"--overwrite to start again, or name another output with -o"
            )
