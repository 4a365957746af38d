"""fairseq's hooks, on a task that is none of fairseq's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary

from alignment_eval.errors import UsageError
from fairseq_norm_plugin.hooks.options import NormConfig
from fairseq_norm_plugin.hooks.tasks.norm_mixin import NormMixin
from tests.facts import facts


class Stock:
    """Notes what it is asked for."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.datasets = {"test": range(3)}
        self.source_dictionary = self.target_dictionary = Dictionary()
        self.calls = []

    def build_criterion(self, *args):
        return "criterion"

    def get_batch_iterator(self, dataset, **kwargs):
        self.calls.append(kwargs)
        return SimpleNamespace(dataset=dataset, frozen_batches=[[0, 2], [1]])

    def build_generator(self, models, args, **kwargs):
        self.calls.append(kwargs)
        return "generator"


class Task(NormMixin, Stock):
    pass


@pytest.fixture
def task():
    cfg = NormConfig()
    cfg.train_subset, cfg.source_lang, cfg.target_lang, cfg.norm_num_shards = "train", "xx", "yy", 1
    return Task(cfg)


def test_no_batch_is_lost_outside_of_training(task):
    task.get_batch_iterator(task.datasets["test"], required_batch_size_multiple=8)
    task.build_criterion()
    task.datasets["train"] = range(9)
    task.get_batch_iterator(task.datasets["train"], required_batch_size_multiple=8)
    task.get_batch_iterator(task.datasets["test"], required_batch_size_multiple=8)
    assert [call["required_batch_size_multiple"] for call in task.calls] == [1, 8, 1]


@pytest.mark.parametrize(
    ("norm", "generation", "text"),
    [
        ({"norm_records": "r"}, {}, "need sentence ids, which … fairseq-generate"),
        ({}, {"print_alignment": "soft"}, "fairseq-interactive crashes on --print-alignment soft"),
        ({"norm_records": ""}, {}, "--norm-records '': … empty"),
        ({"norm_alignments": ""}, {}, "--norm-alignments '': … empty"),
    ],
)
def test_what_is_refused_before_a_run(task, build, norm, generation, text):
    for name, value in norm.items():
        setattr(task.cfg, name, value)
    with pytest.raises(UsageError, match=facts(text)):
        task.build_generator([build()], SimpleNamespace(**generation))


def test_another_generator_cannot_carry_maps(task):
    with pytest.raises(UsageError, match=facts("own generator; list cannot be used")):
        task.build_generator([], SimpleNamespace(print_alignment="hard"), seq_gen_cls=list)
