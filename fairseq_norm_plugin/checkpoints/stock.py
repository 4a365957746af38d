"""A checkpoint of a training under the plugin is one of stock fairseq: its task and criterion, and no other options.

What the plugin reads back lies where stock fairseq does not look: the best AER in ``extra_state``, and ``guided_maps``
among the options of the model.
"""

from __future__ import annotations

import functools
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fairseq import checkpoint_utils

from alignment_eval.errors import UsageError, shown

#: fairseq's tasks whose models read their languages as tags.
TAGGED = MULTILINGUAL, PRETRAINED = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
_CRITERION = "guided_alignment"
#: Tasks and criteria of the plugin -> those of fairseq that have their models and losses in validation.
_STOCK = {
    **{f"{name}_norm": name for name in ("translation", *TAGGED)},
    _CRITERION: "label_smoothed_cross_entropy",
}
#: Options of the criterion, which fairseq's does not have.
_GUIDED = ("alignment_lambda", "guided_maps")


def is_ours(option: str) -> bool:
    """Whether an option of a task is of the plugin."""
    return option.startswith(("norm_", "aer_"))


def task_name(options: Any) -> str:
    """The name of the task of a checkpoint's options."""
    named = options if isinstance(options, Mapping) else vars(options)
    return str(named.get("_name") or named.get("task", ""))


def stock_options(cfg: Mapping[str, Any]) -> dict[str, Any]:
    """The options ``cfg`` of a checkpoint as a training of stock fairseq would have saved them; ``cfg`` stays."""
    return {group: _of_group(options) for group, options in cfg.items()}


def _of_group(options: Any) -> Any:
    """The options of one group; those of what has no dataclass are in a namespace with those of all groups."""
    named = vars(options) if isinstance(options, Namespace) else options
    if not isinstance(named, Mapping):
        return options
    guided = _GUIDED if named.get("_name") == _CRITERION else ()
    stock = {name: value for name, value in named.items() if not (is_ours(name) or name in guided)}
    for name in stock.keys() & {"_name", "task", "criterion"}:
        if isinstance(stock[name], str):
            stock[name] = _STOCK.get(stock[name], stock[name])
    if isinstance(stock.get("user_dir"), str) and Path(stock["user_dir"]).name == __name__.partition(".")[0]:
        stock["user_dir"] = None
    return Namespace(**stock) if isinstance(options, Namespace) else stock


def save_stock_checkpoints() -> None:
    """Let fairseq save checkpoints of stock fairseq only."""
    save = checkpoint_utils.torch_persistent_save
    if hasattr(save, "__wrapped__"):
        return

    @functools.wraps(save)
    def torch_persistent_save(state: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(state, dict) and isinstance(state.get("cfg"), dict):
            state = {**state, "cfg": stock_options(state["cfg"])}
        return save(state, *args, **kwargs)

    checkpoint_utils.torch_persistent_save = torch_persistent_save


def as_commanded(cfg: dict[str, Any], command: Mapping[str, Any], path: str) -> dict[str, Any]:
    """The options of a checkpoint, whose task is the norm task that a command line names, with its options.

    fairseq-validate takes the task from the checkpoint, and only its options from the command line.
    """
    named = command.get("task")
    if not isinstance(named, str) or named not in _STOCK:
        return cfg
    trained = task_name(cfg["task"])
    if _STOCK[named] != trained:
        expected = f"--task {trained}_norm" if trained in _STOCK.values() else "omit --task and its options"
        raise UsageError(
            f"--task {named}: {path} was trained with --task {shown(trained)}, which decides how it is read; {expected}"
        )
    options, ours = cfg["task"], {name: value for name, value in command.items() if is_ours(name)}
    if isinstance(options, Namespace):
        return {**cfg, "task": Namespace(**{**vars(options), **ours, "_name": named, "task": named})}
    return {**cfg, "task": {**options, **ours, "_name": named}}
