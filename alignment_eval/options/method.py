"""The options that say how links are made, as command lines take them (profiles/chosen.py declares them)."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from alignment_eval.options.common import Input, positive_integer
from alignment_eval.profiles.chosen import NO_TABLE, OF_TEXT, AlignmentOptions

_DECLARED = {declared.name: declared for declared in fields(AlignmentOptions)}


def _file_or_word(text: str) -> str:
    return text if text in (OF_TEXT, NO_TABLE) else Input(text)


#: How the values of options are read.
_READ: dict[str, dict[str, Any]] = {
    "final_punctuation": {"action": argparse.BooleanOptionalAction},
    "profile": {"type": Input},
    "table": {"type": _file_or_word},
    "split_sentences": {"action": "store_true"},
    "max_tokens": {"type": positive_integer},
}


def add_options(group: argparse._ActionsContainer, *names: str, **changes: Any) -> None:
    """Declare options by the names of their fields; ``changes`` are for ``add_argument``."""
    for name in names:
        declared = {**_DECLARED[name].metadata, "default": _DECLARED[name].default, **_READ.get(name, {}), **changes}
        group.add_argument(f"--{name.replace('_', '-')}", **declared)


def add_map_arguments(parser: argparse.ArgumentParser, description: str) -> argparse._ArgumentGroup:
    """Declare the options that name maps, rule and lexical table, or the profile that does; returns their group."""
    group = parser.add_argument_group("maps", description)
    add_options(group, "heads", "kind", "combine", "setting", "rule", "null", "final_punctuation", "profile", "table")
    return group


def given_options(args: argparse.Namespace) -> AlignmentOptions:
    """The options that a command line states."""
    given = {name: getattr(args, name) for name in _DECLARED if hasattr(args, name)}
    if getattr(args, "scores_out", None) is not None:
        given["scores"] = True
    return AlignmentOptions(**given)
