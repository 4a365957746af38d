"""What this package runs in: the process, and the torch and fairseq that are installed beside it.

A command sets threads, memory and what a user reads on the standard error.  fairseq is the user's: a release, the main
branch or a fork, from PyPI or from source; here stands whether it serves, and how to get one.  What a command line does
not need to be parsed is imported late.
"""

from __future__ import annotations

import atexit
import gc
import inspect
import logging
import os
import platform
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType, TracebackType
from typing import Any
from weakref import WeakKeyDictionary

from alignment_eval import files
from alignment_eval.errors import InputError, print_warnings, say

#: From this version on torch.load unpickles nothing unless told so (CVE-2025-32434 was in those before).
_TORCH = (2, 6)
#: fairseq's modules in C++ and Cython that every command needs, by their directory.
_COMPILED = {"": ("libbleu",), "data": ("data_utils_fast", "token_block_utils_fast")}

#: What the plugin overrides or calls, and the arguments that it gives.
_CALLED = {
    "fairseq.checkpoint_utils:load_checkpoint_to_cpu": "path arg_overrides",
    "fairseq.modules:MultiheadAttention.forward": "query key value key_padding_mask incremental_state need_weights "
    "static_kv attn_mask before_softmax need_head_weights",
    "fairseq.modules:MultiheadAttention._get_input_buffer": "incremental_state",
    "fairseq.modules:MultiheadAttention._set_input_buffer": "incremental_state buffer",
    "fairseq.sequence_generator:EnsembleModel.forward_decoder": "tokens encoder_outs incremental_states",
    "fairseq.sequence_generator:EnsembleModel.forward_encoder": "net_input",
    "fairseq.sequence_generator:SequenceGenerator._generate": "sample prefix_tokens constraints bos_token",
    "fairseq.sequence_scorer:SequenceScorer.generate": "models sample",
    "fairseq.tasks.translation:TranslationTask.build_model": "cfg from_checkpoint",
    "fairseq.tasks.translation:TranslationTask.build_generator": "models args seq_gen_cls extra_gen_cls_kwargs",
    "fairseq.tasks.translation:TranslationTask.filter_indices_by_size": "indices dataset max_positions "
    "ignore_invalid_inputs",
    "fairseq.tasks.translation:TranslationTask.get_batch_iterator": "dataset required_batch_size_multiple",
    "fairseq.tasks.translation:TranslationTask.inference_step": "generator models sample",
    "fairseq.tasks.translation:TranslationTask.valid_step": "sample model criterion",
}
#: The types that a model is computed in.
DTYPES = ("float32", "float16", "bfloat16")
#: Tokens times parameters that are worth a thread: some hundredths of a second of its time; and some tenths if threads
#: spin while they wait, because then a busy machine takes 50 ms for each product, however small.
_WORK, _WORK_SPINNING = 5e8, 1e10
_POLICY = "OMP_WAIT_POLICY"
_MULTIPLIED: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
#: What fairseq imports for tasks that no command of this package runs: a third of the time of its imports.
_UNUSED = ("sklearn", "sklearn.metrics", "scipy", "scipy.stats")
#: Texts of warnings that concern fairseq's developers only.
_NOISE = (
    r"\s*'config' is validated against ConfigStore",
    r"'pin_memory' argument is set as true",
    r"Support for mismatched key_padding_mask",
)


def set_up_torch() -> None:
    """Let waiting threads sleep and oneDNN keep few programs, unless the environment says otherwise.

    Call it before torch is imported.

    OpenMP lets a waiting thread spin on its processor.  On a busy machine it holds up the very thread that it waits
    for: small models took 20 times as long with two threads as with one.  oneDNN makes a program for each size of a
    product, and keeps the last 1,000 (500 MB).  Batches rarely have the same sizes, so more save no time.
    """
    for name, value in ((_POLICY, "passive"), ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "8"), ("LRU_CACHE_CAPACITY", "8")):
        os.environ.setdefault(name, value)


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
def importing() -> Iterator[None]:
    """Let the block import fairseq without :data:`_UNUSED`; a library that is loaded already stays.

    Imports leave a million objects and no garbage: the collector looks at them neither meanwhile nor later.

    Raises:
        InputError: torch or fairseq is missing, or does not serve.
    """
    if "fairseq" in sys.modules:
        yield
        return
    check_installed()
    unused = {} if "scipy" in sys.modules else {name: _Unused(name) for name in _UNUSED}
    sys.modules.update(unused)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
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

    if model not in _MULTIPLIED:
        looked_up = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
        _MULTIPLIED[model] = sum(own.numel() for own in model.parameters() if id(own) not in looked_up)
    return _MULTIPLIED[model]


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
    """For a command of fairseq, ``sys.argv[0]``: messages are sentences, also of the :class:`InputError` that ends it.

    The exit status stays 1, and other errors keep their tracebacks.  A Python program that imports the plugin is left
    alone.
    """
    path, former = Path(program), sys.excepthook
    if not (path.name.startswith("fairseq-") or path.parent.name == "fairseq_cli"):
        return
    silence_libraries()
    print_warnings(path.stem)
    if {"-h", "--help"} & set(sys.argv):  # fairseq prints its help before it adds the options of a task
        atexit.register(print, "\nOptions --norm-… and --aer-…: python -m fairseq_norm_plugin --help")

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if isinstance(error, InputError):
            sys.stdout.flush()
            say(f"{path.stem}: {error}")
        else:
            former(kind, error, traceback)

    sys.excepthook = hook


def versions() -> dict[str, str]:
    """The versions that numbers may depend on: this package's, torch's, and fairseq's with its distribution."""
    return {"version": files.version(), "torch": _torch() or "none", "fairseq": _fairseq() or "none"}


def version_line(program: str) -> str:
    """What ``--version`` prints."""
    found = versions()
    beside = f"torch {found['torch']}, fairseq {found['fairseq']}, Python {platform.python_version()}"
    return f"{program} {found['version']} ({beside})"


def install_line() -> str:
    """The command that installs a fairseq for this Python on this platform."""
    wheels = sys.platform == "linux" and platform.machine() == "x86_64"
    if sys.version_info < (3, 11):
        return "pip install 'pip<24.1' 'setuptools<80' && pip install 'torch>=2.6' torchaudio fairseq==0.12.2"
    if sys.version_info < (3, 13) and wheels:
        return "pip install 'torch>=2.6' ve-fairseq==0.12.3"
    build = "pip install cython numpy 'setuptools<80' wheel 'torch>=2.6'"
    return f"{build} && pip install --no-build-isolation fairseq-fixed==0.12.3.1"


def check_installed() -> None:
    """Check that there is a torch and a fairseq that the plugin can be loaded into."""
    spec = find_spec("fairseq")
    if spec is None or not spec.submodule_search_locations:
        other = "only fairseq2, another program, is installed" if find_spec("fairseq2") else "fairseq is not installed"
        raise InputError(f"{other}; the plugin needs fairseq 0.12: {install_line()}")
    torch = _torch()
    if torch is None:
        raise InputError(f"torch is not installed; the plugin and fairseq need it: {install_line()}")
    if tuple(map(int, re.findall(r"\d+", torch)[:2])) < _TORCH:
        raise InputError(f"torch {torch} can run code of a checkpoint: expected 2.6 or newer; pip install 'torch>=2.6'")
    for place in spec.submodule_search_locations:
        for folder, names in _COMPILED.items():
            for name in names:
                if PathFinder.find_spec(name, [str(Path(place, folder))]) is None:
                    raise InputError(
                        f"{_fairseq()} in {place} lacks its compiled module {name} for this Python; build it (in a "
                        f"clone: pip install --editable .), or {install_line()}"
                    )


@contextmanager
def importing_fairseq() -> Iterator[None]:
    """Let the block import fairseq; one that lacks what the plugin needs is refused.

    Modules of fairseq call ``logging.basicConfig(level=logging.DEBUG)`` when they are imported.  The debug messages of
    all libraries would then go to the standard error of a program that imports the plugin.  So the root logger has a
    handler meanwhile: then ``basicConfig`` does nothing.  With torch 2.14 they also warn of ``torch.jit.script``.

    Raises:
        InputError: torch or fairseq is missing, or does not serve.
    """
    check_installed()
    root, placeholder = logging.getLogger(), logging.NullHandler()
    root.addHandler(placeholder)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*torch.jit", category=FutureWarning)
            check_calls()
            yield
    except (InputError, OSError, MemoryError):
        raise
    except Exception as error:  # whatever another fairseq lacks, or raises with this Python
        raise unsuitable(error) from error
    finally:
        root.removeHandler(placeholder)


def check_calls() -> None:
    """Import fairseq, and check that what the plugin calls of it takes the arguments that it gives."""
    for name, arguments in _CALLED.items():
        missing = set(arguments.split()) - set(inspect.signature(resolve_name(name)).parameters)
        if missing:
            called = name.partition(":")[2]
            raise unsuitable(TypeError(f"{called} has no argument {', '.join(sorted(missing))}"))


def unsuitable(error: Exception) -> InputError:
    """The error for a fairseq that raised ``error`` when the plugin was loaded."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(
        f"{_fairseq()} cannot be used with Python {platform.python_version()} ({reason[:300]}): expected fairseq 0.12 "
        f"or its main branch, unchanged in what the plugin uses (docs/models.md#versions); {install_line()}"
    )


def _torch() -> str | None:
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _fairseq() -> str | None:
    """``fairseq-0.12.2``, the distribution that brings the module; several if they overwrite each other."""
    spec = find_spec("fairseq")
    if spec is None:
        return None
    tops = ((each, each.read_text("top_level.txt") or "") for each in distributions())
    names = sorted({f"{each.metadata['Name']}-{each.version}" for each, top in tops if "fairseq" in top.split()})
    return "+".join(names) or f"fairseq-{_source_version(spec)}"


def _source_version(spec: ModuleSpec) -> str:
    """The version of a fairseq that is no distribution, such as a clone in PYTHONPATH."""
    for place in spec.submodule_search_locations or ():
        if (file := Path(place, "version.txt")).is_file():
            return file.read_text("utf-8").strip()
    return "of-unknown-version"


if __name__ == "__main__":
    print(install_line())
