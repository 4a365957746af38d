"""Reads the BPE codes of subword-nmt."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, Union

from alignment_eval.errors import InputError


def read_bpe(path: Union[str, Path]) -> Any:
    """The segmenter of a codes file, with ``segment_tokens``, ``process_line``, and a ``cache`` of all words so far.

    Raises:
        InputError: the file cannot be read or is not a codes file, or subword-nmt is not installed.
    """
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise InputError(
            "BPE codes need subword-nmt, which is not installed; pip install subword-nmt, or give text in subwords"
        ) from error
    said = io.StringIO()
    try:
        with Path(path).open(encoding="utf-8") as codes, redirect_stderr(said):
            return BPE(codes)
    except SystemExit as error:  # subword-nmt exits at a line of another form
        found = said.getvalue().partition("\n")[0].removeprefix("Error: ")
        raise InputError(
            f"{path}: {found}; each line must have two subwords, as subword-nmt learn-bpe writes"
        ) from error
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: cannot read BPE codes ({error}); give a file that subword-nmt learn-bpe wrote"
        ) from error
