"""Checks the options stored in a checkpoint, because fairseq evaluates some of them as Python when it builds a model.

``torch.load(weights_only=True)`` keeps a checkpoint from running code while it is read.  But it lets strings pass, and
fairseq calls ``eval`` on some of them (``adaptive_softmax_cutoff``, the layers of convolutional models, …).  So the
options are checked before fairseq sees them.  docs/reliability.md lists every ``eval`` that a checkpoint could reach.
"""

from __future__ import annotations

import ast
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
from fairseq.models.roberta import RobertaModel
from fairseq.models.transformer import TransformerModelBase

from alignment_eval.errors import InputError, printable, shown

#: Options that fairseq passes to ``eval`` in a model or task that this plugin supports: literals only.
EVALUATED = frozenset(
    {
        "adaptive_input_cutoff",
        "adaptive_softmax_cutoff",
        "character_filters",
        "decoder_xformers_att_config",
        "encoder_xformers_att_config",
        "left_pad_source",
        "left_pad_target",
        "pipeline_balance",
        "pipeline_devices",
        "xformers_att_config",
    }
)
#: Endings of options that hold file names and other free text, which nothing evaluates.
_PATHS = ("data", "dir", "file", "path", "prefix", "project", "url", "checkpoint", "suffix", "name", "logdir")
#: A reference to another option of the same checkpoint; it reads nothing outside the checkpoint.
_REFERENCE = re.compile(r"\$\{\w+(\.\w+)*\}")


def check_options(state: Mapping[str, Any], path: str) -> None:
    """Check the options of a checkpoint that was read from ``path`` but not yet given to fairseq.

    Raises:
        InputError: the plugin does not support the architecture, or an option could make fairseq run code or read the
            environment.
    """
    for group in ("args", "cfg"):
        if state.get(group) is None:
            continue
        options = _plain(state[group])
        if not isinstance(options, Mapping):
            raise InputError(f"{path}: the options ({group}) are a {type(options).__name__}, not named options")
        model = options.get("model", options) if group == "cfg" else options
        _check_architecture(_plain(model), path)
        for name, value in _values(options):
            if isinstance(value, str):
                _check_text(name, value, path)


def _check_architecture(model: Any, path: str) -> None:
    names = [model[key] for key in ("_name", "arch") if isinstance(model, Mapping) and model.get(key) is not None]
    if not names:
        raise InputError(f"{path}: the options name no architecture; give a checkpoint that fairseq-train saved")
    for name in names:
        known = ARCH_MODEL_REGISTRY.get(name) or MODEL_REGISTRY.get(name) if isinstance(name, str) else None
        if known is None or not issubclass(known, (TransformerModelBase, RobertaModel)):
            raise InputError(
                f"{path}: architecture {shown(name)} is not supported; give an encoder-decoder Transformer or a "
                f"RoBERTa-style encoder (fairseq builds other models by evaluating text of the checkpoint)"
            )


def _plain(options: Any) -> Any:
    return vars(options) if isinstance(options, Namespace) else options


def _values(options: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """Every single value with the innermost name that leads to it."""
    for name, value in options.items():
        inner = _plain(value)
        if isinstance(inner, Mapping):
            yield from _values(inner)
        elif isinstance(inner, (list, tuple)):
            for entry in inner:
                yield from _values({name: entry})
        else:
            yield str(name), inner


def _check_text(name: str, text: str, path: str) -> None:
    if "${" in text and not _REFERENCE.fullmatch(text):
        raise InputError(
            f"{path}: option {printable(name, 80)} is {shown(text)}, a reference that would be resolved on this "
            f"machine, so the file is not loaded"
        )
    names_a_file = name.split("_")[-1] in _PATHS
    if (name in EVALUATED or ("(" in text and not names_a_file)) and not _is_literal(text):
        raise InputError(
            f"{path}: option {printable(name, 80)} is {shown(text)}, not numbers; fairseq would evaluate this "
            f"text, which could run code, so the file is not loaded"
        )


def _is_literal(text: str) -> bool:
    """Whether ``text`` is a number, a string, or a list, tuple or mapping of these, with nothing to compute."""
    try:
        ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
