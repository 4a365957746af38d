"""What whole runs cost: ``fairseq-generate`` with maps, against stock ``fairseq-generate``; and the size of records.

Both sides do the same work on the same batches (``--required-batch-size-multiple 1``: stock fairseq would drop the
rest of the last one), which is checked by their H- lines.  Times are those of the command's main function in this
process, where imports are done; memory is that of a process of its own.
"""

from __future__ import annotations

import argparse
import io
import itertools
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from fairseq_cli import generate
from measure import Comparison, alternate, cpu_seconds, process

GROUP = "whole runs"
_RECORDS = "RECORDS"  # stands for a new directory
_STOCK = ["--path", "data/demo/checkpoint.pt", "--required-batch-size-multiple", "1", "--cpu"]
_PLUGIN = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]
_SEARCH, _FORCED = [*_STOCK, "--beam", "5", "--print-alignment"], [*_STOCK, "--score-reference"]
#: What is run, the stock run, and what is added to it.
CASES = (
    ("`--beam 5 --print-alignment`, norms of a layer", _SEARCH, ["--norm-layer", "1"]),
    ("the same with `--norm-records`", _SEARCH, ["--norm-layer", "1", "--norm-records", _RECORDS]),
    ("`--score-reference --norm-records`", _FORCED, ["--norm-records", _RECORDS]),
)


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs`` and ``data``."""
    torch.set_num_threads(1)
    # stock fairseq's checkpoints hold objects that torch 2.6 and later loads only when told to
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    logging.disable(logging.INFO)
    data, number = str(options.data / "bin"), itertools.count()
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's, of Hydra and torch

        def words(line: Sequence[str]) -> list[str]:
            return [data, *(f"{directory}/{next(number)}" if word == _RECORDS else word for word in line)]

        for what, stock, added in CASES:
            ours, other = partial(words, [*stock, *_PLUGIN, *added]), partial(words, stock)
            hypotheses = _hypotheses(ours)
            if hypotheses != _hypotheses(other):
                raise RuntimeError(f"{what}: other hypotheses than stock fairseq's: the runs cannot be compared")
            runs = partial(cpu_seconds, partial(_hypotheses, ours)), partial(cpu_seconds, partial(_hypotheses, other))
            note = f"the work alone; {len(hypotheses)} sentences"
            yield Comparison(GROUP, what, "stock", "s CPU", *alternate(*runs, options.runs), note=note)
            peaks = alternate(partial(_peak, ours), partial(_peak, other), options.runs)
            yield Comparison(GROUP, what, "stock", "MiB", *peaks, note="largest resident size")
        line = [*_FORCED, *_PLUGIN, "--norm-records", f"{directory}/records"]
        count = len(_hypotheses(partial(words, line)))
        size = sum(part.stat().st_size for part in Path(directory, "records").glob("part-*"))
        yield Comparison(GROUP, "records of a reference", "", "kB a sentence", [size / count / 1000])


def _hypotheses(words: Callable[[], list[str]]) -> list[str]:
    """The H- lines of a run in this process."""
    printed, ignored = io.StringIO(), io.StringIO()
    argv = patch.object(sys, "argv", ["fairseq-generate", *words()])
    with redirect_stdout(printed), redirect_stderr(ignored), argv:
        generate.cli_main()
    return sorted(line for line in printed.getvalue().splitlines() if line.startswith("H-"))


def _peak(words: Callable[[], list[str]]) -> float:
    """MiB of a process of its own."""
    return process([sys.executable, "-m", "fairseq_cli.generate", *words()])[1]
