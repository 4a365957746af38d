"""The tag of the target language with which every source of some models begins, such as Marian's ``>>fra<<``."""

from __future__ import annotations

import re
from typing import Any

from alignment_eval.errors import UsageError, printable, shown
from alignment_eval.files import file_hash
from fairseq_norm_plugin.text.tokens import Frames

#: A tag of Marian's models of several target languages.
MARIAN_TAG = re.compile(r">>\S+<<")
#: ``target_tag`` of sources that begin with no tag.
NO_TAG = "none"
#: Forms of tags in the text of other models: <2de>, [de], __de__.
_FORMS = re.compile(r"<\S+>|\[\S+\]|__\S+__")
#: How many tags a message lists.
_LISTED = 40


def source_tag(dictionary: Any, stated: str | None, language: str) -> str | None:
    """The tag that every source begins with; None if they begin with no tag.

    Args:
        dictionary: the dictionary of the source.
        stated: the tag, or the name in ``>>…<<``; :data:`NO_TAG`: no tag; None: that of ``language``, if it has one.
        language: the target language.
    """
    if stated == NO_TAG:
        return None
    tags = [symbol for symbol in dictionary.symbols if MARIAN_TAG.fullmatch(symbol)]
    named = language if stated is None else stated
    for tag in (named, f">>{named}<<"):
        if tag in tags or (stated is not None and _FORMS.fullmatch(tag) and tag in dictionary):
            return tag
    if stated is not None:
        raise UsageError(
            f"target_tag={shown(stated)}: the dictionary of the source has no such tag ({list_tags(tags)}); give one "
            f"of its tags, or {NO_TAG}"
        )
    if len(tags) > 1:
        raise UsageError(
            f"the model translates into several languages, and each source begins with the tag of one, but none is of "
            f"{shown(language)}; give --model-option target_tag=TAG ({list_tags(tags)}), or {NO_TAG} to read sources "
            f"without one"
        )
    return None


def list_tags(tags: list[str]) -> str:
    """Tags in a message."""
    if not tags:
        return "it has none"
    some = " ".join(printable(tag, 40) for tag in tags[:_LISTED]) + (" …" if len(tags) > _LISTED else "")
    return f"{len(tags)} known: {some}"


def tagged_hash(parameters: str, frames: Frames) -> str:
    """Hash of models whose parameters have the hash ``parameters``, and of their language tags."""
    return parameters if frames.is_plain else f"{parameters}-{file_hash(repr(frames).encode())}"
