"""subword-nmt's codes, read for whoever cuts words into subwords."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, Union

from alignment_eval.errors import InputError


def read_bpe(path: Union[str, Path]) -> Any:
    """The segmentation of a codes file: ``segment_tokens``, ``process_line``, and a ``cache`` of all words so far.

    Raises:
        InputError: the file cannot be read, is no codes file, or subword-nmt is not installed.
    """
    try:
        from subword_nmt.apply_bpe import BPE
    except ImportError as error:
        raise InputError(
            "subword-nmt is not installed: expected it for BPE codes; pip install subword-nmt, or give text in subwords"
        ) from error
    said = io.StringIO()
    try:
        with Path(path).open(encoding="utf-8") as codes, redirect_stderr(said):
            return BPE(codes)
    except SystemExit as error:  # so subword-nmt ends at a line of another form
        found = said.getvalue().partition("\n")[0].removeprefix("Error: ")
        raise InputError(f"{path}: {found}: expected two subwords, as subword-nmt learn-bpe writes them") from error
    except (OSError, ValueError, IndexError) as error:
        raise InputError(
            f"{path}: cannot be read as BPE codes ({error}): expected a file of subword-nmt learn-bpe"
        ) from error
