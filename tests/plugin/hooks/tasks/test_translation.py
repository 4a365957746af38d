from __future__ import annotations

from dataclasses import fields

from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from fairseq.tasks.translation import TranslationConfig, TranslationTask

import fairseq_norm_plugin  # noqa: F401  # registers the tasks
from fairseq_norm_plugin.hooks.monitoring.mixin import MonitorMixin
from fairseq_norm_plugin.hooks.monitoring.options import MonitorConfig
from fairseq_norm_plugin.hooks.options import NormConfig
from fairseq_norm_plugin.hooks.tasks.norm_mixin import NormMixin


def test_the_task_is_fairseqs_with_maps_and_monitoring():
    task = TASK_REGISTRY["translation_norm"]
    assert issubclass(task, TranslationTask)
    order = task.__mro__
    assert order.index(MonitorMixin) < order.index(NormMixin) < order.index(TranslationTask)


def test_its_options_are_fairseqs_and_ours():
    names = {field.name for field in fields(TASK_DATACLASS_REGISTRY["translation_norm"])}
    for config in (TranslationConfig, NormConfig, MonitorConfig):
        assert {field.name for field in fields(config)} <= names
