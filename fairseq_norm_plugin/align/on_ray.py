"""The windows of a text, aligned by actors of a Ray cluster (``--engine ray``); Ray is imported only here.

Each window is one row of a Ray data set: where its pairs are in the files.  An actor reads them, aligns them as a
single process does, and sends back their lines.  Retries, scheduling and backpressure are Ray's.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import pickle
import re
import socket
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Optional, Union

import torch

from alignment_eval.arguments.maps import line_style
from alignment_eval.errors import InputError, UsageError, printable
from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.extraction.method import AlignmentMethod
from fairseq_norm_plugin.align.arguments import load_models
from fairseq_norm_plugin.align.windows import line_of
from fairseq_norm_plugin.aligning.aligner import Aligner
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.aligning.memory import keep_few_programs, keep_freed_memory
from fairseq_norm_plugin.aligning.separately import FAILED, align_separately
from fairseq_norm_plugin.aligning.spans import Span
from fairseq_norm_plugin.output.alignment_parts import AlignmentLine

#: How often Ray restarts an actor that dies, and runs a window again whose actor died.
_RETRIES = 3
#: Seconds to wait for a cluster's machine.
_PATIENCE = 10
#: What Ray reads when it is imported and started: no network call, no log on the terminal.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


@dataclass(frozen=True)
class Job:
    """The pairs of a window: the id of the first, and where they are."""

    first: int
    span: Span


@dataclass(frozen=True)
class AlignedWindow:
    """The lines of a window, and how many subwords it has and the models do not know, by side."""

    lines: list[AlignmentLine]
    tokens: Counter[str]
    unknown: Counter[str]


class WindowAligner:
    """Aligns windows in a process of its own, with models that it loads itself.

    Args:
        args: the options of the command line.
        method: how links are made; it counts no lexicon.
        lexicon: a lexicon of the whole text, or of another.
    """

    def __init__(self, args: argparse.Namespace, method: AlignmentMethod, lexicon: Optional[Lexicon]) -> None:
        self._args = args
        self._method = method
        self._lexicon = lexicon

    @cached_property
    def _directions(self) -> list[Direction]:
        """The models, loaded for the first window."""
        keep_freed_memory()
        keep_few_programs()
        return [model.direction for model in load_models(self._args)]

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[bytes]]:
        """Align a batch of Ray: pickled jobs become pickled windows, or errors, since a row of Ray is never divided."""
        return {"window": [pickle.dumps(self._answer(pickle.loads(job))) for job in batch["job"]]}

    def _answer(self, job: Job) -> Union[AlignedWindow, InputError]:
        try:
            return self.align(job)
        except torch.OutOfMemoryError:
            return InputError(
                f"--max-tokens {self._args.max_tokens}: a batch does not fit into GPU memory; give fewer tokens, fewer "
                f"--actors, or --cpu"
            )
        except (InputError, OSError) as error:
            return InputError(f"an actor failed: {error}")

    def align(self, job: Job) -> AlignedWindow:
        """Align one window; a pair that fails has its reason as status."""
        aligner = Aligner(self._method, self._directions, self._args.max_tokens, self._lexicon, check_lexicon=False)
        pairs = dict(enumerate(job.span.read(), job.first))
        style = line_style(self._args)
        aligned = align_separately(aligner, self._directions[0], pairs)
        lines = [line_of(aligned[id_], style) for id_ in pairs]
        return AlignedWindow(lines, aligner.tokens, aligner.unknown)


def ray_windows(
    jobs: Sequence[Job], args: argparse.Namespace, method: AlignmentMethod, lexicon: Optional[Lexicon]
) -> Iterator[AlignedWindow]:
    """Align windows on a Ray cluster; they come in the order in which they are done.

    Args:
        jobs: the windows.
        args: the options of the command line; those of the cluster are ``ray_address``, ``actors`` and ``cpu``.
        method: how links are made; it counts no lexicon.
        lexicon: a lexicon that reweights all pairs.

    Raises:
        InputError: Ray is not installed, the cluster cannot be reached, actors died again and again, or all pairs of a
            window failed.
        UsageError: the cluster has fewer processors than actors.
    """
    with _session(args) as ray, _errors(ray):
        actors, each = _actors(args, ray.cluster_resources())
        rows = [{"job": pickle.dumps(job)} for job in jobs]
        if len(rows) < actors:
            print(
                f"norm-align: only {len(rows)} of {actors} actors work, one for each window of {args.window} pairs; a "
                f"smaller --window gives all of them work",
                file=sys.stderr,
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # restarts cannot be limited in another way yet
            windows = ray.data.from_items(rows, override_num_blocks=len(rows)).map_batches(
                WindowAligner,
                fn_constructor_args=(args, method, lexicon),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=min(actors, len(rows))),
                ray_remote_args_fn=lambda: {"max_restarts": _RETRIES, "max_task_retries": _RETRIES},
                **each,
            )
        for batch in windows.iter_batches(batch_size=None, batch_format="pyarrow"):
            for window in batch["window"].to_pylist():
                yield _checked(pickle.loads(window))


def _checked(answer: Union[AlignedWindow, InputError]) -> AlignedWindow:
    """The window; an error of all of its pairs is no error of single pairs.

    Raises:
        InputError: there is none.
    """
    if isinstance(answer, InputError):
        raise answer
    lines = answer.lines
    if len(lines) > 1 and all(line.status.startswith(FAILED) for line in lines):
        raise InputError(
            f"none of pairs {lines[0].id} to {lines[-1].id}, from 0, could be aligned: "
            f"{lines[0].status.removeprefix(FAILED)}"
        )
    return answer


@contextlib.contextmanager
def _session(args: argparse.Namespace) -> Iterator[Any]:
    """The module ``ray``, connected to the cluster; a connection of the caller is used and left as it is."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise InputError(
            f"--engine ray: the package ray cannot be imported ({error}); install it with pip install 'ray[data]'"
        ) from error
    for handler in logging.getLogger("ray.data").handlers:
        if isinstance(handler, logging.StreamHandler):  # what it writes to its own file stays
            handler.setLevel(logging.CRITICAL + 1)
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    if ray.is_initialized():
        yield ray
        return
    _connect(ray, args)
    try:
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, args: argparse.Namespace) -> None:
    address = args.ray_address or os.environ.get("RAY_ADDRESS")
    mine = {} if address else {"num_cpus": args.actors, "include_dashboard": False}
    if not address and (args.actors or 0) > (os.cpu_count() or 1):
        raise UsageError(
            f"--actors {args.actors}: this machine has {os.cpu_count()} processors; give at most that many"
        )
    try:
        _check_listens(address or "")
        with _hidden_stderr(), _kept_breakpoint():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **mine)
    except Exception as error:  # of many types; a node that starts too slowly raises a bare one
        reason = printable(str(error).strip().split("\n")[0], 200)
        raise InputError(
            f"--ray-address {address}: no Ray cluster can be reached there ({reason}); check that it runs (ray status) "
            f"and that its version is {ray.__version__}"
            if address
            else f"no local Ray cluster could be started ({reason}); start one with ray start --head"
        ) from error


def _check_listens(address: str) -> None:
    """Check that somebody listens at ``HOST:PORT``, for which Ray itself waits many minutes.

    Raises:
        OSError: nobody does.
    """
    if named := re.fullmatch(r"(?:ray://)?\[?(.+?)\]?:(\d{1,5})", address):
        socket.create_connection((named[1], int(named[2])), timeout=_PATIENCE).close()


@contextlib.contextmanager
def _kept_breakpoint() -> Iterator[None]:
    """Leave ``PYTHONBREAKPOINT`` as it is, which Ray sets for all processes that are started later."""
    name = "PYTHONBREAKPOINT"
    kept = os.environ.get(name)
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if kept is not None:
            os.environ[name] = kept


@contextlib.contextmanager
def _hidden_stderr() -> Iterator[None]:
    """Send what is written to the standard error nowhere: Ray's C++ says there which level of logs was asked for."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _actors(args: argparse.Namespace, resources: dict[str, float]) -> tuple[int, dict[str, float]]:
    """How many actors align, and what Ray reserves for each.

    Raises:
        UsageError: the cluster has fewer processors.
    """
    gpus = 0 if args.cpu else int(resources.get("GPU", 0))
    if gpus:  # several actors may share a GPU: much of the work of each is on a processor
        actors = args.actors or gpus
        return actors, {"num_gpus": 1 / math.ceil(actors / gpus)}
    processors = int(resources.get("CPU", 0))
    actors = args.actors or processors
    if not 0 < actors <= processors:
        raise UsageError(f"--actors {actors}: the cluster has {processors} processors; give at most that many")
    return actors, {"num_cpus": 1}


@contextlib.contextmanager
def _errors(ray: Any) -> Iterator[None]:
    """Turn what Ray raises into one sentence."""
    died = (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError, ray.exceptions.WorkerCrashedError)
    try:
        yield
    except died as error:
        raise InputError(
            f"an actor died {_RETRIES + 1} times, probably for lack of memory; give fewer --actors, a smaller "
            f"--max-tokens or a smaller --window, and --resume (Ray's logs: {_logs(ray)})"
        ) from error
    except ray.exceptions.RayError as error:
        reason = printable(str(error).strip().split("\n")[-1][:300])
        raise InputError(f"an actor failed: {type(error).__name__}: {reason} (Ray's logs: {_logs(ray)})") from error


def _logs(ray: Any) -> str:
    """The directory of the logs on this machine."""
    node = ray._private.worker._global_node
    return "/tmp/ray" if node is None else str(node.get_logs_dir_path())
