"""Warns of a model that is used for other languages than it was trained for; a joint dictionary would not show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from alignment_eval.errors import warn_on_stderr

Pair = tuple[str, str]


def other_languages(trained: Any, used: Pair) -> Pair | None:
    """The source and target language in a checkpoint's options ``trained``, if there are two other than ``used``."""
    source, target = (getattr(trained, name, None) for name in ("source_lang", "target_lang"))
    return (source, target) if source and target and (source, target) != used else None


def direction_warning(name: str, trained: Pair, used: Pair) -> str:
    """The warning about the model ``name``."""
    return (
        f"{name} was trained from {trained[0]} to {trained[1]}, but is used from {used[0]} to {used[1]}: its maps mean "
        f"little then; give a model of that direction, or exchange -s and -t and the two texts"
    )


def warn_of_run(task: Any, models: Sequence[Any]) -> None:
    """Warn of each model of fairseq-generate that was trained for other languages than ``task`` has."""
    if task.language_tags:  # they tell the model its languages
        return
    used = (task.cfg.source_lang, task.cfg.target_lang)
    for name, model in zip(str(task.cfg.norm_checkpoint or "the model").split(":"), models):
        if trained := other_languages(getattr(model, "args", None), used):
            warn_on_stderr(direction_warning(name, trained, used))
