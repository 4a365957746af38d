"""The task ``translation_norm``: fairseq's ``translation`` with maps."""

from __future__ import annotations

from dataclasses import dataclass

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_norm_plugin.monitoring.mixin import MonitorMixin
from fairseq_norm_plugin.monitoring.options import MonitorConfig
from fairseq_norm_plugin.options import NormConfig
from fairseq_norm_plugin.tasks.norm_mixin import NormMixin


@dataclass
class TranslationNormConfig(TranslationConfig, NormConfig, MonitorConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's translation options and the plugin's."""


@register_task("translation_norm", dataclass=TranslationNormConfig)
class TranslationNormTask(MonitorMixin, NormMixin, TranslationTask):  # type: ignore[misc]
    """fairseq's ``translation`` task with maps, also during training."""
