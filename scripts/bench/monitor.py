"""The cost of monitoring: validation of a gold subset with and without it, and a training step with either task."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from fairseq import checkpoint_utils, options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.logging import metrics
from fairseq.trainer import Trainer
from measure import Comparison, alternate, cpu_seconds

import fairseq_norm_plugin  # noqa: F401  # registers the task

CHECKPOINT, SUBSET, GOLD, MAX_TOKENS = "data/demo/checkpoint.pt", "test", "data/demo/demo.talp", 4000
MONITOR = ["--aer-gold", f"{SUBSET}={GOLD}", "--aer-gold-base", "1", "--valid-subset", SUBSET]
GROUP = "monitoring"


def measure(options: argparse.Namespace) -> Iterator[Comparison]:
    torch.set_num_threads(1)
    for name, extra in {"AER": [], "AER and mixing ratios": ["--aer-mixing", "attnres_n,attnresln_n"]}.items():
        yield validation(options, name, extra)
    yield training_step(options)


def validation(options: argparse.Namespace, name: str, extra: list[str]) -> Comparison:
    """The demo's sentences validated with and without monitoring."""
    trainer = trainer_of(options.data, "translation_norm", *MONITOR, *extra)
    dataset, monitor = trainer.task.dataset(SUBSET), trainer.task._monitor
    epoch = trainer.task.get_batch_iterator(dataset, max_tokens=MAX_TOKENS, max_positions=(1024, 1024))
    batches = list(epoch.next_epoch_itr(shuffle=False))
    ours, stock = (partial(cpu_seconds, partial(validate, trainer, batches, m)) for m in (monitor, None))
    ours()
    seconds = alternate(ours, stock, options.runs)
    note = f"{len(dataset)} sentence pairs of data/demo, all layers, both kinds and settings"
    return Comparison(GROUP, f"validation with {name}", "without", "s CPU", *seconds, note=note)


def validate(trainer: Any, batches: list[Any], monitor: Any) -> None:
    """Validate all batches, with ``monitor`` or None."""
    trainer.task._monitor = monitor
    with metrics.aggregate(new_root=True):
        for batch in batches:
            trainer.valid_step(batch)


def training_step(options: argparse.Namespace) -> Comparison:
    """One update, of up to 50 sentences."""
    cases = (["translation_norm", *MONITOR], ["translation"])
    trainers = [trainer_of(options.data, *words) for words in cases]
    dataset = trainers[1].task.dataset(SUBSET)
    batch = dataset.collater([dataset[i] for i in range(min(50, len(dataset)))])
    for trainer in trainers:
        trainer.train_step([batch])
    ours, stock = (partial(cpu_seconds, partial(trainer.train_step, [batch])) for trainer in trainers)
    seconds = alternate(ours, stock, options.runs)
    return Comparison(GROUP, "training step", "--task translation", "s CPU", *seconds)


def trainer_of(folder: Any, task_name: str, *extra: str) -> Any:
    """A trainer of the checkpoint's model, with a task that has the demo's sentences."""
    saved = checkpoint_utils.load_checkpoint_to_cpu(CHECKPOINT)
    model_cfg = saved["cfg"]["model"]
    words = [str(folder / "bin"), "--task", task_name, "--arch", "transformer", "--cpu"]
    words += ["--max-tokens", str(MAX_TOKENS), "--optimizer", "adam", "--lr", "1e-9", "--num-workers", "0", *extra]
    words += ["--criterion", "label_smoothed_cross_entropy"]
    parsed = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
    cfg = convert_namespace_to_omegaconf(parsed)
    task = tasks.setup_task(cfg.task)
    model = task.build_model(model_cfg)
    model.load_state_dict(saved["model"], strict=True)
    model.float()
    criterion = task.build_criterion(cfg.criterion)
    task.load_dataset(SUBSET)
    return Trainer(cfg, task, model, criterion)
