"""Compares the sizes in a checkpoint's options with its weights, before fairseq allocates a model of these sizes."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from alignment_eval.errors import InputError, printable, shown

#: Positions that a table may have if the weights hold none; fairseq uses at most 100,000 sinusoidal positions.
MAX_POSITIONS = 2**17
_LAYER = re.compile(r"(.*\blayers\.\d+)\.")
#: The files of a model whose weights are in several, as fairseq names them.
_PART = re.compile(r".*(-shard|_part)\d+\.pt")
_STACKS = ("encoder", "decoder")


def check_sizes(model: Any, weights: Mapping[str, Tensor], path: str) -> None:
    """Check that the options of a model state no sizes far above those of its weights.

    The bounds are not exact: they keep memory and time near those of the weights; then fairseq compares the shapes.

    Args:
        model: the options.
        weights: all parameters.
        path: the checkpoint, for messages.

    Raises:
        InputError: there are more layers than in the weights, wider ones, or too many positions.
    """
    rows = max((len(tensor) for tensor in weights.values() if tensor.dim()), default=0)
    bounds = {
        "layers": (len({match[1] for name in weights if (match := _LAYER.match(name))}), "the layers of the weights"),
        "dim": (max((t.shape[-1] for t in weights.values() if t.dim() > 1), default=0), "the width of the weights"),
        "positions": (max(rows, MAX_POSITIONS), "the most positions that are read"),
        "sample": (max(rows, MAX_POSITIONS), "the most positions that are read"),  # tokens_per_sample, of RoBERTa
    }
    for name, value in _options(model):
        bound, what = bounds.get(name.split("_")[-1], (float("inf"), ""))
        if _number(value) > bound:
            raise InputError(
                f"{path}: option {printable(name, 80)} is {shown(value)}: expected at most {bound}, {what}; the "
                f"checkpoint is damaged, so the model is not built"
            )


def check_whole(state: Mapping[str, Any], path: str) -> None:
    """The same of what fairseq read from a file, if the file holds a whole model.

    Raises:
        InputError: as of :func:`check_sizes`.
    """
    if not _PART.fullmatch(path):
        check_sizes(state["cfg"]["model"], state["model"], path)


def _options(model: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The options of a model and of its stacks; only those that are sizes are looked up."""
    options = vars(model) if isinstance(model, Namespace) else model
    for name in options:
        if name in _STACKS and isinstance(options[name], Mapping):
            yield from _options(options[name], f"{name}_")
        elif isinstance(name, str) and name.endswith(("layers", "dim", "positions", "sample")):
            yield f"{prefix}{name}", options[name]


def _number(value: Any) -> float:
    """The number that fairseq would take ``value`` for; 0 if it would refuse it."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0
    except OverflowError:
        return float("inf")
