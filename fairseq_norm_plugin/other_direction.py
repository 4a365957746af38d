"""Says that a model is used for other languages than it was trained for.

With a joint dictionary, nothing else would show it.
"""

from __future__ import annotations

from typing import Any, Optional

from alignment_eval.errors import warn_on_stderr
from fairseq_norm_plugin.checkpoints import options_read

Pair = tuple[str, str]


def other_languages(trained: Any, used: Pair) -> Optional[Pair]:
    """The languages of the task of a checkpoint, if it names two others than those it is used for.

    Args:
        trained: the options of the task.
        used: source and target language.
    """
    source, target = (getattr(trained, name, None) for name in ("source_lang", "target_lang"))
    return (source, target) if source and target and (source, target) != used else None


def direction_warning(name: str, trained: Pair, used: Pair) -> str:
    """What to tell of the model ``name``."""
    return (
        f"{name} was trained from {trained[0]} to {trained[1]}, but is used from {used[0]} to {used[1]}: its maps mean "
        f"little then; give a model of that direction, or exchange -s and -t and the two texts"
    )


def warn_of_run(task: Any) -> None:
    """Warn of each checkpoint of fairseq-generate that was trained for other languages than ``task`` has."""
    if task.language_tags:  # they tell the model its languages
        return
    used = (task.cfg.source_lang, task.cfg.target_lang)
    for path in str(task.cfg.norm_checkpoint or "").split(":"):
        if trained := other_languages(options_read(path), used):
            warn_on_stderr(direction_warning(path, trained, used))
