"""Mix a model and its continuation: the weighted mean of their parameters (docs/guided.md).

usage: mix_checkpoints.py MODEL CONTINUATION OUT [--share 0.5] [--overwrite]

OUT = (1 - SHARE) * MODEL + SHARE * CONTINUATION. It is a checkpoint of the continuation, prepared as by
strip_checkpoint.py: weights in float16, no optimiser state, loadable by stock fairseq.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

import torch
from strip_checkpoint import read_checkpoint, stripped, write_checkpoint
from text_files import exit_status
from torch import Tensor

from alignment_eval.errors import InputError, UsageError
from alignment_eval.files import check_new

#: The largest distance of a model and its continuation, in units of their length.  Measured (d 256): 0.05 for 400
#: updates, 0.13 for 2,750; 1.1 to 1.4 for models of another direction or seed, whose mean is no model.
FARTHEST = 0.5


def mixed(first: dict[str, Tensor], second: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """The parameters (1 - ``share``) * ``first`` + ``share`` * ``second``; tied ones stay tied, others are of second.

    Raises:
        ValueError: the parameters have other names or shapes, or are too far apart for a model and its continuation.
    """
    if differing := [name for name in {**first, **second} if _shape(first, name) != _shape(second, name)]:
        name = differing[0]
        raise ValueError(f"{name} has shape {_shape(first, name)} in one and {_shape(second, name)} in the other")
    floats = [name for name in first if first[name].is_floating_point()]
    if (apart := _distance([(first[name], second[name]) for name in floats])) > FARTHEST:
        raise ValueError(f"they are {apart:.2f} of their length apart, a model and its continuation {FARTHEST} at most")
    means: dict[object, Tensor] = {}
    of = {name: (second[name].data_ptr(), second[name].shape) for name in floats}
    for name in floats:
        if of[name] not in means:
            means[of[name]] = torch.lerp(first[name].float(), second[name].float(), share)
    return {name: means[of[name]] if name in of else tensor for name, tensor in second.items()}


def _shape(parameters: dict[str, Tensor], name: str) -> object:
    return list(parameters[name].shape) if name in parameters else "none"


def _distance(pairs: list[tuple[Tensor, Tensor]]) -> float:
    """The length of the difference, divided by the geometric mean of both lengths; infinite if one is not finite."""

    def length(vectors: list[Tensor]) -> float:
        return math.sqrt(sum(float(vector.double().square().sum()) for vector in vectors))

    lengths = length([a for a, _ in pairs]) * length([b for _, b in pairs])
    apart = length([a.double() - b.double() for a, b in pairs])
    return apart / math.sqrt(lengths) if math.isfinite(lengths) and lengths else math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, metavar="MODEL")
    parser.add_argument("continuation", type=Path, metavar="CONTINUATION")
    parser.add_argument("out", type=Path, metavar="OUT")
    parser.add_argument("--share", type=float, default=0.5, help="share of the continuation (default: %(default)s)")
    parser.add_argument("--overwrite", action="store_true", help="replace OUT")
    args = parser.parse_args()
    if not 0 <= args.share <= 1:
        raise UsageError(f"--share {args.share}: give a number from 0 (MODEL) to 1 (CONTINUATION)")
    check_new(args.out, args.overwrite)
    first, state = read_checkpoint(args.model), read_checkpoint(args.continuation)
    try:
        state["model"] = mixed(first["model"], state["model"], args.share)
    except ValueError as error:
        raise InputError(
            f"{args.model} and {args.continuation} cannot be mixed: {error}; give a model and what further training "
            f"(--finetune-from-model) made of it"
        ) from None
    write_checkpoint(stripped(state), args.out)


if __name__ == "__main__":
    sys.exit(exit_status("mix_checkpoints.py", main))
