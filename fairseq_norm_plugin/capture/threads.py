"""No more threads than a pass has work for: on a busy machine, threads that wait for each other take much longer."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

#: Tokens times parameters that are worth a thread: some hundredths of a second of its time; and some tenths if threads
#: spin while they wait, because then a busy machine takes 50 ms for each product, however small.
_WORK, _WORK_SPINNING = 5e8, 1e10


@contextmanager
def enough_threads(models: Sequence[Any], tokens: int) -> Iterator[None]:
    """Limit torch's threads in the block to those that a pass has work for; the number of before comes back.

    torch keeps the number for each thread of Python, so other threads are not affected.

    Args:
        models: the models that run.
        tokens: tokens of the batch, both sides.
    """
    before = torch.get_num_threads()
    parameters = sum(map(_multiplied, models))
    asleep = os.environ.get("OMP_WAIT_POLICY", "").lower() == "passive"
    work = _WORK if asleep else _WORK_SPINNING
    torch.set_num_threads(max(1, min(before, int(tokens * parameters / work))))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _multiplied(model: nn.Module) -> int:
    """The parameters that each token is multiplied by: all but embeddings, of which it only takes its row."""
    looked_up = {id(each.weight) for each in model.modules() if isinstance(each, nn.Embedding)}
    return sum(parameter.numel() for parameter in model.parameters() if id(parameter) not in looked_up)
