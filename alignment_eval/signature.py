"""Signatures: every option that changes a number, in one string that travels with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Union

from alignment_eval import __version__
from alignment_eval.errors import InputError, printable, shown

Value = Union[str, int, float, bool, None]


@cache
def version() -> str:
    """This version, with its commit where it is known: in a clone, or installed from Git (``0.1.0+g0123456789ab``)."""
    commit = _commit()
    return f"{__version__}+g{commit[:12]}" if commit else __version__


def _commit() -> str:
    root = Path(__file__).resolve().parents[1]
    if (root / ".git").exists():
        with suppress(OSError):  # no git here
            command = ["git", "-C", str(root), "rev-parse", "HEAD"]
            return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    with suppress(PackageNotFoundError, ValueError):
        installed = json.loads(distribution("fairseq-norm-plugin").read_text("direct_url.json") or "{}")
        return str(installed.get("vcs_info", {}).get("commit_id", ""))
    return ""


def signature(**fields: Value) -> str:
    """``key:value|key:value|…`` in the order given, the version of align-eval at the end.

    True and false become ``yes`` and ``no``, None becomes ``none``; control characters are escaped.
    """
    texts = {key: _text(value) for key, value in fields.items()}
    for key, text in texts.items():
        if "|" in text:
            raise InputError(f"signature field {shown(key)} is {shown(text)}: expected a value without '|'")
    return "|".join(
        f"{printable(key)}:{printable(text)}" for key, text in {**texts, "version": f"align-eval-{version()}"}.items()
    )


def fields_of(signature: str) -> dict[str, str]:
    """The fields of a signature, in its order."""
    return dict(field.partition(":")[::2] for field in signature.split("|")) if signature else {}


def signature_file(output: str | Path) -> Path:
    """The file that keeps the signature of a text file of links, as a JSON object."""
    return Path(f"{output}.signature.json")


def joined(signatures: Sequence[str]) -> str:
    """One signature for several results of a command; a field that differs has all values, separated by commas."""
    fields = list(map(fields_of, signatures))
    return "|".join(f"{key}:{','.join(dict.fromkeys(each[key] for each in fields))}" for key in fields[0])


def _text(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)
