"""Prepare a trained checkpoint for bundling: weights in float16, no optimiser state, no traces of the machine.

usage: strip_checkpoint.py CHECKPOINT OUT [--overwrite]

The task becomes fairseq's own ``translation`` and the criterion ``guided_alignment`` fairseq's own for translation, so
that stock fairseq can load it; options of this plugin and paths are removed.  The names of guided maps stay.
"""

from __future__ import annotations

import argparse
import dataclasses
import pickle
import sys
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.tasks.translation import TranslationConfig
from text_files import exit_status

from alignment_eval.errors import InputError
from alignment_eval.files import check_new, new_file

PREFIXES = ("aer_", "norm_")
CRITERION = "label_smoothed_cross_entropy"


def stripped(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a checkpoint without the parts that only its training needed."""
    cfg = state["cfg"]
    task = {field.name for field in dataclasses.fields(TranslationConfig)}
    cfg["task"] = {name: value for name, value in cfg["task"].items() if name in task}
    cfg["task"].update(_name="translation", data="data-bin")
    if cfg["criterion"]["_name"] == "guided_alignment":
        known = {field.name for field in dataclasses.fields(LabelSmoothedCrossEntropyCriterionConfig)}
        cfg["criterion"] = {name: value for name, value in cfg["criterion"].items() if name in known}
        cfg["criterion"]["_name"] = cfg["model"].criterion = CRITERION
    cfg["common"]["user_dir"] = None
    cfg["checkpoint"].update(save_dir="checkpoints", restore_file="checkpoint_last.pt", finetune_from_model=None)
    for name in [name for name in vars(cfg["model"]) if name.startswith(PREFIXES)]:
        delattr(cfg["model"], name)
    for name, value in cfg["checkpoint"].items():
        if hasattr(cfg["model"], name):
            setattr(cfg["model"], name, value)
    vars(cfg["model"]).update(task="translation", user_dir=None, data="data-bin")
    halves: dict[object, torch.Tensor] = {}
    # tied weights stay tied, with one copy in the file
    weights = {
        name: halves.setdefault((tensor.data_ptr(), tensor.shape), tensor.half())
        if tensor.is_floating_point()
        else tensor
        for name, tensor in state["model"].items()
    }
    history = state["optimizer_history"]
    kept = {"args": None, "cfg": cfg, "model": weights, "optimizer_history": history}
    return {**kept, "extra_state": {}, "task_state": {}, "last_optimizer_state": None}


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state of a checkpoint.

    Raises:
        InputError: the file is none that fairseq-train saved.
    """
    # only for your own checkpoints: fairseq stores options as Python objects, which weights_only would refuse
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=False)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; give a file that fairseq-train saved") from error
    except (pickle.UnpicklingError, EOFError, RuntimeError) as error:
        raise InputError(f"{path}: no checkpoint ({error}); give a file that fairseq-train saved") from error
    if missing := [key for key in ("cfg", "model") if not isinstance(state, dict) or key not in state]:
        raise InputError(
            f"{path}: not a fairseq checkpoint (it has no {', '.join(missing)}); give a file that fairseq-train saved"
        )
    return state


def write_checkpoint(state: dict[str, Any], out: Path) -> None:
    """Write a state under a temporary name, then rename it."""
    with new_file(out) as path, path.open("wb") as file:  # given a path, torch would store its name in the file
        torch.save(state, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT")
    args = parser.parse_args()
    check_new(args.out, args.overwrite)
    write_checkpoint(stripped(read_checkpoint(args.checkpoint)), args.out)


if __name__ == "__main__":
    sys.exit(exit_status("strip_checkpoint.py", main))
