"""``fairseq-train`` with the forward pass under bfloat16 autocast on CPU.

fairseq's own ``--bf16`` and ``--amp`` do not offer that there.  Weights, gradients and the optimiser stay in float32,
as do the softmax and the validation.  usage: train_bf16.py [fairseq-train options]
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from fairseq.tasks import FairseqTask
from fairseq_cli.train import cli_main


def under_autocast(train_step: Any) -> Any:
    """The same training step, run with matrix products in bfloat16."""

    @functools.wraps(train_step)
    def step(*arguments: Any, **keywords: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return train_step(*arguments, **keywords)

    return step


if __name__ == "__main__":
    FairseqTask.train_step = under_autocast(FairseqTask.train_step)
    cli_main()
