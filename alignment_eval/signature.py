"""Signatures: every option that changes a number, in one string that travels with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

from alignment_eval import __version__
from alignment_eval.errors import InputError, printable, shown

Value = Union[str, int, float, bool, None]


def signature(**fields: Value) -> str:
    """``key:value|key:value|…`` in the order given, the version of align-eval at the end.

    True and false become ``yes`` and ``no``, None becomes ``none``; control characters are escaped.
    """
    texts = {key: _text(value) for key, value in fields.items()}
    for key, text in texts.items():
        if "|" in text:
            raise InputError(f"signature field {shown(key)} is {shown(text)}: expected a value without '|'")
    return "|".join(
        f"{printable(key)}:{printable(text)}" for key, text in {**texts, "version": f"align-eval-{__version__}"}.items()
    )


def joined(signatures: Sequence[str]) -> str:
    """One signature for several results of a command; a field that differs has all values, separated by commas."""
    fields = [dict(field.partition(":")[::2] for field in signature.split("|")) for signature in signatures]
    return "|".join(f"{key}:{','.join(dict.fromkeys(each[key] for each in fields))}" for key in fields[0])


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
