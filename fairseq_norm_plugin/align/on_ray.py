"""Runs the windows of a text on a Ray cluster (``norm-align --ray``): actors align, this process reads and writes."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from alignment_eval.errors import InputError, printable
from alignment_eval.profiles.chosen import ChosenMethod
from fairseq_norm_plugin.align.job import Job, load_model
from fairseq_norm_plugin.align.windows import Done, Window, WindowAligner
from fairseq_norm_plugin.text.lines import Text

#: What Ray reads when it is imported: no network call for statistics of usage.
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
#: Windows that wait at each actor, the one that it aligns included.
_WAITING = 2


class _Actor:
    """A process of the cluster, which loads the models when it begins."""

    def __init__(self, job: Job, text: Text, chosen: ChosenMethod) -> None:
        self._windows = WindowAligner(job, load_model(job.load_options, job.on_cpu), text)
        self._windows.begin(chosen)

    def align(self, window: Window) -> tuple[int, pa.Table, Done]:
        """The number of a window, its rows, and what became of it."""
        return window.number, *self._windows.align(window)


def align(
    job: Job, text: Text, chosen: ChosenMethod, windows: Iterable[Window]
) -> Iterator[tuple[int, pa.Table, Done]]:
    """Align windows on a cluster; gives what :meth:`_Actor.align` does of each, in the order in which they end."""
    with _cluster() as ray:
        resources = ray.cluster_resources()
        gpus = 0 if job.on_cpu else int(resources.get("GPU", 0))
        count = job.actors or gpus or max(1, int(resources.get("CPU", 1)))
        # several actors may share a GPU: much of the work of each is on a processor
        share = {"num_gpus": 1 / math.ceil(count / gpus)} if gpus else {"num_cpus": 1}
        actors = ray.remote(_Actor).options(**share)
        known = replace(text, pairs=list, states={}, copies=())  # the lines come window by window
        free = [actors.remote(job, known, chosen) for _ in range(count)] * _WAITING
        busy: dict[Any, Any] = {}
        for window in windows:
            actor = free.pop(0)
            busy[actor.align.remote(window)] = actor
            if not free:
                yield _first_done(ray, busy, free)
        while busy:
            yield _first_done(ray, busy, free)


def _first_done(ray: Any, busy: dict[Any, Any], free: list[Any]) -> tuple[int, pa.Table, Done]:
    """The next window that is aligned; its actor is free then."""
    (done,), _ = ray.wait(list(busy), num_returns=1)
    free.append(busy.pop(done))
    found: tuple[int, pa.Table, Done] = ray.get(done)
    return found


@contextmanager
def _cluster() -> Iterator[Any]:
    """Ray, connected to the cluster of RAY_ADDRESS, or to one that is started on this machine."""
    ray = _import_ray()
    connected = ray.is_initialized()
    try:
        if not connected:
            try:
                ray.init(address=os.environ.get("RAY_ADDRESS"), log_to_driver=False)
            except Exception as error:  # Ray raises plain exceptions
                raise InputError(f"--ray: Ray cannot be started ({_reason(error)}); try again") from error
        yield ray
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise InputError(f"--ray: {_reason(error)}") from error
    finally:
        if not connected:
            ray.shutdown()


def _import_ray() -> Any:
    """The package."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError as error:
        raise InputError(f"--ray: the package ray cannot be imported ({error}): pip install ray") from error
    return ray


def _reason(error: BaseException) -> str:
    """The reason of an error that Ray raised: the error of an actor, if one caused it."""
    inner: Any = error
    while inner is not None:
        if isinstance(inner, InputError):
            return str(inner)
        inner = getattr(inner, "cause", None) or inner.__cause__
    return f"{type(error).__name__}: {printable(str(error).strip().splitlines()[-1], 300)}"
