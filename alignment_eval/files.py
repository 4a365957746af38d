"""Writes files and directories whole, and signs them.

All output of both packages goes through this module.  It is written under a temporary name in the same directory and
renamed at the end, so it appears complete or not at all.  Nothing is replaced unless ``overwrite`` is true.

A signature is every option that changes a number, in one string that travels with it.
"""

from __future__ import annotations

import contextlib
import filecmp
import glob
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Union

from alignment_eval import __version__
from alignment_eval.errors import InputError, UsageError, printable, shown

#: Stands for standard input or output instead of a path.
STANDARD = "-"
_STDOUT = (STANDARD, "/dev/stdout")
#: Control characters in UTF-8, but for tabs and line ends.
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def is_stream(path: str | Path) -> bool:
    """Whether ``path`` is standard output, a pipe or a device, which is written to directly and never replaced."""
    with writing_errors(path):
        return _to_replace(path) is None


def check_new(path: str | Path, overwrite: bool, option: str = "--overwrite", parents: bool = False) -> None:
    """Check, before the work, that a file can be written at ``path`` and that nothing is lost there.

    Standard output, pipes and devices pass; with ``parents``, so does a directory that does not exist yet.  ``option``
    is the one that allows to replace a file.
    """
    with writing_errors(path):
        target = _to_replace(path)
        if target is None:
            return
        if not overwrite and os.path.lexists(path):
            raise InputError(f"{path}: already exists; choose another path or pass {option}")
        _check_place(path, target, parents)


def check_distinct(outputs: Iterable[str | Path], inputs: Iterable[str | Path]) -> None:
    """Check, before the work, that no output of a command is one of its inputs, holds one, or is another output.

    Links are followed.  An input that is a directory stands for its Parquet files, too.
    """
    read = [Path(os.path.realpath("/dev/stdin" if str(name) == STANDARD else name)) for name in inputs]
    read += [file.resolve() for path in read if path.is_dir() for file in path.glob("*.parquet")]
    taken = {place: "an input" for path in read for place in (path, *path.parents)}
    for name in outputs:
        path = Path(os.path.realpath("/dev/stdout" if str(name) == STANDARD else name))
        if path.exists() and not (path.is_file() or path.is_dir()):  # a pipe or a device
            continue
        if path in taken:
            raise UsageError(f"{name}: is also {taken[path]} of this command, or holds it; name another output")
        if str(name) not in _STDOUT:
            taken[path] = "another output"


class NewFile:
    """A temporary file at :attr:`path` that is renamed to ``target`` (:meth:`keep`) or removed (:meth:`drop`).

    A link is followed: the file that it points to is replaced.
    """

    def __init__(self, target: str | Path) -> None:
        self._shown = target
        with writing_errors(target):
            real = _to_replace(target)
            if real is None:
                raise InputError(f"{target}: this is not a regular file; give the name of a file")
            _check_place(target, real)
            self._target = real
            self.path = _temporary_name(real)
            self.path.touch(exist_ok=False)

    def keep(self, resumed: bool = False) -> None:
        """Rename the file to its final name; if this is not possible, remove it and raise InputError.

        ``resumed``: a file that has this name may only come from a stopped run, with the same content.
        """
        try:
            with writing_errors(self._shown):
                if resumed and self._target.exists() and not filecmp.cmp(self.path, self._target, shallow=False):
                    raise InputError(f"{self._shown}: already exists, with other content; move it, and resume again")
                if self._target.exists():
                    shutil.copymode(self._target, self.path)
                self.path.replace(self._target)
        finally:
            self.drop()

    def drop(self) -> None:
        """Remove the file, unless it has its final name."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)


@contextlib.contextmanager
def new_file(path: str | Path, resumed: bool = False) -> Iterator[Path]:
    """A temporary path to write to, which becomes the file ``path`` if the block succeeds.

    If the block raises, ``path`` does not change.  ``resumed``: as for :meth:`NewFile.keep`.  If ``path`` is standard
    output, a pipe or a device, the content is copied there at the end.
    """
    with writing_errors(path):
        if _to_replace(path) is None:
            with TemporaryDirectory(prefix="align-eval-") as directory:
                temporary = Path(directory) / "output"
                yield temporary
                with temporary.open("rb") as content:
                    write_bytes(path, content)
            return
        file = NewFile(path)
        try:
            yield file.path
            file.keep(resumed)
        finally:
            file.drop()


def write_lines(path: str | Path, lines: Iterable[str], resumed: bool = False) -> None:
    """Write ``lines`` (without line ends) as UTF-8, as :func:`write_bytes` does."""
    write_bytes(path, (f"{line}\n".encode() for line in lines), resumed)


def write_bytes(path: str | Path, content: Iterable[bytes], resumed: bool = False) -> None:
    """Write a file whole (``resumed``: as :meth:`NewFile.keep`); standard output, a pipe or a device directly.

    A terminal gets control characters escaped.
    """
    if not is_stream(path):
        with new_file(path, resumed) as temporary, temporary.open("wb") as file:
            file.writelines(content)
        return
    with writing_errors(path):
        if str(path) in _STDOUT:
            sys.stdout.flush()
            if sys.stdout.isatty():
                content = (_CONTROLS.sub(_escaped, part) for part in content)
            sys.stdout.buffer.writelines(content)
            sys.stdout.buffer.flush()
        else:
            with Path(path).open("wb") as file:
                file.writelines(content)


def _escaped(found: re.Match[bytes]) -> bytes:
    return ascii(found[0].decode())[1:-1].encode()


def _to_replace(path: str | Path) -> Path | None:
    """The regular file, existing or not, that a write to ``path`` replaces; None if it must be written to directly."""
    if str(path) in _STDOUT:
        return None
    if str(path) in ("", ".", "..") or str(path).endswith(os.sep) or Path(path).is_dir():
        raise InputError(f"{path or repr(path)}: this is a directory; give the name of a file")
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(Path(path).stat().st_mode):
            return None
    return Path(os.path.realpath(path))


def _check_place(path: str | Path, target: Path, parents: bool = False) -> None:
    directory = target.parent
    while parents and not os.path.lexists(directory):
        directory = directory.parent
    if not directory.is_dir():
        raise InputError(f"{path}: there is no directory {directory}; create it, or choose another path")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InputError(f"{path}: the directory {directory} is read-only; choose another path, or make it writable")
    if target.exists() and not target.stat().st_mode & 0o222:
        raise InputError(f"{path}: the file is read-only; choose another path, or make it writable")


@contextlib.contextmanager
def writing_errors(path: str | Path) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file.  A closed pipe is not an error of the file."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        name = "standard output" if str(path) == STANDARD else path
        raise InputError(f"{name}: cannot write the file ({error.strerror or error})") from error


def _temporary_name(target: Path) -> Path:
    """An unused hidden name in the directory of ``target``, ``.NAME.PLACE-PROCESS-RANDOM.tmp``.

    What processes left there that were killed at this place is removed.
    """
    for left in target.parent.glob(f".{glob.escape(target.name)}.{_place()}-*.tmp"):
        if not _is_running(int(left.name.split("-")[-2], 16)):
            shutil.rmtree(left) if left.is_dir() else left.unlink(missing_ok=True)
    return target.with_name(f".{target.name}.{_place()}-{os.getpid():x}-{secrets.token_hex(4)}.tmp")


@cache
def _place() -> str:
    """What tells the processes of this machine or container from those of others with the same numbers."""
    space = Path("/proc/self/ns/pid")  # of Linux
    name = f"{platform.node()} {space.readlink() if os.path.lexists(space) else ''}"
    return hashlib.blake2b(name.encode(), digest_size=4).hexdigest()


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # it is another user's
        pass
    return True


def check_directory(out: str | Path, overwrite: bool, own: re.Pattern[str]) -> None:
    """Check, before the work, that a command may write the directory ``out``.

    Only the command's own files are replaced, whose names match ``own``.
    """
    path = Path(out)
    if str(out) == "" or path.name in ("", ".."):
        raise InputError(f"{str(out)!r} cannot be the name of a new directory; choose another path")
    if not path.exists():
        return
    if not path.is_dir():
        raise InputError(f"{out}: this is a file, not a directory; choose another path")
    entries = sorted(path.iterdir())
    if entries and not overwrite:
        raise InputError(f"{out}: already exists; choose another path or pass --overwrite")
    for entry in entries:
        if not (own.fullmatch(entry.name) and entry.is_file() and not entry.is_symlink()):
            raise InputError(
                f"{out}: the directory holds {entry.name!r}, which this command did not write, so it is not replaced; "
                f"choose another path, or remove the directory yourself"
            )


@contextlib.contextmanager
def new_directory(out: str | Path, overwrite: bool, own: re.Pattern[str]) -> Iterator[Path]:
    """A temporary directory that becomes ``out`` if the block succeeds, and is removed if it fails."""
    check_directory(out, overwrite, own)
    target = Path(os.path.realpath(out))
    with writing_errors(out):
        new, old = _temporary_name(target), _temporary_name(target)
        new.mkdir(parents=True)
        try:
            yield new
            if target.exists():
                target.rename(old)
            new.rename(target)
        finally:
            if old.exists() and not target.exists():
                old.rename(target)
            for left in (new, old):
                shutil.rmtree(left, ignore_errors=True)


def json_line(value: Any) -> str:
    """A value as one line of JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# ---- signatures

Value = Union[str, int, float, bool, None]


@cache
def version() -> str:
    """This version, with its commit where it is known: in a clone, or installed from Git (``0.1.0+g0123456789ab``)."""
    commit = _commit()
    return f"{__version__}+g{commit[:12]}" if commit else __version__


def _commit() -> str:
    root = Path(__file__).resolve().parents[1]
    if (root / ".git").exists():
        with suppress(OSError):  # no git here
            command = ["git", "-C", str(root), "rev-parse", "HEAD"]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    with suppress(PackageNotFoundError, ValueError):
        installed = json.loads(distribution("fairseq-norm-plugin").read_text("direct_url.json") or "{}")
        return str(installed.get("vcs_info", {}).get("commit_id", ""))
    return ""


def signature(**fields: Value) -> str:
    """``key:value|key:value|…`` in the order given, the version of align-eval at the end.

    True and false become ``yes`` and ``no``, None becomes ``none``; control characters are escaped.
    """
    texts = {key: _text(value) for key, value in fields.items()}
    for key, text in texts.items():
        if "|" in text:
            raise InputError(f"signature field {shown(key)} is {shown(text)}: expected a value without '|'")
    return "|".join(
        f"{printable(key)}:{printable(text)}" for key, text in {**texts, "version": f"align-eval-{version()}"}.items()
    )


def fields_of(signature: str) -> dict[str, str]:
    """The fields of a signature, in its order."""
    return dict(field.partition(":")[::2] for field in signature.split("|")) if signature else {}


def signature_file(output: str | Path) -> Path:
    """The file that keeps the signature of a text file of links, as a JSON object."""
    return Path(f"{output}.signature.json")


def joined(signatures: Sequence[str]) -> str:
    """One signature for several results of a command; a field that differs has all values, separated by commas."""
    fields = list(map(fields_of, signatures))
    return "|".join(f"{key}:{','.join(dict.fromkeys(each[key] for each in fields))}" for key in fields[0])


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


def check_signed(path: str | Path, overwrite: bool, parents: bool = False) -> None:
    """Check, before the work, that :func:`write_signed` can write; arguments as for check_new.

    A signature without its file is nobody's, and is replaced.
    """
    check_new(path, overwrite, parents=parents)
    if not is_stream(path):
        check_new(signature_file(path), overwrite or not Path(path).exists(), parents=parents)


def write_signed(path: str | Path, lines: Iterable[str], signature: str, resumed: bool = False) -> None:
    """Write lines, and beside their file its ``signature``, if it is not empty, as a line of JSON."""
    write_lines(path, lines, resumed)
    if signature and not is_stream(path):
        write_lines(signature_file(path), [json_line(fields_of(signature))], resumed)
