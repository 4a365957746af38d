"""What monitoring costs, measured side by side in one process, alternating.

Validation of a gold subset with and without monitoring, and a training step under the plugin and under fairseq's own
task: CPU seconds, medians and ratios; nothing here is asserted by a test.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.trainer import Trainer

import fairseq_norm_plugin  # noqa: F401  # registers the task


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", help="binarised data with the gold's subset")
    parser.add_argument("--checkpoint", default="data/demo/checkpoint.pt")
    parser.add_argument("--gold", required=True, metavar="SUBSET=FILE", help="base 1")
    parser.add_argument("--max-tokens", type=int, default=4000)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"python {platform.python_version()}, torch {torch.__version__}, {platform.machine()}, one thread")
    print(f"median (min-max) of {args.runs} runs, CPU seconds\n")
    validation(args)
    training_step(args)


def validation(args: argparse.Namespace) -> None:
    subset = args.gold.partition("=")[0]
    words = ["--aer-gold", args.gold, "--aer-gold-base", "1", "--valid-subset", subset]
    for name, extra in {"": [], " and mixing ratios": ["--aer-mixing", "attnres_n,attnresln_n"]}.items():
        trainer, task = trainer_of(args, "translation_norm", *words, *extra)
        batches = list(
            task.get_batch_iterator(
                task.dataset(subset), max_tokens=args.max_tokens, max_positions=(1024, 1024)
            ).next_epoch_itr(shuffle=False)
        )
        monitor = task._monitor
        validate(trainer, batches, monitor)
        pairs = [
            (seconds(validate, trainer, batches, None), seconds(validate, trainer, batches, monitor))
            for _ in range(args.runs)
        ]
        report(f"validating {subset} ({len(task.dataset(subset))} pairs), with AER{name}", pairs)


def validate(trainer: Any, batches: list[Any], monitor: Any) -> None:
    """Validate all batches, with ``monitor`` or None."""
    trainer.task._monitor = monitor
    with metrics.aggregate(new_root=True):
        for batch in batches:
            trainer.valid_step(batch)


def training_step(args: argparse.Namespace) -> None:
    subset = args.gold.partition("=")[0]
    trainers = [
        trainer_of(args, "translation")[0],
        trainer_of(args, "translation_norm", "--aer-gold", args.gold, "--aer-gold-base", "1", "--valid-subset", subset)[
            0
        ],
    ]
    task = trainers[0].task
    task.load_dataset(subset)
    dataset = task.dataset(subset)
    batch = dataset.collater([dataset[i] for i in range(min(50, len(dataset)))])
    for trainer in trainers:
        trainer.train_step([batch])
    pairs = [tuple(seconds(trainer.train_step, [batch]) for trainer in trainers) for _ in range(args.runs)]
    report("training step under the plugin, against --task translation", pairs)


def trainer_of(args: argparse.Namespace, task_name: str, *extra: str) -> tuple[Any, Any]:
    """A trainer of the checkpoint's model, and its task."""
    saved = checkpoint_utils.load_checkpoint_to_cpu(args.checkpoint)
    model_cfg = saved["cfg"]["model"]
    words = [args.data, "--task", task_name, "--arch", "transformer", "--cpu"]
    words += ["--max-tokens", str(args.max_tokens), "--optimizer", "adam", "--lr", "1e-9", "--num-workers", "0", *extra]
    words += ["--criterion", "label_smoothed_cross_entropy"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    cfg = convert_namespace_to_omegaconf(parsed)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(model_cfg)
    model.load_state_dict(saved["model"], strict=True)
    model.float()
    criterion = task.build_criterion(cfg.criterion)
    for name in cfg.dataset.valid_subset.split(","):
        if extra:
            task.load_dataset(name)
    return Trainer(cfg, task, model, criterion), task


def seconds(way: Callable[..., object], *arguments: object) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    way(*arguments)
    return time.process_time() - start


def report(what: str, pairs: list[Any]) -> None:
    """Print one line: without, with, ratio of each pair."""
    columns = [[f"{statistics.median(values):.3f} ({min(values):.3f}-{max(values):.3f})" for values in zip(*pairs)]]
    ratios = [after / before for before, after in pairs]
    spread = f"{statistics.median(ratios):.3f} ({min(ratios):.3f}-{max(ratios):.3f})"
    print(f"| {what} | {columns[0][0]} | {columns[0][1]} | {spread} |", flush=True)


if __name__ == "__main__":
    main()
