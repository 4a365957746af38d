"""The task ``translation_norm``: fairseq's ``translation`` with maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from fairseq.tasks import register_task
from fairseq.tasks.translation import TranslationConfig, TranslationTask

from fairseq_norm_plugin.hooks.monitoring.mixin import MonitorMixin
from fairseq_norm_plugin.hooks.monitoring.options import MonitorConfig
from fairseq_norm_plugin.hooks.options import NormConfig
from fairseq_norm_plugin.hooks.tasks.norm_mixin import NormMixin
from fairseq_norm_plugin.text.tokens import Frames


@dataclass
class TranslationNormConfig(TranslationConfig, NormConfig, MonitorConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's translation options and the plugin's."""


@register_task("translation_norm", dataclass=TranslationNormConfig)
class TranslationNormTask(MonitorMixin, NormMixin, TranslationTask):  # type: ignore[misc]
    """fairseq's ``translation`` task with maps, also during training.

    Attributes:
        target_tag: the tag of the target language that every source begins with, for reading raw text; fairseq's data
            sets hold it themselves.
    """

    target_tag: str | None = None

    @property
    def language_tags(self) -> Sequence[str]:
        """The tag of the target language, if the model has tags."""
        return () if self.target_tag is None else (self.target_tag,)

    @property
    def told_direction(self) -> str | None:
        """``en-fra``, of the tag ``>>fra<<``."""
        return None if self.target_tag is None else f"{self.cfg.source_lang}-{self.target_tag.strip('<>[]_')}"

    @property
    def frames(self) -> Frames:
        """The tag before the source; both sides end in ``</s>``."""
        before = tuple(self.source_dictionary.index(tag) for tag in self.language_tags)
        plain = super().frames
        return replace(plain, source=replace(plain.source, before=before))
