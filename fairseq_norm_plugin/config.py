"""fairseq's options as omegaconf holds them: version 2.0 (with fairseq 0.12.2) and newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from omegaconf import DictConfig, OmegaConf, ValueNode, _utils

_HAS_FLAGS = "flags" in signature(OmegaConf.create).parameters


def config_of(options: Mapping[str, Any]) -> DictConfig:
    """Options of a checkpoint, which may hold a Namespace."""
    if _HAS_FLAGS:
        return OmegaConf.create(dict(options), flags={"allow_objects": True})
    known = _utils.is_primitive_type
    _utils.is_primitive_type = lambda _: True  # as fairseq 0.12.2 does: omegaconf 2.0 has no other way
    try:
        return OmegaConf.create(dict(options))
    finally:
        _utils.is_primitive_type = known


def entries_of(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The names and values of options; references are not followed."""
    if not isinstance(options, DictConfig):
        return list(options.items())
    nodes = ((name, options._get_node(name)) for name in options)
    return [(str(name), node._value() if isinstance(node, ValueNode) else node) for name, node in nodes]
