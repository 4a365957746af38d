"""What whole runs cost: ``fairseq-generate`` with maps, against stock ``fairseq-generate``; and the size of records.

Both sides do the same work on the same batches (``--required-batch-size-multiple 1``: stock fairseq would drop the
rest of the last one), which is checked by their H- lines.  Times are those of ``fairseq_cli.generate`` in this process,
where imports are done, from the parsed options to the last line; memory is that of a process of its own.
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
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq_cli import generate
from measure import Comparison, alternate, process

import fairseq_norm_plugin  # noqa: F401  # registers the task

GROUP = "whole runs"
#: Stock fairseq's checkpoints hold objects that torch 2.6 and later loads only when told to.
_TRUST = {"TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
_RECORDS = "RECORDS"  # stands for a new directory
_STOCK = ["--path", "data/demo/checkpoint.pt", "--required-batch-size-multiple", "1", "--cpu"]
_PLUGIN = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]
_SEARCH, _FORCED = ["--beam", "5", "--print-alignment"], ["--score-reference"]
_RECORDED = ["--norm-records", _RECORDS]
#: What is run, our options, the stock run that does the same work, the ratio aimed at.
CASES = (
    ("`--beam 5 --print-alignment`, norms of a layer", [*_SEARCH, "--norm-layer", "1"], _SEARCH, "≤ 1.03"),
    ("the same with `--norm-records`", [*_SEARCH, "--norm-layer", "1", *_RECORDED], _SEARCH, "≤ 1.25"),
    ("`--score-reference --norm-records`", [*_FORCED, *_RECORDED], _FORCED, "≤ 1.25"),
)


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    """Measure all; ``options`` has ``runs`` and ``data``."""
    torch.set_num_threads(1)
    os.environ.update(_TRUST)
    logging.disable(logging.INFO)
    data, number = options.data / "bin", itertools.count()
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's, of Hydra and torch

        def words(extra: Sequence[str], ours: bool) -> list[str]:
            line = [str(data), *_STOCK, *(_PLUGIN if ours else []), *extra]
            return [f"{directory}/{next(number)}" if word == _RECORDS else word for word in line]

        for what, extra, stock, reach in CASES:
            sides = partial(words, extra, True), partial(words, stock, False)
            hypotheses = [_work(side)[1] for side in sides]  # to warm up, too
            if hypotheses[0] != hypotheses[1]:
                raise RuntimeError(f"{what}: other hypotheses than stock fairseq's: the runs cannot be compared")
            times = alternate(partial(_seconds, sides[0]), partial(_seconds, sides[1]), options.runs)
            note = f"the work alone; {len(hypotheses[0])} sentences"
            yield Comparison(GROUP, what, "stock", "s CPU", *times, reach=reach, note=note)
            peaks = alternate(partial(_peak, sides[0]), partial(_peak, sides[1]), options.runs)
            yield Comparison(GROUP, what, "stock", "MiB", *peaks, note="largest resident size")
        extra = [*_FORCED, "--norm-records", f"{directory}/records"]
        count = len(_work(partial(words, extra, True))[1])
        size = sum(part.stat().st_size for part in Path(directory, "records").glob("part-*"))
        yield Comparison(GROUP, "records of a reference", "", "kB a sentence", [size / count / 1000])


def _work(words: Callable[[], list[str]]) -> tuple[float, list[str]]:
    """CPU seconds in this process, and the hypotheses."""
    args = fairseq_options.parse_args_and_arch(fairseq_options.get_generation_parser(), input_args=words())
    config, printed = convert_namespace_to_omegaconf(args), io.StringIO()
    with contextlib.redirect_stderr(io.StringIO()):
        begin = time.process_time()
        generate._main(config, printed)
        seconds = time.process_time() - begin
    return seconds, sorted(line for line in printed.getvalue().splitlines() if line.startswith("H-"))


def _seconds(words: Callable[[], list[str]]) -> float:
    return _work(words)[0]


def _peak(words: Callable[[], list[str]]) -> float:
    """MiB of a process of its own."""
    return process([sys.executable, "-m", "fairseq_cli.generate", *words()], _TRUST).peak
