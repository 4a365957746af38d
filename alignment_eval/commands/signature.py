"""``align-eval signature``: what the signature of an output says, a field a line."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alignment_eval.command_line import Input
from alignment_eval.errors import InputError, printable, shown
from alignment_eval.files import fields_of, signature_file
from alignment_eval.parts import parts_in
from alignment_eval.reading import ForeignFile

EPILOG = """\
Example, after make demo:
  align-eval signature out/demo/forced

run is the hash of all other fields.  A file of links has its signature in FILE.signature.json, a Parquet table and a
lexical table in their metadata, records in each part, a profile in itself.
"""
_ADVICE = (
    "give an output of norm-align or of align-eval extract, records, a lexical table or a profile; other commands of "
    "align-eval print theirs on stderr"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("output", type=Input, metavar="OUTPUT", help="a file or directory that has a signature")


def run(args: argparse.Namespace) -> None:
    for name, value in _fields(Path(args.output)).items():
        text = value if isinstance(value, str) else json.dumps(value)
        print(f"{printable(name)}\t{printable(text)}")


def _fields(path: Path) -> Mapping[str, Any]:
    file = ForeignFile(str(path), "an output with a signature", _ADVICE)
    if path.is_dir():
        if parts := parts_in(path):
            return {"run": parts[0].info.signature_hash, **parts[0].info.signature}
        raise InputError(f"{path}: the directory has no parts of a run; {_ADVICE}")
    if signature_file(path).is_file():
        path = signature_file(path)
        return file.decode(path.read_bytes(), dict[str, Any])
    try:
        read = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); {_ADVICE}") from error
    if read.startswith(b"PAR1"):
        return fields_of(_of_table(file))
    if read.startswith(b"{"):
        found = file.decode(read.splitlines()[0] if path.suffix == ".jsonl" else read, dict[str, Any])
        if isinstance(found.get("signature"), str):
            return fields_of(found["signature"])
        if isinstance(found.get("signature"), dict):
            return dict(found["signature"])
    raise InputError(f"{path}: no signature in it, and no {shown(signature_file(path).name)} beside it; {_ADVICE}")


def _of_table(file: ForeignFile) -> str:
    """The signature in the metadata of a Parquet table."""
    with file.parquet() as opened:
        metadata = opened.schema_arrow.metadata or {}
    if text := metadata.get(b"signature"):
        return str(text.decode())
    about = metadata.get(b"alignment_eval.lexical_table", b"{}")
    return str(file.decode(about, dict[str, Any]).get("signature") or "")
