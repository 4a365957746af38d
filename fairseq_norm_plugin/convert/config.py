"""Reads the JSON files of a model in the format of Transformers, and refuses what would be computed in another way."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from alignment_eval.errors import InputError


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object that a file holds.

    Args:
        path: the file.
        what: which file of a model is expected, for messages.

    Raises:
        InputError: the file cannot be read or holds something else.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}: cannot read the file ({error}); give {what}") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: the file holds no JSON object; give {what}")
    return content


def read_config(path: Path, allowed: Mapping[str, Sequence[object]], sizes: Mapping[str, int | None]) -> dict[str, Any]:
    """Read config.json, and refuse options that would compute something else.

    Args:
        path: the file.
        allowed: the values that can be converted, for each option that changes what is computed; the first one if the
            file leaves it out, but ``model_type`` must be there.
        sizes: options that must be positive integers, and their values if the file leaves them out.

    Raises:
        InputError: the file is absent, or no such configuration.
    """
    defaults = {name: values[0] for name, values in allowed.items() if name != "model_type"}
    config = {**defaults, **sizes, **read_json(path, "the model's config.json")}
    for name, values in allowed.items():
        if not any(type(config.get(name)) is type(value) and config[name] == value for value in values):
            raise InputError(
                f"{path}: {name} is {config.get(name)!r}, but only {' or '.join(map(str, values))} is supported"
            )
    for name in sizes:
        if type(config[name]) is not int or config[name] < 1:
            raise InputError(f"{path}: {name} is {config[name]!r}, not a positive integer")
    return config


def check_heads(path: Path, config: Mapping[str, Any], width: str, *heads: str) -> None:
    """Check that the option ``width`` is a multiple of each of the options ``heads``.

    Raises:
        InputError: it is not.
    """
    for name in heads:
        if config[width] % config[name]:
            raise InputError(f"{path}: {width} {config[width]} is not a multiple of {name} {config[name]}")
