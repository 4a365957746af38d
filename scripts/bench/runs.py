"""What whole runs cost: ``fairseq-generate`` with maps beside stock ``fairseq-generate``, and the size of records.

Both sides do the same work on the same batches (``--required-batch-size-multiple 1``: stock fairseq would drop the
rest of the last one), which is checked by their H- lines.  Each case is measured as a whole process, of which the
imports are a good part, and in this process, where they are done: there ``fairseq_cli.generate`` runs from the parsed
options to the last line printed, model and data loaded anew each time.  One thread, data of ``--data`` (DIR/bin).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate
from measure import Comparison, alternate, process

import fairseq_norm_plugin  # noqa: F401  # registers the task

GROUP = "whole runs"
CHECKPOINT = "data/demo/checkpoint.pt"
#: Stock fairseq's checkpoints hold objects that torch 2.6 and later loads only when told to.
_TRUST = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
_RECORDS = "RECORDS"  # stands for a new directory
_STOCK = ["--path", CHECKPOINT, "--required-batch-size-multiple", "1", "--cpu"]
_PLUGIN = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]
_SEARCH = ["--beam", "5", "--print-alignment"]
_NORMS = ["--norm-layer", "1"]


@dataclass(frozen=True)
class Case:
    """Options of our run and of the stock run that does the same work, and the ratios of time aimed at."""

    what: str
    ours: Sequence[str]
    stock: Sequence[str]
    reach: str
    reach_memory: str = ""


CASES = (
    Case(
        "`--beam 5 --print-alignment`, norms of a layer",
        [*_SEARCH, *_NORMS],
        _SEARCH,
        "≤ 1.03",
        "≤ 20 MiB more",
    ),
    Case(
        "the same with `--norm-records`, all layers and heads",
        [*_SEARCH, *_NORMS, "--norm-records", _RECORDS],
        _SEARCH,
        "≤ 1.25",
    ),
    Case(
        "`--score-reference --norm-records`, all layers and heads",
        ["--score-reference", "--norm-records", _RECORDS],
        ["--score-reference"],
        "≤ 1.25",
    ),
)


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs`` and ``data``."""
    torch.set_num_threads(1)
    os.environ.update(_TRUST)
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's, of Hydra and torch
        bench = Bench(options.data / "bin", Path(directory))
        for case in CASES:
            yield from _compare(bench, case, options.runs)
        yield _size(bench)


class Bench:
    """Runs of fairseq-generate on the same data, each with a directory of its own for records."""

    def __init__(self, data: Path, directory: Path) -> None:
        if not data.is_dir():
            raise SystemExit(f"{data}: no such directory; run OUT={data.parent} scripts/demo.sh, or give --data")
        self._data = data
        self._directory = directory
        self._number = itertools.count()
        self.records = directory

    def words(self, extra: Sequence[str], ours: bool) -> list[str]:
        """The command line, without the command."""
        self.records = self._directory / str(next(self._number))
        words = [str(self._data), *_STOCK, *(_PLUGIN if ours else []), *extra]
        return [str(self.records) if word == _RECORDS else word for word in words]

    def whole(self, extra: Sequence[str], ours: bool) -> Any:
        """A process of its own."""
        return process([sys.executable, "-m", "fairseq_cli.generate", *self.words(extra, ours)], _TRUST)

    def work(self, extra: Sequence[str], ours: bool) -> tuple[float, float, str]:
        """In this process: wall and CPU seconds, and what it printed."""
        parser = fairseq_options.get_generation_parser()
        args = fairseq_options.parse_args_and_arch(parser, input_args=self.words(extra, ours))
        config = convert_namespace_to_omegaconf(args)
        printed = io.StringIO()
        with contextlib.redirect_stderr(io.StringIO()):
            wall, cpu = time.perf_counter(), time.process_time()
            generate._main(config, printed)
            return time.perf_counter() - wall, time.process_time() - cpu, printed.getvalue()


def _compare(bench: Bench, case: Case, runs: int) -> Iterator[Comparison]:
    ours, stock = (case.ours, True), (case.stock, False)
    hypotheses = [_hypotheses(bench.work(*side)[2]) for side in (ours, stock)]  # to warm up, too
    if hypotheses[0] != hypotheses[1]:
        raise RuntimeError(f"{case.what}: other hypotheses than stock fairseq's: the runs cannot be compared")
    works = alternate(partial(bench.work, *ours), partial(bench.work, *stock), runs)
    note = f"{len(hypotheses[0])} sentences; H- lines are equal"
    yield _comparison(case.what, "s CPU", works, 1, reach=case.reach, note=f"the work alone; {note}")
    yield _comparison(case.what, "s", works, 0, reach=case.reach, note="the work alone")
    wholes = alternate(partial(bench.whole, *ours), partial(bench.whole, *stock), runs)
    yield _comparison(case.what, "s CPU", wholes, "cpu", note="whole process")
    yield _comparison(case.what, "s", wholes, "wall", note="whole process")
    yield _comparison(case.what, "MiB", wholes, "peak", reach=case.reach_memory, note="largest resident size")


def _comparison(what: str, unit: str, sides: Any, field: Any, **fields: str) -> Comparison:
    ours, stock = ([getattr(run, field) if isinstance(field, str) else run[field] for run in side] for side in sides)
    return Comparison(GROUP, what, "stock", unit, ours, stock, **fields)


def _hypotheses(printed: str) -> list[str]:
    return sorted(line for line in printed.splitlines() if line.startswith("H-"))


def _size(bench: Bench) -> Comparison:
    """The size of records, a sentence."""
    extra = ["--score-reference", "--norm-records", _RECORDS]
    sentences = len(_hypotheses(bench.work(extra, True)[2]))
    size = sum(part.stat().st_size for part in bench.records.glob("part-*"))
    return Comparison(
        GROUP,
        "records of a reference, all layers and heads",
        "",
        "kB a sentence",
        [size / sentences / 1000],
        note=f"{size / 1e6:.2f} MB in all",
    )
