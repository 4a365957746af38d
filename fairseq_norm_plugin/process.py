"""What a command sets for its process: threads, memory, and what a user reads on the standard error.

What a command line does not need to be parsed is imported late.
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from alignment_eval.errors import InputError, say

#: The types that a model is computed in.
DTYPES = ("float32", "float16", "bfloat16", "int8")
#: Tokens times parameters that are worth a thread: some hundredths of a second of its time; and some tenths if threads
#: spin while they wait, because then a busy machine takes 50 ms for each product, however small.
_WORK, _WORK_SPINNING = 5e8, 1e10
_POLICY = "OMP_WAIT_POLICY"
#: What fairseq imports for tasks that no command of this package runs: a third of the time of its imports.
_UNUSED = ("sklearn", "sklearn.metrics", "scipy", "scipy.stats")
#: Texts of warnings that concern fairseq's developers only.
_NOISE = (
    r"\s*'config' is validated against ConfigStore",
    r"'pin_memory' argument is set as true",
    r"Support for mismatched key_padding_mask",
)


def let_waiting_threads_sleep() -> None:
    """Let threads that wait for each other sleep, unless the environment says otherwise; call it before torch comes.

    OpenMP lets a waiting thread spin on its processor.  On a busy machine it holds up the very thread that it waits
    for: small models took 20 times as long with two threads as with one.
    """
    os.environ.setdefault(_POLICY, "passive")


def keep_few_programs() -> None:
    """Let oneDNN keep few programs, unless the environment says how many; call it before the first matrix product.

    It makes a program for each size of a product, and keeps the last 1,000 (500 MB).  Batches rarely have the same
    sizes, so more save no time.
    """
    for name in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(name, "8")


class _Unused(ModuleType):
    """A module with any name in it, which stands for nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__spec__ = ModuleSpec(name, None)

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@contextmanager
def without_unused_libraries() -> Iterator[None]:
    """Let what is imported in the block do without :data:`_UNUSED`; a library that is loaded already stays."""
    unused = {} if "scipy" in sys.modules else {name: _Unused(name) for name in _UNUSED}
    sys.modules.update(unused)
    try:
        yield
    finally:
        for name in unused:
            del sys.modules[name]


@contextmanager
def enough_threads(models: Sequence[Any], tokens: int) -> Iterator[None]:
    """Limit torch's threads in the block to those that a pass over ``tokens`` of both sides has work for.

    torch keeps the number for each thread of Python, so other threads are not affected.
    """
    import torch

    before = torch.get_num_threads()
    parameters = sum(map(_multiplied, models))
    asleep = os.environ.get(_POLICY, "").lower() == "passive"
    work = _WORK if asleep else _WORK_SPINNING
    torch.set_num_threads(max(1, min(before, int(tokens * parameters / work))))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _multiplied(model: Any) -> int:
    """The parameters that each token is multiplied by: all but embeddings, where it only takes its row."""
    from torch import nn

    looked_up = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in looked_up)


@contextmanager
def executors(count: int, share: bool) -> Iterator[list[Executor]]:
    """Make ``count`` executors, each of which runs its jobs one after the other; jobs not begun are dropped at the end.

    torch's threads are divided among them.  Small products hardly gain by a second thread, so two models at once take
    less time than one model after the other with all threads.  Unless they ``share``, or if torch has fewer threads,
    all jobs run one after the other.
    """
    import torch

    threads = torch.get_num_threads()
    pools = count if share and threads >= count else 1
    with ExitStack() as stack:
        made = []
        for _ in range(pools):
            made.append(ThreadPoolExecutor(1, "direction", torch.set_num_threads, (threads // pools,)))
            stack.callback(made[-1].shutdown, cancel_futures=True)
        yield [made[number % pools] for number in range(count)]


def silence_libraries() -> None:
    """Hide what hydra and torch say of fairseq, which calls them as their older versions wanted."""
    logging.getLogger("hydra").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module=r"hydra\.")
    ignore_noise()


def ignore_noise() -> None:
    """Hide warnings that no user of a model can do anything about."""
    for text in _NOISE:
        warnings.filterwarnings("ignore", message=text)


def set_up_command(program: str) -> None:
    """For a command of fairseq, ``sys.argv[0]``: silence the libraries; an :class:`InputError` ends it with a sentence.

    The exit status stays 1, and other errors keep their tracebacks.  A Python program that imports the plugin is left
    alone.
    """
    path, former = Path(program), sys.excepthook
    if not (path.name.startswith("fairseq-") or path.parent.name == "fairseq_cli"):
        return
    silence_libraries()

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, InputError):
            sys.stdout.flush()
            say(f"{path.stem}: {error}")
        else:
            former(kind, error, traceback)

    sys.excepthook = hook
