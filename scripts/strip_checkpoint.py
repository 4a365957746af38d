"""Prepare a trained checkpoint for bundling: weights in float16, no optimiser state, no traces of the machine.

    strip_checkpoint.py CHECKPOINT OUT [--overwrite]
    strip_checkpoint.py CHECKPOINT OUT --mix CONTINUATION [--share 0.5]

The task becomes fairseq's own ``translation`` and the criterion ``guided_alignment`` fairseq's own for translation, so
that stock fairseq can load it; options of this plugin and paths are removed.  The names of guided maps stay.  With
``--mix`` the weights are the mean of the checkpoint's and of what further training made of it, SHARE of the latter.
"""

import argparse
import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterionConfig
from fairseq.tasks.translation import TranslationConfig
from torch import Tensor

from alignment_eval.command_line import exit_status
from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import check_distinct, check_new, new_file

#: The largest distance of a model and its continuation, in units of their length.  Measured (d 256): 0.05 for 400
#: updates, 0.13 for 2,750; 1.1 to 1.4 for models of another direction or seed, whose mean is no model.
FARTHEST = 0.5


def stripped(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a checkpoint without the parts that only its training needed."""
    cfg, model = state["cfg"], vars(state["cfg"]["model"])
    task = {field.name for field in dataclasses.fields(TranslationConfig)}
    cfg["task"] = {name: value for name, value in cfg["task"].items() if name in task}
    cfg["task"].update(_name="translation", data="data-bin")
    if cfg["criterion"]["_name"] == "guided_alignment":
        known = {field.name for field in dataclasses.fields(LabelSmoothedCrossEntropyCriterionConfig)}
        cfg["criterion"] = {name: value for name, value in cfg["criterion"].items() if name in known}
        cfg["criterion"]["_name"] = model["criterion"] = "label_smoothed_cross_entropy"
    cfg["common"]["user_dir"] = None
    files = {"save_dir": "checkpoints", "restore_file": "checkpoint_last.pt", "finetune_from_model": None}
    cfg["checkpoint"].update(files)
    for name in [name for name in model if name.startswith(("aer_", "norm_"))]:
        del model[name]
    model.update(files, task="translation", user_dir=None, data="data-bin")
    weights = changed(state["model"], lambda name: state["model"][name].half())
    kept = {"args": None, "cfg": cfg, "model": weights, "optimizer_history": state["optimizer_history"]}
    return {**kept, "extra_state": {}, "task_state": {}, "last_optimizer_state": None}


def changed(weights: dict[str, Tensor], change: Callable[[str], Tensor]) -> dict[str, Tensor]:
    """The floating-point weights changed by name; tied ones stay tied, with one copy in a file."""
    made: dict[object, Tensor] = {}
    result = dict(weights)
    for name, tensor in weights.items():
        if tensor.is_floating_point():
            key = (tensor.data_ptr(), tensor.shape)
            result[name] = made[key] = made[key] if key in made else change(name)
    return result


def mixed(first: dict[str, Tensor], second: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """The parameters (1 - ``share``) * ``first`` + ``share`` * ``second``; tied ones stay tied."""
    shapes = [{name: tensor.shape for name, tensor in model.items()} for model in (first, second)]
    if shapes[0] == shapes[1]:
        floats = [name for name, tensor in first.items() if tensor.is_floating_point()]
        a, b = (torch.cat([model[name].double().flatten() for name in floats]) for model in (first, second))
        if (a - b).norm() ** 2 <= FARTHEST**2 * a.norm() * b.norm():  # false for NaN
            return changed(second, lambda name: torch.lerp(first[name].float(), second[name].float(), share))
    raise InputError(
        "the checkpoints cannot be mixed, they are too far apart for a model and its continuation: give a model and "
        "what further training (--finetune-from-model) made of it"
    )


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The state of a checkpoint of your own.  Code in it runs: fairseq stores options as Python objects."""
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=False)
        if not (state["cfg"] and state["model"]):
            raise ValueError("no options or weights")
    except Exception as error:  # whatever pickle raises for a file of another kind
        raise InputError(f"{path}: no checkpoint ({error}); give a file that fairseq-train saved") from error
    return state


def run(args: argparse.Namespace) -> None:
    """Write the checkpoint."""
    if not 0 <= args.share <= 1:
        raise UsageError(f"--share {args.share}: give a number from 0 (CHECKPOINT) to 1 (CONTINUATION)")
    check_distinct([args.out], filter(None, [args.checkpoint, args.mix]))
    check_new(args.out, args.overwrite)
    state = read_checkpoint(args.checkpoint)
    if args.mix is not None:
        first, state = state["model"], read_checkpoint(args.mix)
        state["model"] = mixed(first, state["model"], args.share)
    with new_file(args.out) as path, path.open("wb") as file:  # given a path, torch would store its name in the file
        torch.save(stripped(state), file)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path, metavar="CHECKPOINT")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--mix", type=Path, metavar="CONTINUATION", help="what further training made of CHECKPOINT")
    parser.add_argument("--share", type=float, default=0.5, help="share of the continuation (default: %(default)s)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(exit_status("strip_checkpoint.py", parse, run))
