"""What whole runs cost: ``fairseq-generate`` with maps, against stock ``fairseq-generate``; and the size of records.

Both sides do the same work on the same batches (``--required-batch-size-multiple 1``: stock fairseq would drop the
rest of the last one).  Times are those of the command's main function in this process, where imports are done; memory,
the largest resident size, is that of a process of its own.
"""

import argparse
import io
import logging
import os
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from unittest.mock import patch

import torch
from fairseq_cli import generate
from measure import CHECKPOINT, DATA, TEXT, Row, alternate, process, row, timed

_STOCK = [DATA, "--path", CHECKPOINT, "--required-batch-size-multiple", "1", "--cpu", "--num-workers", "0"]
_SEARCH, _FORCED = [*_STOCK, "--beam", "5", "--print-alignment"], [*_STOCK, "--score-reference"]
_PLUGIN = ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm"]


def measure(options: argparse.Namespace) -> Iterator[Row]:
    torch.set_num_threads(1)
    # stock fairseq's checkpoints hold objects that torch 2.6 and later loads only when told to
    os.environ["TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD"] = "1"
    logging.disable(logging.INFO)
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairseq's, of Hydra and torch
        searched, forced = (["--norm-records-overwrite", "--norm-records", f"{directory}/{n}"] for n in range(2))
        for what, stock, added in (
            ("--beam 5 --print-alignment, norms of a layer", _SEARCH, ["--norm-layer", "1"]),
            ("the same with --norm-records", _SEARCH, ["--norm-layer", "1", *searched]),
            ("--score-reference --norm-records", _FORCED, forced),
        ):
            ours = [*stock, *_PLUGIN, *added]
            yield timed(what, partial(generated, ours), partial(generated, stock), options.runs)
            yield row(what, "MiB", *alternate(partial(peak, ours), partial(peak, stock), options.runs))
        size = sum(part.stat().st_size for part in Path(forced[-1]).glob("part-*"))
        sentences = len(Path(f"{TEXT}.de").read_bytes().splitlines())
        yield row("records of a reference", "kB a sentence", [size / sentences / 1000])


def generated(words: Sequence[str]) -> None:
    """Run fairseq-generate in this process."""
    argv = patch.object(sys, "argv", ["fairseq-generate", *words])
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), argv:
        generate.cli_main()


def peak(words: Sequence[str]) -> float:
    """MiB of fairseq-generate in a process of its own."""
    return process(sys.executable, "-m", "fairseq_cli.generate", *words)[1]
