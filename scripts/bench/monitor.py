"""The cost of monitoring: validation of a gold subset with and without it, and a training step with either task.

The text is the demo's 60 sentence pairs; the maps are those of all layers, both kinds and settings.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from fairseq import checkpoint_utils, tasks
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from measure import CHECKPOINT, TEXT, Row, configured, timed

import fairseq_norm_plugin.hooks.registration  # noqa: F401  # registers the task

SUBSET = "test"
MONITORED = [
    "translation_norm",
    "--aer-gold",
    f"{SUBSET}={TEXT}.talp",
    "--aer-gold-base",
    "1",
    "--valid-subset",
    SUBSET,
]


def measure(options: argparse.Namespace) -> Iterator[Row]:
    torch.set_num_threads(1)
    for what, extra in {"AER": [], "AER and mixing ratios": ["--aer-mixing", "attnres_n,attnresln_n"]}.items():
        trainer = trainer_of(*MONITORED, *extra)
        iterator = trainer.task.get_batch_iterator(trainer.task.dataset(SUBSET), max_tokens=4000)
        batches, monitor = list(iterator.next_epoch_itr(shuffle=False)), trainer.task._monitor
        ours, stock = (partial(validate, trainer, batches, own) for own in (monitor, None))
        yield timed(f"validation with {what}", ours, stock, options.runs)
    trainers = trainer_of(*MONITORED), trainer_of("translation")
    dataset = trainers[0].task.dataset(SUBSET)
    batch = dataset.collater([dataset[number] for number in range(50)])
    ours, stock = (partial(trainer.train_step, [batch]) for trainer in trainers)
    yield timed("training step of 50 sentences", ours, stock, options.runs)


def validate(trainer: Any, batches: list[Any], monitor: Any) -> None:
    """Validate all batches, with ``monitor`` or None."""
    trainer.task._monitor = monitor
    with metrics.aggregate(new_root=True):
        for batch in batches:
            trainer.valid_step(batch)


def trainer_of(task_name: str, *extra: str) -> Any:
    """A trainer of the bundled model, with a task that has the demo's sentences."""
    shared = ("--cpu", "--max-tokens", "4000", "--num-workers", "0", "--optimizer", "adam", "--lr", "1e-9")
    cfg = configured("--task", task_name, *shared, *extra)
    task = tasks.setup_task(cfg.task)
    (model,), _ = checkpoint_utils.load_model_ensemble([CHECKPOINT], task=task)
    criterion = task.build_criterion(cfg.criterion)  # before the data, which get their gold by then
    task.load_dataset(SUBSET)
    return Trainer(cfg, task, model, criterion)
