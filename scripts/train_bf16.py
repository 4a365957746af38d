"""``fairseq-train --cpu`` with bfloat16 matrix products, by autocast; usage: train_bf16.py [fairseq-train options].

fairseq's own ``--bf16`` and ``--amp`` need other devices.  Weights, gradients, optimiser, softmax and validation stay
in float32.
"""

import torch
from fairseq_cli import train  # before the rest of fairseq: it sets up the log

if __name__ == "__main__":
    task = train.tasks.FairseqTask
    task.train_step = torch.autocast("cpu", torch.bfloat16)(task.train_step)
    train.cli_main()
