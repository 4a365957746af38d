"""The maps that a checkpoint says it was trained to align with (criterion ``guided_alignment``)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import MapName, parse_maps
from alignment_eval.maps.words import SETTINGS


def guided_maps(options: Iterable[Any]) -> tuple[MapName, ...]:
    """The guided maps of a model, or of an ensemble.

    Args:
        options: fairseq's options (``cfg``) of the checkpoint of each member.

    Returns:
        The maps, each with its setting.  None if they have one setting only, since two maps of different settings
        that agree are better then; or if a member has other ones.
    """
    of_members = {_guided(cfg.model) for cfg in options}
    return of_members.pop() if len(of_members) == 1 else ()


def _guided(model: Any) -> tuple[MapName, ...]:
    names: tuple[MapName, ...] = ()
    with suppress(UsageError):  # text that is no name of maps is not of this plugin
        names = parse_maps(str(getattr(model, "guided_maps", None) or ""))
    found = tuple(replace(name, setting=name.setting or "awi") for name in names)
    return found if {name.setting for name in found} == set(SETTINGS) else ()
