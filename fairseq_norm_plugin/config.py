"""What differs between fairseqs: omegaconf 2.0 (with fairseq 0.12.2) or newer, and what 0.12.2 has in a model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import signature
from typing import Any

from omegaconf import DictConfig, OmegaConf, ValueNode, _utils

#: fairseq 0.12.2 saves a second copy of each encoder layer's parameters.  It makes this copy again when it loads, and
#: fairseq's main branch (ve-fairseq) refuses it as unexpected.
FAST_PATH_COPY = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
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


def is_unread(name: str) -> bool:
    """Whether nothing reads this entry of a model's state: those copies, and a float of uninitialised memory."""
    return name.endswith("._float_tensor") or FAST_PATH_COPY.search(name) is not None
