"""``fairseq-train --cpu`` with bfloat16 matrix products, by autocast; usage: train_bf16.py [fairseq-train options].

fairseq's own ``--bf16`` and ``--amp`` need other devices.  Weights, gradients, optimiser, softmax and validation stay
in float32.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from fairseq_cli import train  # before the rest of fairseq: it sets up the log


def under_autocast(train_step: Any) -> Any:
    """The same training step with matrix products in bfloat16."""

    @functools.wraps(train_step)
    def step(*arguments: Any, **keywords: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return train_step(*arguments, **keywords)

    return step


if __name__ == "__main__":
    train.tasks.FairseqTask.train_step = under_autocast(train.tasks.FairseqTask.train_step)
    train.cli_main()
