"""Lexicon files that are read once and used for many calls."""

from __future__ import annotations

from pathlib import Path
from typing import Optional

from alignment_eval.extraction.lexicon import Lexicon
from alignment_eval.files import file_hash
from alignment_eval.formats.lexicon_file import read_lexicon


class LexiconCache:
    """Keeps the lexicon that was read last, as long as its file does not change.

    Single pairs are often aligned one by one with the lexicon of a large text, which takes longer to read than a pair
    takes to align.
    """

    def __init__(self) -> None:
        # one attribute, since several threads may use a model
        self._kept: Optional[tuple[object, Lexicon, str]] = None

    def read(self, path: Path) -> tuple[Lexicon, str]:
        """The lexicon of a file, and the hash of the file.

        Raises:
            InputError: the file cannot be read, or is not a lexicon file.
        """
        state, kept = _state(path), self._kept
        if state is None or kept is None or kept[0] != state:
            kept = state, read_lexicon(path), file_hash(path)
            self._kept = kept
        return kept[1:]


def _state(path: Path) -> object:
    """What changes when the file changes; None if there is no such file."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return path.resolve(), stat.st_mtime_ns, stat.st_size
