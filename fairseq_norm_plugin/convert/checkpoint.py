"""Writes what fairseq loads: a checkpoint and dictionaries, in a directory that appears complete or not at all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from alignment_eval.errors import InputError
from alignment_eval.files import OwnFiles, new_directory
from fairseq_norm_plugin.checkpoints.options import check_options

CHECKPOINT = "checkpoint.pt"
PROFILE = "upper-layers.align.json"
_OWN = OwnFiles(
    "python -m fairseq_norm_plugin.convert",
    re.compile(
        r"checkpoint\.pt|(checkpoint\.pt|upper-layers)\.align\.json|dict(\.[\w-]+)?\.txt|(source|target)\.spm"
        r"|sentencepiece\.bpe\.model|merges\.txt"
    ),
)


@contextmanager
def converted(model: Path, out: Path, overwrite: bool) -> Iterator[Path]:
    """A temporary directory that becomes ``out`` if the block succeeds; errors of the block name ``model``."""
    if not model.is_dir():
        raise InputError(f"{model}: no such directory; give the directory of a model, with its config.json")
    with new_directory(out, overwrite, _OWN) as directory:
        try:
            yield directory
        except InputError as error:
            if str(error).startswith((f"{model}:", f"{model}/")):
                raise
            raise type(error)(f"{model}: {error}") from None


def write_checkpoint(directory: Path, model: nn.Module, cfg: Mapping[str, Any]) -> None:
    """Write the checkpoint of a model that fairseq built, without an optimizer; ``cfg`` are its options."""
    history = {"optimizer_name": "none", "criterion_name": "none", "lr_scheduler_state": {}, "num_updates": 0}
    content = {
        "args": None,
        "cfg": dict(cfg),
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
    check_options(content, str(directory / CHECKPOINT))
    with (directory / CHECKPOINT).open("wb") as file:  # given a path, torch would store its name in the file
        torch.save(content, file)
