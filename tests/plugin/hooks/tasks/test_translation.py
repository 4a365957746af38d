"""fairseq's hooks, on a task that is none of fairseq's."""

from types import SimpleNamespace

import pytest
from fairseq.data import Dictionary

from alignment_eval.errors import UsageError
from fairseq_norm_plugin.hooks.options import NormConfig
from fairseq_norm_plugin.hooks.tasks.translation import NormMixin
from tests.facts import facts


class Stock:
    def __init__(self, cfg):
        self.cfg = cfg
        self.source_dictionary = self.target_dictionary = Dictionary()

    def build_generator(self, models, args, **kwargs):
        return "generator"


class Task(NormMixin, Stock):
    pass


@pytest.fixture
def task():
    cfg = NormConfig()
    cfg.train_subset, cfg.source_lang, cfg.target_lang = "train", "xx", "yy"
    return Task(cfg)


@pytest.mark.parametrize("name", ["norm_records", "norm_alignments"])
def test_an_empty_path_is_refused(task, build, name):
    setattr(task.cfg, name, "")
    with pytest.raises(UsageError, match=facts(f"--{name.replace('_', '-')} '': … empty")):
        task.build_generator([build()], SimpleNamespace())


def test_another_generator_cannot_carry_maps(task):
    with pytest.raises(UsageError, match=facts("own generator; list cannot be used")):
        task.build_generator([], SimpleNamespace(print_alignment="hard"), seq_gen_cls=list)
