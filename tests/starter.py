"""Start commands in copies of a process that has imported what takes seconds: torch, fairseq, pandas and others.

:func:`started_programs` gives a directory of programs that stand for those of the environment: ``python``,
``align-eval``, ``fairseq-generate`` and so on.  Each hands its words, its variables and its open files to one process,
the starter.  A copy of the starter is then the command: a process with its own exit status, which imports the code of
this project anew.
"""

from __future__ import annotations

import ast
import atexit
import contextlib
import gc
import importlib
import logging
import os
import runpy
import select
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

#: What a new process spends its time on; nothing of this project, and nothing that sets up logging.
HEAVY = ("torch", "torch._dynamo", "scipy.stats", "hydra", "pandas", "pyarrow.parquet", "matplotlib.figure")
STARTED = ("python", "align-eval", "norm-", "fairseq-", "subword-nmt")
PROGRAM = """\
#!{python} -IS
import os, socket, sys
request = repr(([{program!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ))).encode()
with socket.socket(socket.AF_UNIX) as starter:
    starter.connect({address!r})
    socket.send_fds(starter, [len(request).to_bytes(8, "big")], [0, 1, 2])
    starter.sendall(request)
    status = int(starter.recv(8))
if status < 0:
    os.kill(os.getpid(), -status)
os._exit(status)
"""


@contextlib.contextmanager
def started_programs(programs: Path) -> Iterator[Path]:
    """Give a directory with a quick program for each of ``programs``, the ``bin`` of a virtual environment."""
    with tempfile.TemporaryDirectory(prefix="starter-") as name, socket.socket(socket.AF_UNIX) as listening:
        address, quick = f"{name}/socket", Path(name) / "bin"
        listening.bind(address)
        listening.listen(64)
        quick.mkdir()
        for program in programs.iterdir():
            if program.name.startswith(STARTED):
                text = PROGRAM.format(python=sys.executable, program=str(program), address=address)
                (quick / program.name).write_text(text, encoding="utf-8")
                (quick / program.name).chmod(0o755)
        words = [sys.executable, __file__, str(listening.fileno())]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment["OMP_NUM_THREADS"] = "1"
        files: dict[str, Any] = {"stdin": subprocess.PIPE, "pass_fds": [listening.fileno()]}
        with subprocess.Popen(words, env=environment, start_new_session=True, **files):  # ends when its input does
            yield quick


class HeldFairseq(MetaPathFinder, Loader):
    """Imports fairseq and gives it to the first who imports it, with what that does to logging."""

    def __init__(self) -> None:
        placeholder = logging.NullHandler()
        logging.root.addHandler(placeholder)  # basicConfig does nothing if there is a handler
        importlib.import_module("fairseq.trainer")
        logging.root.removeHandler(placeholder)
        names = [name for name in sys.modules if name.partition(".")[0] == "fairseq"]
        self.modules = {name: sys.modules.pop(name) for name in names}

    def find_spec(self, name: str, path: Any, target: Any = None) -> Optional[ModuleSpec]:
        return ModuleSpec(name, self, is_package=True) if name == "fairseq" else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self.modules["fairseq"]

    def exec_module(self, module: ModuleType) -> None:
        sys.meta_path.remove(self)
        sys.modules.update(self.modules)
        logging.basicConfig(level=logging.DEBUG)  # wav2vec2_classification.py


def settings(environment: Any) -> dict[str, str]:
    """The variables that an interpreter reads as it starts."""
    names = [name for name in environment if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONPATH"]
    return {name: environment[name] for name in names}


def serve(listening: socket.socket) -> Optional[tuple[list[str], str, dict[str, str]]]:
    """Start a copy for each request.  Returns the request in the copy, and None here when standard input ends."""
    while sys.stdin not in select.select([listening, sys.stdin], [], [])[0]:
        connection, _ = listening.accept()
        with connection:
            if not os.fork():
                listening.close()
                return accepted(connection)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    return None


def accepted(connection: socket.socket) -> Any:
    """In a copy: wait for another copy and tell its exit status.  In that one: the request."""
    head, files, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        request = stream.read(int.from_bytes(head, "big"))
    if child := os.fork():
        for file in files:
            os.close(file)
        connection.sendall(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())
        os._exit(0)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    return ast.literal_eval(request.decode())


def be(words: list[str], directory: str, environment: dict[str, str]) -> None:
    """Do what the command ``words`` does."""
    same = settings(environment) == settings(os.environ)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    if not same or not (start := start_of(words)):
        os.execv(words[0], words)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        how = {"encoding": old.encoding, "errors": old.errors, "closefd": False}
        stream = os.fdopen(number, "w" if number else "r", buffering=1 if number == 2 else -1, **how)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)  # keeps it open where a program replaces sys.stdout
    given = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:0] = given
    end(status_of(start))


def status_of(start: Callable[[], object]) -> int:
    """The exit status of a process that runs ``start``."""
    try:
        start()
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    except Exception:
        sys.excepthook(*sys.exc_info())  # which a command may have replaced
        return 1
    return 0


def end(status: int) -> None:
    """End this process as an interpreter does, without the third of a second that it takes to free every module."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.main_thread():
            thread.join()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError:
        status = 120
    os._exit(status & 255)


def start_of(words: list[str]) -> Optional[Callable[[], object]]:
    """What runs the command ``words`` in this process; None where only a new process can."""
    program, *rest = words
    if not Path(program).name.startswith("python"):
        return lambda: run_script(words)
    if rest[:1] == ["-m"]:
        return lambda: run_module(rest[1:])
    if rest[:1] == ["-c"]:
        return lambda: run_code(rest[1], ["-c", *rest[2:]])
    if rest[:1] in ([], ["-"]):
        return lambda: run_code(sys.stdin.read(), rest or [""])
    return None if rest[0].startswith("-") else lambda: run_script(rest)


def run_script(words: list[str]) -> None:
    sys.argv = words
    sys.path.insert(0, str(Path(words[0]).resolve().parent))
    runpy.run_path(words[0], run_name="__main__")


def run_module(words: list[str]) -> None:
    sys.argv = words
    sys.path.insert(0, str(Path.cwd()))
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)


def run_code(code: str, words: list[str]) -> None:
    sys.argv = words
    sys.path.insert(0, "")
    sys.modules["__main__"] = module = ModuleType("__main__")
    exec(compile(code, "<string>", "exec"), vars(module))


def main() -> None:
    del sys.path[0]  # of this script
    for name in HEAVY:
        importlib.import_module(name)
    sys.meta_path.insert(0, HeldFairseq())
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as listening:
        request = serve(listening)
    if request:
        be(*request)


if __name__ == "__main__":
    main()
